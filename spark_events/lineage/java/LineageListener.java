package io.sparkevents.lineage;

import io.sparkevents.jvm.Identities;
import io.sparkevents.jvm.Reflect;
import io.sparkevents.jvm.Written;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;

/**
 * Reads the plan of each statement and of each streaming query when it begins, on a thread of its own, and hands what
 * it found to the bridge as records. Neither the statement nor the listener bus waits for it.
 */
public class LineageListener extends SparkListener implements Runnable {
    private static final int MOST_WAITING = 1000;
    private static final int MOST_BATCH_WRITES = 100;
    private static final int MOST_OF_TEXT = 65536;
    private static final long STACK_BYTES = 64L << 20;

    private final Consumer sink;
    private final long budgetMs;
    private final LinkedBlockingQueue waiting = new LinkedBlockingQueue();
    private final Remembered remembered = new Remembered();
    private final HashMap running = new HashMap();
    private final LinkedHashMap untold = new LinkedHashMap();
    private final HashMap batchRuns = new HashMap();
    private final HashMap roots = new HashMap();
    private final HashMap queries = new HashMap();
    private volatile long posted = 0;
    private volatile long done = 0;
    private boolean ended = false;

    /**
     * @param sink takes the records, each a Map; a Throwable, where one could not be made
     * @param budgetMs how long one plan may be read for its columns
     */
    public LineageListener(Consumer sink, long budgetMs) {
        this.sink = sink;
        this.budgetMs = budgetMs;
        Thread thread = new Thread(null, this, "spark-events-lineage", STACK_BYTES);
        thread.setDaemon(true);
        thread.start();
    }

    /** Waits until all that was posted has been read, or the time is over. */
    public void await(long timeoutMs) throws InterruptedException {
        long end = System.currentTimeMillis() + timeoutMs;
        while (done < posted && System.currentTimeMillis() < end) {
            Thread.sleep(5L);
        }
    }

    // -- on the listener bus -----------------------------------------------------------------------------------

    public void onOtherEvent(SparkListenerEvent event) {
        String name = event.getClass().getName();
        Object plan = null;
        if (event instanceof SparkListenerSQLExecutionStart) {
            // Spark forgets it with the execution's end.
            plan = SQLExecution$.MODULE$.getQueryExecution(((SparkListenerSQLExecutionStart) event).executionId());
        } else if (event instanceof SparkListenerSQLExecutionEnd) {
            plan = Reflect.get(event, "qe");
        } else if (name.endsWith("$QueryStartedEvent")) {
            plan = Streams.find(Reflect.text(Reflect.get(event, "id")));
        } else if (!name.endsWith("$QueryTerminatedEvent")) {
            return;
        }
        // What waits holds plans: beyond a bound it is without.
        post(event, waiting.size() < MOST_WAITING ? plan : null);
    }

    public void onApplicationEnd(SparkListenerApplicationEnd event) {
        post(event, null);
    }

    /** Reads the queries that run already. */
    public void beginRunning() {
        for (Iterator each = Streams.running().iterator(); each.hasNext();) {
            post(null, each.next());
        }
    }

    private synchronized void post(SparkListenerEvent event, Object plan) {
        posted++;
        waiting.add(new Object[] {event, plan});
    }

    // -- on its own thread -------------------------------------------------------------------------------------

    public void run() {
        while (!ended) {
            try {
                Object[] next = (Object[]) waiting.take();
                take((SparkListenerEvent) next[0], next[1]);
            } catch (InterruptedException interrupted) {
                return;
            } catch (Throwable error) {
                sink.accept(error);
            }
            done++;
        }
    }

