package io.sparkevents.ctas;

/**
 * The thread that runs a statement's calls from Python. After Ctrl-C, Python no longer waits for the one under way, and
 * makes its next calls by another connection: the thread of the first one ends when its call has returned.
 */
public class Caller {
    private static final String CALLS = "py4j.commands.";
    private static final long LOOK_MS = 20L;
    /** Where connections are shared (PYSPARK_PIN_THREAD=false), the thread stays: it is free after so long without a call. */
    private static final long FREE_MS = 1000L;

    private final Thread thread = Thread.currentThread();
    private long idleSinceMs = 0L;

    /** Waits until the call under way has returned or the time is over; returns whether there is none. */
    public synchronized boolean awaitReturn(long timeoutMs) throws InterruptedException {
        long end = System.currentTimeMillis() + timeoutMs;
        while (mayCall()) {
            if (System.currentTimeMillis() >= end) {
                return false;
            }
            Thread.sleep(LOOK_MS);
        }
        return true;
    }

    /** Returns whether a call runs, or may be about to begin: it may have been sent, and not been read yet. */
    private boolean mayCall() {
        if (thread == Thread.currentThread() || !thread.isAlive()) {
            return false;
        }
        StackTraceElement[] stack = thread.getStackTrace();
        for (int i = 0; i < stack.length; i++) {
            if (stack[i].getClassName().startsWith(CALLS)) {
                idleSinceMs = 0L;
                return true;
            }
        }
        long now = System.currentTimeMillis();
        if (idleSinceMs == 0L) {
            idleSinceMs = now;
        }
        return now - idleSinceMs < FREE_MS;
    }
}
