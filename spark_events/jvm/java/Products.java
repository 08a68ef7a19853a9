package io.sparkevents.jvm;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/**
 * Makes and copies Spark's case classes by field name: new Spark versions add fields, and a field that is not named
 * keeps its default.
 */
public final class Products {
    /** Returns a copy with some fields changed. */
    public static Object copy(Object product, Map changes) throws Exception {
        scala.Product fields = (scala.Product) product;
        Object[] arguments = new Object[fields.productArity()];
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = fields.productElement(i);
        }
        List fieldNames = Arrays.asList(names(fields));
        for (Iterator names = changes.keySet().iterator(); names.hasNext();) {
            String name = (String) names.next();
            if (!fieldNames.contains(name)) {
                throw new IllegalArgumentException(product.getClass().getName() + " has no field " + name);
            }
            arguments[fieldNames.indexOf(name)] = changes.get(name);
        }
        return constructor(product.getClass()).newInstance(arguments);
    }

    /** Returns a new one; arguments that are not given at the end have their defaults. */
    public static Object create(Class type, Object[] first) throws Exception {
        Constructor constructor = constructor(type);
        Object[] arguments = new Object[constructor.getParameterTypes().length];
        System.arraycopy(first, 0, arguments, 0, first.length);
        Class companion = type.getClassLoader().loadClass(type.getName() + "$");
        Object module = companion.getField("MODULE$").get(null);
        for (int i = first.length; i < arguments.length; i++) {
            Method given = companion.getMethod("$lessinit$greater$default$" + (i + 1), new Class[0]);
            arguments[i] = given.invoke(module, new Object[0]);
        }
        return constructor.newInstance(arguments);
    }

    private static Constructor constructor(Class type) {
        Constructor[] all = type.getConstructors();
        Constructor most = all[0];
        for (int i = 1; i < all.length; i++) {
            if (all[i].getParameterTypes().length > most.getParameterTypes().length) {
                most = all[i];
            }
        }
        return most;
    }

    /** Scala 2.12's products do not know the names of their fields; their classes declare them in order. */
    private static String[] names(scala.Product product) throws Exception {
        String[] names = new String[product.productArity()];
        try {
            Method name = product.getClass().getMethod("productElementName", new Class[] {int.class});
            for (int i = 0; i < names.length; i++) {
                names[i] = (String) name.invoke(product, new Object[] {i});
            }
        } catch (NoSuchMethodException error) {
            Field[] fields = product.getClass().getDeclaredFields();
            int count = 0;
            for (int i = 0; i < fields.length && count < names.length; i++) {
                if (!Modifier.isStatic(fields[i].getModifiers()) && fields[i].getName().indexOf('$') < 0) {
                    names[count++] = fields[i].getName();
                }
            }
        }
        return names;
    }
}
