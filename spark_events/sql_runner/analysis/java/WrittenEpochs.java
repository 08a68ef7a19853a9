package io.sparkevents.sqlrunner;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Reflect;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Reads which micro-batches of a query Delta and Iceberg consider written; they skip these, whatever is in them. */
final class WrittenEpochs {
    private static final String QUERY = "spark.sql.streaming.queryId";
    private static final String EPOCH = "spark.sql.streaming.epochId";

    private WrittenEpochs() {}

    /** Returns the last one in a Delta table; -1 for none. */
    static Long inDelta(Object session, String location, String queryId) throws Throwable {
        Class log = Thread.currentThread().getContextClassLoader().loadClass("org.apache.spark.sql.delta.DeltaLog");
        // It reads what others have committed since; a cached snapshot would not know.
        Object both = callStatic(log, "forTableWithSnapshot", session, location);
        Object last = Reflect.map(Reflect.path(both, "_2.transactions")).get(queryId);
        return last == null ? Long.valueOf(-1L) : Long.valueOf((String) last);
    }

    /** Returns the last one in an Iceberg table; -1 for none, null for any other table. */
    static Long inIceberg(Object session, String name, String queryId) throws Throwable {
        Object dataset = Calls.call(session, "table", new Object[] {name});
        LogicalPlan plan = (LogicalPlan) Reflect.path(dataset, "queryExecution.analyzed");
        Object connector = Reflect.get(Reflect.list(plan.collectLeaves()).get(0), "table");
        Object table = Reflect.get(connector, "table");
        if (table == null || !connector.getClass().getName().startsWith("org.apache.iceberg.")) {
            return null;
        }
        Calls.call(table, "refresh");
        Object snapshot = Reflect.get(table, "currentSnapshot");
        while (snapshot != null) {
            Map summary = (Map) Reflect.get(snapshot, "summary");
            if (summary != null && queryId.equals(summary.get(QUERY))) {
                return Long.valueOf((String) summary.get(EPOCH));
            }
            Object parent = Reflect.get(snapshot, "parentId");
            snapshot = parent == null ? null : Calls.call(table, "snapshot", new Object[] {parent});
        }
        return Long.valueOf(-1L);
    }

    private static Object callStatic(Class owner, String name, Object first, String second) throws Throwable {
        Method[] methods = owner.getMethods();
        for (int i = 0; i < methods.length; i++) {
            Class[] types = methods[i].getParameterTypes();
            if (methods[i].getName().equals(name) && types.length == 2 && types[0].isInstance(first)
                && types[1] == String.class) {
                try {
                    return methods[i].invoke(null, new Object[] {first, second});
                } catch (InvocationTargetException error) {
                    throw error.getCause();
                }
            }
        }
        throw new NoSuchMethodException(owner.getName() + "." + name);
    }
}
