package io.sparkevents;

import java.util.LinkedHashMap;
import org.apache.spark.scheduler.JobFailed;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;
import org.apache.spark.sql.streaming.StreamingQueryListener;

/** Makes records of those events that are not left to Spark's JsonProtocol, or that it cannot write. */
public class EventRecords {
    private static final int MOST_OF_DESCRIPTION = 4096;

    /** Tells whether an event begins or ends something, or tells of a failure, and so is dropped last. */
    static boolean isLasting(SparkListenerEvent event) {
        String name = event.getClass().getName();
        return event instanceof SparkListenerApplicationEnd || isFailedJob(event)
            || name.endsWith("QueryStartedEvent") || name.endsWith("QueryTerminatedEvent");
    }

    /** Returns an SQL execution with the shape of its plan, which may be huge; null for one that is a part of another. */
    static LinkedHashMap ofExecutionStart(SparkListenerSQLExecutionStart event) throws Exception {
        scala.Option root = event.rootExecutionId();
        if (root.isDefined() && ((Number) root.get()).longValue() != event.executionId()) {
            return null;
        }
        String description = event.description() == null ? "" : event.description();
        LinkedHashMap record = record(event.getClass().getName());
        record.put("executionId", event.executionId());
        record.put("description", RecordTexts.cut(description, MOST_OF_DESCRIPTION));
        record.put("time", event.time());
        record.put("Plan Shape", ExecutionPlans.shape(event.sparkPlanInfo()));
        return record;
    }

    /** Returns an SQL execution's end. */
    static LinkedHashMap ofExecutionEnd(SparkListenerSQLExecutionEnd event) {
        LinkedHashMap record = record(event.getClass().getName());
        record.put("executionId", event.executionId());
        record.put("time", event.time());
        if (event.errorMessage().isDefined()) {
            record.put("errorMessage", event.errorMessage().get());
        }
        return record;
    }

    /** Returns the record of a failed job or of a query's end as JsonProtocol writes it; null for any other. */
    static LinkedHashMap ofEnd(SparkListenerEvent event) {
        if (isFailedJob(event)) {
            return ofFailedJob((SparkListenerJobEnd) event);
        }
        if (event instanceof StreamingQueryListener.QueryTerminatedEvent) {
            StreamingQueryListener.QueryTerminatedEvent query = (StreamingQueryListener.QueryTerminatedEvent) event;
            LinkedHashMap record = record(event.getClass().getName());
            record.put("id", query.id().toString());
            record.put("runId", query.runId().toString());
            record.put("exception", query.exception().isDefined() ? query.exception().get() : null);
            return record;
        }
        return null;
    }

    private static LinkedHashMap ofFailedJob(SparkListenerJobEnd job) {
        LinkedHashMap exception = new LinkedHashMap();
        exception.put("Message", ((JobFailed) job.jobResult()).exception().getMessage());
        LinkedHashMap result = new LinkedHashMap();
        result.put("Result", "JobFailed");
        result.put("Exception", exception);
        LinkedHashMap record = record("SparkListenerJobEnd");
        record.put("Job ID", job.jobId());
        record.put("Completion Time", job.time());
        record.put("Job Result", result);
        return record;
    }

    private static boolean isFailedJob(SparkListenerEvent event) {
        return event instanceof SparkListenerJobEnd && ((SparkListenerJobEnd) event).jobResult() instanceof JobFailed;
    }

    private static LinkedHashMap record(String event) {
        LinkedHashMap record = new LinkedHashMap();
        record.put("Event", event);
        return record;
    }
}
