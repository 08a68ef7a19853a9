package io.sparkevents.ctas;

import java.util.concurrent.CountDownLatch;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.unsafe.Platform;

/**
 * The statement as one SQL execution of Spark: it begins before the write and ends after the commit, and everything in
 * between with its id as the root belongs to it. So Spark's listeners see it end only when the table exists.
 */
public class Execution extends scala.runtime.AbstractFunction0 implements Runnable {
    private final QueryExecution plan;
    private final SparkContext context;
    private final CountDownLatch begun = new CountDownLatch(1);
    private final CountDownLatch over = new CountDownLatch(1);
    private final Thread thread;
    private volatile String id = null;
    private volatile Throwable error = null;
    private volatile Throwable failure = null;

    private Execution(QueryExecution plan, SparkContext context) {
        this.plan = plan;
        this.context = context;
        this.thread = new Thread(this, "spark-events-ctas");
        this.thread.setDaemon(true);
    }

    /** Begins; the local properties of the calling thread, such as its job group, are the execution's. */
    public static Execution begin(QueryExecution plan, SparkContext context) throws Throwable {
        Execution execution = new Execution(plan, context);
        execution.thread.start();
        execution.begun.await();
        if (execution.id == null) {
            throw execution.failure;
        }
        return execution;
    }

    /** Returns the id of the root execution: this one, unless it runs within another. */
    public String root() {
        return id;
    }

    /** Ends it, as failed where there is an error; returns once Spark has been told. */
    public void end(Throwable error) throws InterruptedException {
        this.error = error;
        over.countDown();
        thread.join();
    }

    /** Ends it for a reason outside the JVM. */
    public void fail(String message) throws InterruptedException {
        end(new org.apache.spark.SparkException(message));
    }

    public Object apply() {
        id = context.getLocalProperty("spark.sql.execution.root.id");
        begun.countDown();
        try {
            over.await();
        } catch (InterruptedException interrupted) {
            Platform.throwException(interrupted);
        }
        if (error != null) {
            Platform.throwException(error);
        }
        return null;
    }

    public void run() {
        try {
            SQLExecution$.MODULE$.withNewExecutionId(plan, scala.Option.apply("command"), this);
        } catch (Throwable thrown) {
            failure = thrown;
        } finally {
            begun.countDown();
        }
    }
}