    private void take(SparkListenerEvent event, Object plan) {
        if (event == null) {
            beginQuery(plan, plan);
        } else if (event instanceof SparkListenerSQLExecutionStart) {
            begin((SparkListenerSQLExecutionStart) event, (QueryExecution) plan);
        } else if (event instanceof SparkListenerSQLExecutionEnd) {
            end((SparkListenerSQLExecutionEnd) event, (QueryExecution) plan);
        } else if (event.getClass().getName().endsWith("$QueryStartedEvent")) {
            beginQuery(event, plan);
        } else if (event instanceof SparkListenerApplicationEnd) {
            for (Iterator each = untold.values().iterator(); each.hasNext();) {
                LinkedHashMap created = (LinkedHashMap) each.next();
                addLineage(created, null, null);
                sink.accept(created);
            }
            sink.accept(record("SparkEventsLineageEnded", System.currentTimeMillis()));
            ended = true;
        } else {
            queries.remove(Reflect.text(Reflect.get(event, "runId")));
        }
    }

    private void begin(SparkListenerSQLExecutionStart event, QueryExecution plan) {
        Long id = Long.valueOf(event.executionId());
        scala.Option root = event.rootExecutionId();
        String description = event.description() == null ? "" : event.description();
        int batch = description.indexOf("\nrunId = ");
        if (root.isDefined() && ((Number) root.get()).longValue() != id.longValue()) {
            roots.put(id, root.get());
            Object run = batchRuns.get(root.get());
            if (run != null && plan != null) {
                beginInBatch((String) run, plan);
            } else if (plan != null) {
                beginPart(root.get(), plan, event.time());
            }
        } else if (batch >= 0) {
            String run = description.substring(batch + 9).split("\\s")[0];
            batchRuns.put(id, run);
            tagQuery(run, Reflect.list(event.jobTags()));
        } else {
            LinkedHashMap record = record("SparkEventsStatementCreated", event.time());
            record.put("executionId", id);
            record.put("description", cut(description));
            record.put("tags", Reflect.list(event.jobTags()));
            if (plan == null) {
                // It has ended already; its end brings the plan along.
                untold.put(id, record);
                running.put(id, null);
            } else {
                running.put(id, addLineage(record, plan, null));
                sink.accept(record);
            }
        }
    }

    /** Where a command of a kind that is not known here writes, a part of it may tell. */
    private void beginPart(Object root, QueryExecution plan, long time) {
        Statement whole = (Statement) running.get(root);
        if (whole == null || whole.hasSinks() || !Reflect.isA(whole.plan, "Command")) {
            return;
        }
        LinkedHashMap record = record("SparkEventsStatementLineage", time);
        record.put("executionId", root);
        Statement part = addLineage(record, plan, null);
        if (part != null && part.hasSinks()) {
            running.put(root, part);
            sink.accept(record);
        }
    }

    private void end(SparkListenerSQLExecutionEnd event, QueryExecution plan) {
        Long id = Long.valueOf(event.executionId());
        batchRuns.remove(id);
        Object root = roots.remove(id);
        if (root != null && plan != null && running.get(root) != null) {
            ((Statement) running.get(root)).wrote(Written.by(plan));
        }
        if (!running.containsKey(id)) {
            return;
        }
        Statement statement = (Statement) running.remove(id);
        LinkedHashMap created = (LinkedHashMap) untold.remove(id);
        if (created != null) {
            statement = addLineage(created, plan, null);
            sink.accept(created);
        }
        if (statement != null && statement.locate()) {
            LinkedHashMap record = record("SparkEventsStatementLineage", event.time());
            record.put("executionId", id);
            record.put("lineage", statement.record());
            sink.accept(record);
        }
        if (statement != null && !statement.hasSinks()) {
            remembered.remember(statement.walker, statement.plan.output());
        }
        LinkedHashMap record = record("SparkEventsStatementEnded", event.time());
        record.put("executionId", id);
        record.put("failure", failure((Throwable) Reflect.get(event, "executionFailure"), event.errorMessage()));
        if (statement != null && statement.hasSinks() && plan != null) {
            statement.wrote(Written.by(plan));
            record.put("written", statement.written());
        }
        sink.accept(record);
    }

    /** Takes a query's start, or the running query itself: both know the run's id. */
    private void beginQuery(Object event, Object stream) {
        LinkedHashMap record = record("SparkEventsQueryLineage", System.currentTimeMillis());
        String run = Reflect.text(Reflect.get(event, "runId"));
        record.put("runId", run);
        try {
            if (stream == null) {
                record.put("incomplete", "the query had ended before its plan was read");
            } else {
                readStream(record, run, stream);
            }
        } catch (Throwable error) {
            record.put("incomplete", "its plan could not be read: " + error);
        }
        sink.accept(record);
    }

