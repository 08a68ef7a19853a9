package io.sparkevents.lineage;

import io.sparkevents.jvm.Identities;
import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.execution.QueryExecution;

/**
 * Sends the records of streaming queries: their lineage, what their foreachBatch writes, their tags, and the versions
 * that they write.
 */
class QueryRecords {
    private static final int MOST_BATCH_WRITES = 100;
    /** Python takes it back once a write is known. */
    private static final String UNKNOWN_WRITES = "what the query's function of foreachBatch writes is not known";
    /** Of an interval, within which a version is looked for once: that of a batch of the last moments is known. */
    private static final long PARTS_OF_INTERVAL = 10L;
    private final PlanRecords records;
    private final long intervalMs;
    private final HashMap queriesByRun = new HashMap();

    /** A run of a query. */
    private static final class RunningQuery {
        final boolean bounded;
        final Remembered.Batch batch;
        final HashSet batchWrites = new HashSet();
        /** What the function of foreachBatch writes just now, by the execution that does. */
        final HashMap openWrites = new HashMap();
        final Map sink;
        ArrayList tags = null;
        /** The last batch, of a query whose versions are known. */
        QueryExecution lastBatch = null;
        long lastBatchMs = 0L;
        long previousBatchMs = 0L;
        boolean isLastTold = true;
        boolean isUnknownTold = false;
        long toldMs = 0L;

        /**
         * @param batch where the query's columns come from, if it has a function of foreachBatch; or else null
         * @param sink whose versions are known; null for another one
         */
        RunningQuery(boolean bounded, Remembered.Batch batch, Map sink) {
            this.bounded = bounded;
            this.batch = batch;
            this.sink = sink;
        }

        /** Tells whether a statement is how Spark carries out another one, which has begun and writes the same. */
        boolean isPartOfOpenWrite(Statement statement) {
            for (Iterator open = openWrites.values().iterator(); open.hasNext();) {
                if (((Statement) open.next()).writesAll(statement)) {
                    return true;
                }
            }
            return false;
        }
    }

    /** @param intervalMs how often the version that a query writes is told; 0 where only its last one is */
    QueryRecords(PlanRecords records, long intervalMs) {
        this.records = records;
        this.intervalMs = intervalMs;
    }

    /**
     * @param start the query's start, or the running query itself: both know the run's id
     * @param stream the running query; null where it has ended already
     */
    void begin(Object start, Object stream) {
        LinkedHashMap record = create("SparkEventsQueryLineage", Reflect.text(Reflect.get(start, "runId")));
        try {
            if (stream == null) {
                record.put("incomplete", "the query had ended before its plan was read");
            } else {
                readStream(record, stream);
            }
        } catch (Throwable error) {
            record.put("incomplete", PlanRecords.unread(error));
        }
        records.send(record);
    }

    private void readStream(LinkedHashMap record, Object stream) {
        Identities identities = new Identities(Reflect.get(stream, "sparkSession"));
        Statement statement = records.statement(Streams.plan(stream), identities);
        statement.readStream(Streams.sink(stream, identities));
        boolean bounded = Streams.isBounded(stream);
        record.put("lineage", statement.record());
        record.put("bounded", bounded);
        Remembered.Batch batch = Streams.isForeachBatch(stream)
            ? new Remembered.Batch(statement.facts, Trees.output(statement.plan)) : null;
        Map sink = statement.versionedSink();
        record.put("versioned", sink != null);
        queriesByRun.put(record.get("runId"), new RunningQuery(bounded, batch, sink));
    }

    /** Returns the run of the query whose batch a plan reads; null where it reads none. */
    String runOfPlan(QueryExecution plan) {
        for (Iterator runs = queriesByRun.entrySet().iterator(); runs.hasNext();) {
            Map.Entry run = (Map.Entry) runs.next();
            RunningQuery query = (RunningQuery) run.getValue();
            if (query.batch != null && query.batch.isReadBy(plan.logical())) {
                return (String) run.getKey();
            }
        }
        return null;
    }

    /** What a function of foreachBatch writes is written by the query. */
    void addBatchWrite(String run, Object execution, QueryExecution plan) {
        RunningQuery query = (RunningQuery) queriesByRun.get(run);
        if (query == null || query.batch == null || query.batchWrites.size() >= MOST_BATCH_WRITES) {
            return;
        }
        LinkedHashMap record = create("SparkEventsQueryLineage", run);
        record.put("bounded", query.bounded);
        Statement statement = records.addLineage(record, plan, TableChange.begun(plan), query.batch);
        if (statement == null) {
            return;
        }
        if (!statement.hasSinks()) {
            records.remember(statement);
        } else if (!query.isPartOfOpenWrite(statement)) {
            query.openWrites.put(execution, statement);
            if (!statement.isProvisional()) {
                sendBatchWrite(query, statement, record);
            }
        }
    }

