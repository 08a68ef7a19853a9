package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;

/** Sends the records of statements: when they begin, when more is known of what they write, and when they end. */
class StatementRecords {
    private static final String RUN_OF_BATCH = "\nrunId = ";
    private final PlanRecords records;
    private final QueryRecords queries;
    private final HashMap statements = new HashMap();
    private final LinkedHashMap startsWithoutPlan = new LinkedHashMap();
    private final HashMap runsByBatch = new HashMap();
    /** Of executions that a function of foreachBatch runs in threads of its own, which do not know their batch. */
    private final HashMap runsByThread = new HashMap();
    private final HashMap rootsByPart = new HashMap();
    private final HashMap rowsByRoot = new HashMap();

    StatementRecords(PlanRecords records, QueryRecords queries) {
        this.records = records;
        this.queries = queries;
    }

    /** An execution is a part of another one, or a batch of a streaming query, or else a statement. */
    void begin(SparkListenerSQLExecutionStart event, QueryExecution plan, TableChange change) {
        Long id = event.executionId();
        Object root = Reflect.get(event, "rootExecutionId");
        String description = event.description() == null ? "" : event.description();
        int batch = description.indexOf(RUN_OF_BATCH);
        if (root != null && !root.equals(id)) {
            rootsByPart.put(id, root);
            beginPart(id, root, plan, event.time());
        } else if (batch >= 0) {
            String run = description.substring(batch + RUN_OF_BATCH.length()).split("\\s")[0];
            runsByBatch.put(id, run);
            queries.sendTags(run, Reflect.list(event.jobTags()));
        } else if (!beginInThread(id, plan)) {
            LinkedHashMap record = create("SparkEventsStatementCreated", id, event.time());
            record.put("description", PlanRecords.cut(description));
            record.put("call", firstLine(event.details()));
            record.put("tags", Reflect.list(event.jobTags()));
            beginStatement(id, record, plan, change);
        }
    }

    /** Of the stack of its caller: the method of Spark's that was called, whatever the user calls the job. */
    private static String firstLine(String details) {
        return details == null ? "" : details.split("\n", 2)[0];
    }

    /** Adds what a function of foreachBatch does in a thread of its own to its query; tells whether it does. */
    private boolean beginInThread(Long id, QueryExecution plan) {
        String run = plan == null ? null : queries.runOfPlan(plan);
        if (run != null) {
            runsByThread.put(id, run);
            queries.addBatchWrite(run, id, plan);
        }
        return run != null;
    }

    /** Returns the run of the query in whose batch an execution is; null where it is in none. */
    String runOfBatch(String execution) {
        return execution.length() == 0 ? null : (String) runsByBatch.get(Long.valueOf(execution));
    }

    private void beginStatement(Long id, LinkedHashMap record, QueryExecution plan, TableChange change) {
        if (plan == null) {
            // It has ended already; its end brings the plan along.
            startsWithoutPlan.put(id, record);
            statements.put(id, null);
        } else {
            statements.put(id, records.addLineage(record, plan, change, null));
            records.send(record);
        }
    }

    private void beginPart(Long id, Object root, QueryExecution plan, long time) {
        if (plan == null) {
            return;
        }
        String run = (String) runsByBatch.get(root);
        if (run != null) {
            queries.addBatchWrite(run, id, plan);
        } else {
            addPart(root, plan, time);
        }
    }

    /** For an unknown kind of command, one of its parts may reveal where it writes. */
    private void addPart(Object root, QueryExecution plan, long time) {
        Statement whole = (Statement) statements.get(root);
        if (whole == null || whole.hasSinks() || !Reflect.isA(whole.plan, "Command")) {
            return;
        }
        LinkedHashMap record = create("SparkEventsStatementLineage", root, time);
        Statement part = records.addLineage(record, plan, null, null);
        if (part != null && part.hasSinks()) {
            statements.put(root, part);
            records.send(record);
        }
    }

    /**
     * Keeps how many rows a part of a statement has written until the statement ends.
     *
     * @param rows the statement, its part and the number; null where too many plans waited to keep them
     */
    void addRows(Long[] rows) {
        if (rows == null) {
            return;
        }
        HashMap byPart = (HashMap) rowsByRoot.get(rows[0]);
        byPart = byPart == null ? new HashMap() : byPart;
        Long known = (Long) byPart.get(rows[1]);
        byPart.put(rows[1], Long.valueOf(rows[2].longValue() + (known == null ? 0L : known.longValue())));
        rowsByRoot.put(rows[0], byPart);
    }

    void end(SparkListenerSQLExecutionEnd event, QueryExecution plan, TableChange change) {
        Long id = event.executionId();
        String run = (String) runsByBatch.remove(id);
        if (run != null && plan != null && Reflect.get(event, "executionFailure") == null) {
            queries.endBatch(run, plan, event.time());
        }
        Map rows = (Map) rowsByRoot.remove(id);
        Object root = rootsByPart.remove(id);
        Object ofThread = runsByThread.remove(id);
        queries.endBatchWrite((String) (ofThread == null ? runsByBatch.get(root) : ofThread), id);
        Statement whole = (Statement) statements.get(root);
        if (whole != null && plan != null) {
            whole.addAmounts(plan);
        }
        if (!statements.containsKey(id)) {
            return;
        }
        Statement statement = (Statement) statements.remove(id);
        LinkedHashMap start = (LinkedHashMap) startsWithoutPlan.remove(id);
        if (start != null && beginInThread(id, plan)) {
            queries.endBatchWrite((String) runsByThread.remove(id), id);
            return;
        }
        if (start != null) {
            statement = records.addLineage(start, plan, change, null);
            records.send(start);
        }
        LinkedHashMap record = create("SparkEventsStatementEnded", id, event.time());
        Throwable thrown = (Throwable) Reflect.get(event, "executionFailure");
        record.put("failure", PlanRecords.failure(thrown, event.errorMessage()));
        try {
            if (statement != null) {
                finish(statement, plan, change, rows == null ? new HashMap() : rows, record);
            }
        } catch (Throwable error) {
            // That a statement has ended is told in any case.
            records.sendError(error);
        }
        records.send(record);
    }

    /** Adds what is known only now: where tables are that were made or changed, and how much was written. */
    private void finish(
        Statement statement, QueryExecution plan, TableChange change, Map rows, LinkedHashMap end) {
        boolean changed = end.get("failure") == null && statement.update(change, records.knownTables);
        if (statement.writes.locateNewTables() || changed) {
            LinkedHashMap record =
                create("SparkEventsStatementLineage", end.get("executionId"), (Long) end.get("time"));
            record.put("lineage", statement.record());
            records.send(record);
        }
        if (!statement.hasSinks()) {
            records.remember(statement);
        } else if (plan != null) {
            statement.addAmounts(plan);
            statement.addTo(end);
            if (end.get("failure") == null) {
                statement.addVersion(Reflect.get(plan, "sparkSession"), rows, end);
            }
        }
    }

    private static LinkedHashMap create(String name, Object execution, long time) {
        LinkedHashMap record = PlanRecords.create(name, time);
        record.put("executionId", execution);
        return record;
    }

    /** Sends the starts of statements whose end has not brought a plan along. */
    void sendWaiting() {
        ArrayList starts = new ArrayList(startsWithoutPlan.values());
        for (int i = 0; i < starts.size(); i++) {
            LinkedHashMap start = (LinkedHashMap) starts.get(i);
            records.addLineage(start, null, null, null);
            records.send(start);
        }
    }
}
