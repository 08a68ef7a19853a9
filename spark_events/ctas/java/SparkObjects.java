package io.sparkevents.ctas;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Products;
import java.util.HashMap;
import org.apache.spark.sql.execution.QueryExecution;

/** Reaches Scala's objects, changes Spark's case classes, and makes executions of plans. */
final class SparkObjects {
    /** Returns a copy of a case class; the changes are the name of a field, its value, the next name, and so on. */
    static Object copy(Object product, Object[] changes) throws Exception {
        HashMap values = new HashMap();
        for (int i = 0; i < changes.length; i += 2) {
            values.put(changes[i], changes[i + 1]);
        }
        return Products.copy(product, values);
    }

    static Class load(String name) throws ClassNotFoundException {
        return SparkObjects.class.getClassLoader().loadClass(name);
    }

    /** Returns the Scala object of a name. */
    static Object module(String name) throws Exception {
        return load(name + "$").getField("MODULE$").get(null);
    }

    /** Returns the execution of a plan, which has not begun; the mode tells whether a command runs at once. */
    static QueryExecution execution(Object session, Object plan, Object mode) throws Throwable {
        Object state = Calls.call(session, "sessionState");
        return (QueryExecution) Calls.call(state, "executePlan", new Object[] {plan, mode});
    }

    /** Returns the plan of a statement, as the session's parser has it. */
    static Object parsed(Object session, String sql) throws Throwable {
        Object parser = Calls.call(Calls.call(session, "sessionState"), "sqlParser");
        return Calls.call(parser, "parsePlan", new Object[] {sql});
    }
}