    /** Tells of a new table once its catalog knows where it is. */
    void endBatchWrite(String run, Object execution) {
        RunningQuery query = (RunningQuery) queriesByRun.get(run);
        Statement statement = query == null ? null : (Statement) query.openWrites.remove(execution);
        if (statement != null && statement.isProvisional()) {
            statement.writes.locateNewTables();
            LinkedHashMap record = create("SparkEventsQueryLineage", run);
            record.put("bounded", query.bounded);
            record.put("lineage", statement.record());
            sendBatchWrite(query, statement, record);
        }
    }

    private void sendBatchWrite(RunningQuery query, Statement statement, LinkedHashMap record) {
        if (query.batchWrites.add(statement.shape())) {
            records.send(record);
        }
    }

    /** Adds what a function of foreachBatch writes without SQL: an RDD, say. */
    void addBatchLineage(String run, LinkedHashMap lineage) {
        RunningQuery query = (RunningQuery) queriesByRun.get(run);
        if (query == null || query.batch == null) {
            return;
        }
        query.batch.nameSources((List) lineage.get("sources"));
        if (query.batchWrites.size() < MOST_BATCH_WRITES && query.batchWrites.add(lineage.toString())) {
            LinkedHashMap record = create("SparkEventsQueryLineage", run);
            record.put("bounded", query.bounded);
            record.put("lineage", lineage);
            records.send(record);
        }
    }

    /** Sends a query's tags, which Spark has with its batches alone. */
    void sendTags(String run, ArrayList tags) {
        RunningQuery query = (RunningQuery) queriesByRun.get(run);
        if (query != null && !tags.isEmpty() && !tags.equals(query.tags)) {
            query.tags = tags;
            LinkedHashMap record = create("SparkEventsQueryTags", run);
            record.put("tags", tags);
            records.send(record);
        }
    }

    /** Takes the plan of a batch that has ended, and tells the version that it has written, if it is time. */
    void endBatch(String run, QueryExecution batch, long time) {
        RunningQuery query = (RunningQuery) queriesByRun.get(run);
        if (query != null && query.batch != null) {
            endBatchOfFunction(run, query);
        }
        if (query == null || query.sink == null || BatchCommit.number(batch) == null) {
            return;
        }
        query.previousBatchMs = query.lastBatchMs;
        query.lastBatchMs = time;
        query.lastBatch = batch;
        query.isLastTold = false;
        if (intervalMs > 0L && time - query.toldMs >= intervalMs / PARTS_OF_INTERVAL) {
            query.toldMs = time;
            LinkedHashMap record = create("SparkEventsQueryVersion", run);
            addVersion(record, query);
            records.send(record);
        }
    }

    /** Says that what the function writes is not known, unless one of its writes is. */
    private void endBatchOfFunction(String run, RunningQuery query) {
        query.openWrites.clear();
        if (query.batchWrites.isEmpty() && !query.isUnknownTold) {
            query.isUnknownTold = true;
            LinkedHashMap record = create("SparkEventsQueryLineage", run);
            record.put("incomplete", UNKNOWN_WRITES);
            records.send(record);
        }
    }

    void end(String run) {
        RunningQuery query = (RunningQuery) queriesByRun.remove(run);
        if (query != null && query.sink != null) {
            LinkedHashMap record = create("SparkEventsQueryEnded", run);
            try {
                if (!query.isLastTold) {
                    addVersion(record, query);
                }
            } catch (Throwable error) {
                // That a query has ended is told in any case.
                records.sendError(error);
            }
            records.send(record);
        }
    }

    /** Adds the version that the last batch has committed, if one is known. */
    private static void addVersion(LinkedHashMap record, RunningQuery query) {
        query.isLastTold = true;
        record.put("batchId", Long.valueOf(BatchCommit.number(query.lastBatch)));
        LinkedHashMap version =
            BatchCommit.find(query.lastBatch, query.sink, query.previousBatchMs, query.lastBatchMs);
        if (version != null) {
            version.remove("written");
            version.put("identity", query.sink.get("identity"));
            record.put("versions", new Object[] {version});
        }
    }

    private static LinkedHashMap create(String name, String run) {
        LinkedHashMap record = PlanRecords.create(name, System.currentTimeMillis());
        record.put("runId", run);
        return record;
    }
}
