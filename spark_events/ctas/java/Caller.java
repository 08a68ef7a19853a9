package io.sparkevents.ctas;

/** The thread that runs a statement's calls from Python. After Ctrl-C, Python no longer waits for the one under way. */
public class Caller {
    private static final String CALLS = "py4j.commands.";
    private static final long LOOK_MS = 20L;

    private final Thread thread = Thread.currentThread();

    /** Waits until the call under way has returned or the time is over; returns whether there is none. */
    public boolean awaitReturn(long timeoutMs) throws InterruptedException {
        long end = System.currentTimeMillis() + timeoutMs;
        while (isCalling()) {
            if (System.currentTimeMillis() >= end) {
                return false;
            }
            Thread.sleep(LOOK_MS);
        }
        return true;
    }

    private boolean isCalling() {
        if (thread == Thread.currentThread()) {
            return false;
        }
        StackTraceElement[] stack = thread.getStackTrace();
        for (int i = 0; i < stack.length; i++) {
            if (stack[i].getClassName().startsWith(CALLS)) {
                return true;
            }
        }
        return false;
    }
}
