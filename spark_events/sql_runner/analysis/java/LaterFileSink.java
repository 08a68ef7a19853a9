package io.sparkevents.sqlrunner;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Reflect;
import java.lang.reflect.Constructor;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.function.VoidFunction2;

/**
 * Writes micro-batches into a folder to which another query has written before. Spark keeps one log for a folder and
 * takes a batch that is in it as written: a query that begins anew, at batch 0, would lose its first rows. Here its
 * batches come after those that are there.
 */
public final class LaterFileSink implements VoidFunction2 {
    private static final String[] SINKS = {
        "org.apache.spark.sql.execution.streaming.sinks.FileStreamSink",
        "org.apache.spark.sql.execution.streaming.FileStreamSink"
    };
    private final Object sink;
    private final long after;

    public LaterFileSink(Object session, String path, String provider, List partitions, Map options, long after)
        throws Throwable {
        Constructor constructor = sinkClass().getConstructors()[0];
        Class format = formatClass(session, provider);
        Object made = format.getConstructor(new Class[0]).newInstance(new Object[0]);
        this.sink = constructor.newInstance(
            new Object[] {session, path, made, Calls.seq(partitions), Calls.map(options)});
        this.after = after;
    }

    public void call(Object batch, Object id) throws Exception {
        try {
            Long shifted = Long.valueOf(((Number) id).longValue() + after);
            Calls.call(sink, "addBatch", new Object[] {shifted, batch});
        } catch (Exception error) {
            throw error;
        } catch (Throwable error) {
            throw new IllegalStateException(error);
        }
    }

    private static Class sinkClass() throws ClassNotFoundException {
        try {
            return load(SINKS[0]);
        } catch (ClassNotFoundException before41) {
            return load(SINKS[1]);
        }
    }

    private static Class formatClass(Object session, String provider) throws Throwable {
        Object conf = Reflect.path(session, "sessionState.conf");
        Object sources = load("org.apache.spark.sql.execution.datasources.DataSource$").getField("MODULE$").get(null);
        Class found = (Class) Calls.call(sources, "lookupDataSource", new Object[] {provider, conf});
        Object made = found.getConstructor(new Class[0]).newInstance(new Object[0]);
        Object older = Reflect.get(made, "fallbackFileFormat");
        return older == null ? found : (Class) older;
    }

    private static Class load(String name) throws ClassNotFoundException {
        return Thread.currentThread().getContextClassLoader().loadClass(name);
    }
}