    private void readStream(LinkedHashMap record, String run, Object stream) {
        Identities identities = new Identities(Reflect.get(stream, "sparkSession"));
        LogicalPlan plan = Streams.plan(stream);
        Statement statement = new Statement(plan, identities, remembered, budgetMs);
        statement.readStream(Streams.sink(stream, identities));
        record.put("lineage", statement.record());
        record.put("bounded", Boolean.valueOf(Streams.isBounded(stream)));
        List[] batch = Streams.isForeachBatch(stream) ? Remembered.batch(statement.walker, plan.output()) : null;
        queries.put(run, new Object[] {batch, new HashSet(), null, record.get("bounded")});
    }

    /** What a function of foreachBatch writes is written by the query. */
    private void beginInBatch(String run, QueryExecution plan) {
        Object[] query = (Object[]) queries.get(run);
        if (query == null || query[0] == null || ((HashSet) query[1]).size() >= MOST_BATCH_WRITES) {
            return;
        }
        LinkedHashMap record = record("SparkEventsQueryLineage", System.currentTimeMillis());
        record.put("runId", run);
        record.put("bounded", query[3]);
        Statement statement = addLineage(record, plan, (List[]) query[0]);
        if (statement != null && statement.hasSinks() && ((HashSet) query[1]).add(statement.record().toString())) {
            sink.accept(record);
        }
    }

    private void tagQuery(String run, ArrayList tags) {
        Object[] query = (Object[]) queries.get(run);
        if (query != null && !tags.isEmpty() && !tags.equals(query[2])) {
            query[2] = tags;
            LinkedHashMap record = record("SparkEventsQueryTags", System.currentTimeMillis());
            record.put("runId", run);
            record.put("tags", tags);
            sink.accept(record);
        }
    }

    private Statement read(QueryExecution plan, List[] batch) {
        Statement statement =
            new Statement(plan.analyzed(), new Identities(Reflect.get(plan, "sparkSession")), remembered, budgetMs);
        remembered.inBatch(batch);
        try {
            statement.read();
        } finally {
            remembered.inBatch(null);
        }
        return statement;
    }

    // ----------------------------------------------------------------------------------------------------------

    /** Reads a plan into a record; returns null, and says so in the record, where that cannot be done. */
    private Statement addLineage(LinkedHashMap record, QueryExecution plan, List[] batch) {
        try {
            if (plan == null) {
                record.put("incomplete", "its plan was not kept: it had ended, or too many plans waited");
                return null;
            }
            Statement statement = read(plan, batch);
            record.put("lineage", statement.record());
            record.put("sql", cut(statement.sql()));
            return statement;
        } catch (Throwable error) {
            record.put("incomplete", "its plan could not be read: " + error);
            return null;
        }
    }

    private static LinkedHashMap failure(Throwable thrown, scala.Option message) {
        String text = message.isDefined() ? String.valueOf(message.get()) : "";
        if (thrown == null && text.length() == 0) {
            return null;
        }
        LinkedHashMap failure = new LinkedHashMap();
        failure.put("text", text);
        if (thrown != null) {
            StringWriter stack = new StringWriter();
            thrown.printStackTrace(new PrintWriter(stack));
            failure.put("text", cut(stack.toString()));
            Object condition = Reflect.get(thrown, "getCondition");
            condition = condition == null ? Reflect.get(thrown, "getErrorClass") : condition;
            failure.put("errorClass", Reflect.text(condition));
            failure.put("sqlState", Reflect.text(Reflect.get(thrown, "getSqlState")));
        }
        return failure;
    }

    private static LinkedHashMap record(String name, long time) {
        LinkedHashMap record = new LinkedHashMap();
        record.put("Event", name);
        record.put("time", Long.valueOf(time));
        return record;
    }

    private static String cut(String text) {
        return text == null ? null : text.substring(0, Math.min(text.length(), MOST_OF_TEXT));
    }
}
