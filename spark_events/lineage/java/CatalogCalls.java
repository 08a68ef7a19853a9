package io.sparkevents.lineage;

import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Asks catalogs on a daemon thread, and waits for a moment only: a catalog that does not answer holds up neither the
 * listener bus, which Spark waits for when it stops, nor the end of the process. While it does not, none is asked.
 */
public final class CatalogCalls implements ThreadFactory {
    private static final long PATIENCE_MS = 5000L;
    private static final ThreadPoolExecutor THREAD = new ThreadPoolExecutor(
        0, 1, 60L, TimeUnit.SECONDS, new LinkedBlockingQueue(), new CatalogCalls());
    private static Future last = null;

    /** Returns what a call returns; null where it fails or takes too long, or where one before it still does. */
    public static synchronized Object answer(Callable call) {
        if (last != null && !last.isDone()) {
            return null;
        }
        try {
            last = THREAD.submit(call);
            return last.get(PATIENCE_MS, TimeUnit.MILLISECONDS);
        } catch (Throwable unanswered) {
            return null;
        }
    }

    public Thread newThread(Runnable task) {
        Thread thread = new Thread(task, "spark-events-catalog");
        thread.setDaemon(true);
        return thread;
    }
}
