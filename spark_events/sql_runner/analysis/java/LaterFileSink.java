package io.sparkevents.sqlrunner;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Reflect;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.sql.execution.datasources.DataSource$;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Writes micro-batches into a folder that another query has already written to. Spark keeps one log per folder and
 * considers a batch in the log as written: a new query, starting at batch 0, would lose its first rows. Here its
 * batches are numbered after the existing ones.
 */
public final class LaterFileSink implements VoidFunction2 {
    private final Object sink;
    private final long batchesBefore;

    public LaterFileSink(
        Object session, String path, String provider, List partitions, Map options, long batchesBefore)
        throws Throwable {
        Class sinkClass = RunnerEntry.classOf(
            "org.apache.spark.sql.execution.streaming.sinks.FileStreamSink",
            "org.apache.spark.sql.execution.streaming.FileStreamSink");
        Object format = newInstance(formatClass(session, provider));
        this.sink = sinkClass.getConstructors()[0].newInstance(
            new Object[] {session, path, format, Calls.seq(partitions), Calls.map(options)});
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

    /** Returns the class that writes a format of files, also where a newer class of the format comes before it. */
    private static Class formatClass(Object session, String provider) throws Throwable {
        SQLConf conf = (SQLConf) Reflect.path(session, "sessionState.conf");
        Class source = DataSource$.MODULE$.lookupDataSource(provider, conf);
        Object fileFormat = Reflect.get(newInstance(source), "fallbackFileFormat");
        return fileFormat == null ? source : (Class) fileFormat;
    }

    private static Object newInstance(Class type) throws Exception {
        return type.getConstructor(new Class[0]).newInstance(new Object[0]);
    }
}
