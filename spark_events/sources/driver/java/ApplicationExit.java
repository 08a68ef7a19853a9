package io.sparkevents;

import org.apache.spark.scheduler.SparkListenerEvent;

/** Records in Spark's event log how the driver's Python ended, or is about to: Spark itself never learns of it. */
public class ApplicationExit implements SparkListenerEvent {
    private final Integer exitCode;
    private final String exception;
    private final long time = System.currentTimeMillis();

    public ApplicationExit(Integer exitCode, String exception) {
        this.exitCode = exitCode;
        this.exception = exception;
    }

    /** Null while an exception is on its way that somebody may still handle. */
    public Integer getExitCode() {
        return exitCode;
    }

    public String getException() {
        return exception;
    }

    public long getTime() {
        return time;
    }
}
