package io.sparkevents.ctas;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Reflect;
import java.util.HashSet;
import java.util.Iterator;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;

/**
 * Counts the tasks of one statement. Tasks of a cancelled job run on for a while, and may still write after the output
 * has been deleted.
 */
public class Tasks extends SparkListener {
    private final SparkContext context;
    private final String root;
    private final HashSet stages = new HashSet();
    private final HashSet running = new HashSet();
    private final HashSet jobs = new HashSet();
    private boolean cancelled = false;

    public Tasks(SparkContext context, String root) {
        this.context = context;
        this.root = root;
        context.addSparkListener(this);
    }

    /** Cancels the jobs of the statement, those too that it has not begun yet. */
    public synchronized void cancel() {
        cancelled = true;
        for (Iterator each = jobs.iterator(); each.hasNext();) {
            context.cancelJob(((Integer) each.next()).intValue());
        }
    }

    /** Waits until no task runs any more or the time is over; returns whether none runs. */
    public synchronized boolean awaitEnd(long timeoutMs) throws InterruptedException {
        long end = System.currentTimeMillis() + timeoutMs;
        while (!running.isEmpty() && System.currentTimeMillis() < end) {
            wait(Math.max(1L, end - System.currentTimeMillis()));
        }
        return running.isEmpty();
    }

    /** Waits until what Spark has posted so far has arrived; tells whether it has. */
    public boolean awaitEvents(long timeoutMs) {
        try {
            Calls.call(Calls.call(context, "listenerBus"), "waitUntilEmpty", new Object[] {Long.valueOf(timeoutMs)});
            return true;
        } catch (Throwable error) {
            return false;
        }
    }

    public void close() {
        context.removeSparkListener(this);
    }

    public synchronized void onJobStart(SparkListenerJobStart event) {
        if (event.properties() != null
            && root.equals(event.properties().getProperty("spark.sql.execution.root.id"))) {
            stages.addAll(Reflect.list(event.stageIds()));
            jobs.add(Integer.valueOf(event.jobId()));
            if (cancelled) {
                context.cancelJob(event.jobId());
            }
        }
    }

    public synchronized void onJobEnd(SparkListenerJobEnd event) {
        jobs.remove(Integer.valueOf(event.jobId()));
    }

    public synchronized void onTaskStart(SparkListenerTaskStart event) {
        if (stages.contains(Integer.valueOf(event.stageId()))) {
            running.add(Long.valueOf(event.taskInfo().taskId()));
        }
    }

    public synchronized void onTaskEnd(SparkListenerTaskEnd event) {
        if (event.taskInfo() != null && running.remove(Long.valueOf(event.taskInfo().taskId()))) {
            notifyAll();
        }
    }
}
