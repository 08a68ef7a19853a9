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
    private final long batchesBefore;

    public LaterFileSink(
        Object session, String path, String provider, List partitions, Map options, long batchesBefore)
        throws Throwable {
        Constructor constructor = sinkClass().getConstructors()[0];
        Class format = formatClass(session, provider);
        Object formatInstance = format.getConstructor(new Class[0]).newInstance(new Object[0]);
        this.sink = constructor.newInstance(
            new Object[] {session, path, formatInstance, Calls.seq(partitions), Calls.map(options)});
        this.batchesBefore = batchesBefore;
    }

    public void call(Object batch, Object id) throws Exception {
        try {
            Long shifted = Long.valueOf(((Number) id).longValue() + batchesBefore);
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

    /** Returns the class that writes a format of files, also where a newer class of the format comes before it. */
    private static Class formatClass(Object session, String provider) throws Throwable {
        Object conf = Reflect.path(session, "sessionState.conf");
        Object sources = load("org.apache.spark.sql.execution.datasources.DataSource$").getField("MODULE$").get(null);
        Class source = (Class) Calls.call(sources, "lookupDataSource", new Object[] {provider, conf});
        Object instance = source.getConstructor(new Class[0]).newInstance(new Object[0]);
        Object fileFormat = Reflect.get(instance, "fallbackFileFormat");
        return fileFormat == null ? source : (Class) fileFormat;
    }

    private static Class load(String name) throws ClassNotFoundException {
        return Thread.currentThread().getContextClassLoader().loadClass(name);
    }
}
