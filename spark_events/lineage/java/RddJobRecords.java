package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;

/** Sends the records of jobs that write RDDs: when they begin, and when they end. */
class RddJobRecords {
    private final PlanRecords records;
    private final StatementRecords statements;
    private final QueryRecords queries;
    private final HashSet running = new HashSet();

    RddJobRecords(PlanRecords records, StatementRecords statements, QueryRecords queries) {
        this.records = records;
        this.statements = statements;
        this.queries = queries;
    }

    /** @param job null where too many plans waited to keep it */
    void begin(SparkListenerJobStart event, RddJob job) {
        LinkedHashMap record = create("SparkEventsRddJobCreated", event.jobId(), event.time());
        record.put("tags", Arrays.asList(RddJob.property(event, "spark.job.tags").split(",")));
        if (job == null) {
            record.put("incomplete", "its RDDs were not kept: too many plans waited");
        } else if (!addLineage(record, event, job)) {
            return;
        }
        running.add(event.jobId());
        records.send(record);
    }

    /** Adds what a job reads and writes; tells whether it is a job of its own, and not a part of a query's batch. */
    private boolean addLineage(LinkedHashMap record, SparkListenerJobStart event, RddJob job) {
        LinkedHashMap lineage = job.lineage(Streams.session(), records.budgetMs);
        String run = statements.runOfBatch(RddJob.property(event, RddJob.EXECUTION));
        if (run != null) {
            queries.addBatchLineage(run, lineage);
            return false;
        }
        record.put("description", PlanRecords.cut(job.place()));
        record.put("lineage", lineage);
        return true;
    }

    void end(SparkListenerJobEnd event) {
        if (running.remove(event.jobId())) {
            LinkedHashMap record = create("SparkEventsRddJobEnded", event.jobId(), event.time());
            Throwable thrown = (Throwable) Reflect.get(event.jobResult(), "exception");
            record.put("failure", PlanRecords.failure(thrown, scala.Option.apply(null)));
            records.send(record);
        }
    }

    private static LinkedHashMap create(String name, int job, long time) {
        LinkedHashMap record = PlanRecords.create(name, time);
        record.put("jobId", job);
        return record;
    }
}
