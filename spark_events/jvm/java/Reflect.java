package io.sparkevents.jvm;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.URI;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.fs.Path;

/**
 * Reads parts of Spark's plan nodes by name, because the same part is in different places in different Spark versions,
 * and because the classes of connectors are unknown here. Missing parts are null.
 */
public class Reflect {
    private static final HashMap METHODS = new HashMap();

    /** Returns what a method without parameters returns; null where there is none, or where it throws. */
    public static Object get(Object target, String name) {
        Method method = target == null ? null : method(target.getClass(), name);
        try {
            return method == null ? null : option(method.invoke(target, new Object[0]));
        } catch (Throwable error) {
            return null;
        }
    }

    /** Returns what a method with one parameter returns; null where there is none, or where it throws. */
    public static Object call(Object target, String name, Object argument) {
        try {
            return target == null ? null : option(Calls.call(target, name, new Object[] {argument}));
        } catch (Throwable error) {
            return null;
        }
    }

    /** Follows methods one after the other. */
    public static Object path(Object target, String names) {
        String[] parts = names.split("\\.");
        for (int i = 0; i < parts.length; i++) {
            target = get(target, parts[i]);
        }
        return target;
    }

    /** Returns the first of several paths that leads to something, given as {@code path|other.path}. */
    public static Object first(Object target, String paths) {
        String[] alternatives = paths.split("\\|");
        Object value = null;
        for (int i = 0; i < alternatives.length && value == null; i++) {
            value = path(target, alternatives[i]);
        }
        return value;
    }

    /** Returns a field's value, of this class or one above it, private ones too. */
    public static Object field(Object target, String name) {
        for (Class owner = target == null ? null : target.getClass(); owner != null; owner = owner.getSuperclass()) {
            Field[] fields = owner.getDeclaredFields();
            for (int i = 0; i < fields.length; i++) {
                if (fields[i].getName().equals(name) || fields[i].getName().endsWith("$$" + name)) {
                    try {
                        fields[i].setAccessible(true);
                        return option(fields[i].get(target));
                    } catch (Throwable error) {
                        return null;
                    }
                }
            }
        }
        return null;
    }

    public static String text(Object value) {
        return value == null ? null : String.valueOf(value);
    }

    /** Returns a URI as Spark takes a location: without its escapes. */
    public static String location(Object uri) {
        return uri == null ? null : new Path((URI) uri).toString();
    }

    /** Returns the elements of a Scala or Java collection or an array. */
    public static ArrayList list(Object values) {
        ArrayList list = new ArrayList();
        if (values instanceof Object[]) {
            list.addAll(Arrays.asList((Object[]) values));
        } else if (values instanceof java.util.Collection) {
            list.addAll((java.util.Collection) values);
        } else if (values instanceof scala.collection.Iterable) {
            scala.collection.Iterator elements = ((scala.collection.Iterable) values).iterator();
            while (elements.hasNext()) {
                list.add(elements.next());
            }
        }
        return list;
    }

    /** Returns a Scala or Java map with texts for keys and values. */
    public static LinkedHashMap map(Object values) {
        LinkedHashMap map = new LinkedHashMap();
        if (values instanceof Map) {
            for (Iterator entries = ((Map) values).entrySet().iterator(); entries.hasNext();) {
                Map.Entry entry = (Map.Entry) entries.next();
                map.put(text(entry.getKey()), text(entry.getValue()));
            }
        } else if (values instanceof scala.collection.Map) {
            scala.collection.Iterator pairs = ((scala.collection.Map) values).iterator();
            while (pairs.hasNext()) {
                scala.Tuple2 pair = (scala.Tuple2) pairs.next();
                map.put(text(pair._1()), text(pair._2()));
            }
        }
        return map;
    }

    /** Tells whether a class, or one above it, or an interface of theirs has a simple name. */
    public static boolean isA(Object value, String simpleName) {
        return value != null && isClass(value.getClass(), simpleName);
    }

    private static boolean isClass(Class type, String simpleName) {
        if (type == null) {
            return false;
        }
        if (simpleName(type).equals(simpleName) || isClass(type.getSuperclass(), simpleName)) {
            return true;
        }
        Class[] interfaces = type.getInterfaces();
        for (int i = 0; i < interfaces.length; i++) {
            if (isClass(interfaces[i], simpleName)) {
                return true;
            }
        }
        return false;
    }

    /** Class.getSimpleName throws for some of Scala's nested classes. */
    public static String simpleName(Class type) {
        String name = type.getName();
        name = name.substring(name.lastIndexOf('.') + 1);
        if (name.endsWith("$")) {
            name = name.substring(0, name.length() - 1);
        }
        return name.substring(name.lastIndexOf('$') + 1);
    }

    private static Object option(Object value) {
        if (value instanceof scala.Option) {
            return ((scala.Option) value).isDefined() ? ((scala.Option) value).get() : null;
        }
        return value;
    }

    /** Returns a class's method without parameters; null, which is remembered too, where it has none. */
    private static Method method(Class owner, String name) {
        synchronized (METHODS) {
            HashMap ofOwner = (HashMap) METHODS.get(owner);
            if (ofOwner == null) {
                ofOwner = new HashMap();
                METHODS.put(owner, ofOwner);
            }
            if (!ofOwner.containsKey(name)) {
                ofOwner.put(name, find(owner, name));
            }
            return (Method) ofOwner.get(name);
        }
    }

    private static Method find(Class owner, String name) {
        try {
            Method method = owner.getMethod(name, new Class[0]);
            method.setAccessible(true);
            return method;
        } catch (Throwable error) {
            return null;
        }
    }
}
