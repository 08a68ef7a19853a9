package io.sparkevents.lineage;

import io.sparkevents.jvm.Identities;
import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import org.apache.spark.sql.execution.QueryExecution;

/** Sends the records of streaming queries: their lineage, what their foreachBatch writes, and their tags. */
class QueryRecords {
    private static final int MOST_BATCH_WRITES = 100;
    private final PlanRecords records;
    private final HashMap queriesByRun = new HashMap();

    /** A run of a query. */
    private static final class RunningQuery {
        final boolean bounded;
        final Remembered.Batch batch;
        final HashSet batchWrites = new HashSet();
        ArrayList tags = null;

        /** @param batch where the query's columns come from, if it has a function of foreachBatch; or else null */
        RunningQuery(boolean bounded, Remembered.Batch batch) {
            this.bounded = bounded;
            this.batch = batch;
        }
    }

    QueryRecords(PlanRecords records) {
        this.records = records;
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
            record.put("incomplete", "its plan could not be read: " + error);
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
        queriesByRun.put(record.get("runId"), new RunningQuery(bounded, batch));
    }

    /** What a function of foreachBatch writes is written by the query. */
    void addBatchWrite(String run, QueryExecution plan) {
        RunningQuery query = (RunningQuery) queriesByRun.get(run);
        if (query == null || query.batch == null || query.batchWrites.size() >= MOST_BATCH_WRITES) {
            return;
        }
        LinkedHashMap record = create("SparkEventsQueryLineage", run);
        record.put("bounded", query.bounded);
        Statement statement = records.addLineage(record, plan, TableChange.begun(plan), query.batch);
        if (statement != null && statement.hasSinks() && query.batchWrites.add(statement.shape())) {
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

    void end(Object event) {
        queriesByRun.remove(Reflect.text(Reflect.get(event, "runId")));
    }

    private static LinkedHashMap create(String name, String run) {
        LinkedHashMap record = PlanRecords.create(name, System.currentTimeMillis());
        record.put("runId", run);
        return record;
    }
}
