package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import io.sparkevents.jvm.StreamingQueries;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;

/**
 * Reads the plan of each statement and of each streaming query when it begins, on a thread of its own, and hands what
 * it says to the bridge as records. No statement waits for it, and this listener's queue of the bus only where a
 * catalog has to be asked before the next statement changes the table again; see CatalogCalls.
 */
public class PlanListener extends SparkListener implements Runnable {
    private static final int MOST_WAITING_PLANS = 1000;
    private static final long STACK_BYTES = 64L << 20;

    private final Consumer sink;
    private final PlanRecords records;
    private final QueryRecords queries;
    private final StatementRecords statements;
    private final RddJobRecords rddJobs;
    private final SparkContext context;
    private final StageRows stageRows = new StageRows();
    private final LinkedBlockingQueue waiting = new LinkedBlockingQueue();
    private volatile long postedCount = 0;
    private volatile long readCount = 0;
    private volatile boolean ended = false;

    /**
     * @param sink takes the records, each a Map; a Throwable, where one could not be made
     * @param budgetMs how long one plan may be read for its columns
     * @param intervalMs how often the version that a streaming query writes is told; 0 where only its last one is
     * @param context whose scheduler knows the RDDs of jobs
     */
    public PlanListener(Consumer sink, long budgetMs, long intervalMs, SparkContext context) {
        this.sink = sink;
        this.records = new PlanRecords(sink, budgetMs);
        this.queries = new QueryRecords(records, intervalMs);
        this.statements = new StatementRecords(records, queries);
        this.rddJobs = new RddJobRecords(records, statements, queries);
        this.context = context;
        Thread thread = new Thread(null, this, "spark-events-lineage", STACK_BYTES);
        thread.setDaemon(true);
        thread.start();
    }

    /** Waits until all that was posted has been read, or the time is over. */
    public void await(long timeoutMs) throws InterruptedException {
        long end = System.currentTimeMillis() + timeoutMs;
        while (readCount < postedCount && System.currentTimeMillis() < end) {
            Thread.sleep(5L);
        }
    }

    /** Reads no more, and lets the thread end. */
    public void close() {
        ended = true;
        post(null, null, null); // wakes the thread
    }

    // -- on the listener bus -----------------------------------------------------------------------------------

    public void onOtherEvent(SparkListenerEvent event) {
        if (event instanceof SparkListenerSQLExecutionStart) {
            // Spark forgets it with the execution's end.
            long id = ((SparkListenerSQLExecutionStart) event).executionId();
            QueryExecution plan = SQLExecution$.MODULE$.getQueryExecution(id);
            post(event, plan, TableChange.begun(plan));
        } else if (event instanceof SparkListenerSQLExecutionEnd) {
            QueryExecution plan = (QueryExecution) Reflect.get(event, "qe");
            post(event, plan, TableChange.ended(plan));
        } else if (Reflect.isA(event, "QueryStartedEvent")) {
            post(event, StreamingQueries.withId(Reflect.text(Reflect.get(event, "id"))), null);
        } else if (Reflect.isA(event, "QueryTerminatedEvent")) {
            post(event, null, null);
        }
    }

    public void onJobStart(SparkListenerJobStart event) {
        RddJob job = RddJob.begun(event, context);
        if (job != null) {
            post(event, job, null);
        }
    }

    public void onStageSubmitted(SparkListenerStageSubmitted event) {
        stageRows.begun(event);
    }

    public void onStageCompleted(SparkListenerStageCompleted event) {
        Long[] rows = stageRows.ended(event);
        if (rows != null) {
            post(event, rows, null);
        }
    }

    public void onJobEnd(SparkListenerJobEnd event) {
        post(event, null, null);
    }

    public void onApplicationEnd(SparkListenerApplicationEnd event) {
        post(event, null, null);
    }

    /** Reads the queries that run already. */
    public void beginRunning() {
        List streams = StreamingQueries.running();
        for (int i = 0; i < streams.size(); i++) {
            post(null, streams.get(i), null);
        }
    }

    /** A plan holds memory while it waits: beyond a bound, events wait without theirs. */
    private synchronized void post(SparkListenerEvent event, Object plan, TableChange change) {
        postedCount++;
        boolean keepsPlan = !ended && (event == null || waiting.size() < MOST_WAITING_PLANS);
        waiting.add(new Object[] {event, keepsPlan ? plan : null, keepsPlan ? change : null});
    }

    // -- on its own thread -------------------------------------------------------------------------------------

    public void run() {
        while (!ended) {
            try {
                Object[] next = (Object[]) waiting.take();
                if (ended) {
                    return;
                }
                read((SparkListenerEvent) next[0], next[1], (TableChange) next[2]);
            } catch (InterruptedException interrupted) {
                return;
            } catch (Throwable error) {
                sink.accept(error);
            }
            readCount++;
        }
    }

    private void read(SparkListenerEvent event, Object plan, TableChange change) {
        if (event == null) {
            queries.begin(plan, plan);
        } else if (event instanceof SparkListenerSQLExecutionStart) {
            statements.begin((SparkListenerSQLExecutionStart) event, (QueryExecution) plan, change);
        } else if (event instanceof SparkListenerSQLExecutionEnd) {
            statements.end((SparkListenerSQLExecutionEnd) event, (QueryExecution) plan, change);
        } else if (event instanceof SparkListenerStageCompleted) {
            statements.addRows((Long[]) plan);
        } else if (event instanceof SparkListenerJobStart) {
            rddJobs.begin((SparkListenerJobStart) event, (RddJob) plan);
        } else if (event instanceof SparkListenerJobEnd) {
            rddJobs.end((SparkListenerJobEnd) event);
        } else if (Reflect.isA(event, "QueryStartedEvent")) {
            queries.begin(event, plan);
        } else if (Reflect.isA(event, "QueryTerminatedEvent")) {
            queries.end(Reflect.text(Reflect.get(event, "runId")));
        } else if (event instanceof SparkListenerApplicationEnd) {
            statements.sendWaiting();
            records.send(PlanRecords.create("SparkEventsLineageEnded", System.currentTimeMillis()));
            ended = true;
        }
    }
}
