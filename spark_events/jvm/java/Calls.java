package io.sparkevents.jvm;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.python.PythonUtils;

/** Calls methods whose classes differ from one Spark to the next, and speaks Scala's collections. */
public final class Calls {
    private static final com.fasterxml.jackson.databind.ObjectMapper JSON =
        new com.fasterxml.jackson.databind.ObjectMapper();

    /** Calls a method by its name and the number of its arguments; throws what it throws. */
    public static Object call(Object target, String name, Object[] arguments) throws Throwable {
        Method[] methods = target.getClass().getMethods();
        for (int i = 0; i < methods.length; i++) {
            if (methods[i].getName().equals(name) && takes(methods[i].getParameterTypes(), arguments)) {
                methods[i].setAccessible(true);
                try {
                    return methods[i].invoke(target, arguments);
                } catch (InvocationTargetException error) {
                    throw error.getCause();
                }
            }
        }
        throw new NoSuchMethodException(target.getClass().getName() + "." + name + " with " + arguments.length);
    }

    public static Object call(Object target, String name) throws Throwable {
        return call(target, name, new Object[0]);
    }

    private static boolean takes(Class[] types, Object[] arguments) {
        if (types.length != arguments.length) {
            return false;
        }
        for (int i = 0; i < types.length; i++) {
            if (arguments[i] != null && !types[i].isPrimitive() && !types[i].isInstance(arguments[i])) {
                return false;
            }
        }
        return true;
    }

    public static Object seq(List values) {
        return PythonUtils.toSeq(values == null ? new java.util.ArrayList() : values).toList();
    }

    public static Object map(Map values) {
        return PythonUtils.toScalaMap(values == null ? new java.util.HashMap() : values);
    }

    public static scala.Option option(Object value) {
        return scala.Option.apply(value);
    }

    public static String json(Object value) throws java.io.IOException {
        return JSON.writeValueAsString(value);
    }

    public static Map parse(String json) throws java.io.IOException {
        return (Map) JSON.readValue(json, Map.class);
    }
}
