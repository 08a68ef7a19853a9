package io.sparkevents;

import org.apache.spark.scheduler.SparkListenerEvent;

/** Records in Spark's event log how the driver ended, or is about to: Spark itself never learns of it. */
public class ApplicationExit implements SparkListenerEvent {
    private final Integer exitCode;
    private final String exitSignal;
    private final String exception;
    private final boolean assumed;
    private final long time = System.currentTimeMillis();

    public ApplicationExit(Integer exitCode, String exitSignal, String exception, boolean assumed) {
        this.exitCode = exitCode;
        this.exitSignal = exitSignal;
        this.exception = exception;
        this.assumed = assumed;
    }

    /** Null where it is not known. */
    public Integer getExitCode() {
        return exitCode;
    }

    /** The name of the signal, such as SIGTERM; null where none ended it, or none that is known. */
    public String getExitSignal() {
        return exitSignal;
    }

    public String getException() {
        return exception;
    }

    /** Whether it may end differently: an exception is on its way that somebody may still handle, say. */
    public boolean isAssumed() {
        return assumed;
    }

    public long getTime() {
        return time;
    }
}
