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
    private static final CatalogCalls CATALOGS = new CatalogCalls();
    /** Asks the logs of tables, which the listener bus must not wait for. */
    static final CatalogCalls LOGS = new CatalogCalls();
    private final ThreadPoolExecutor thread =
        new ThreadPoolExecutor(0, 1, 60L, TimeUnit.SECONDS, new LinkedBlockingQueue(), this);
    private Future last = null;

    /** Returns what a call of a catalog returns; see {@code ask}. */
    public static Object answer(Callable call) {
        return CATALOGS.ask(call);
    }

    /** Returns what a call returns; null where it fails or takes too long, or where one before it still does. */
    synchronized Object ask(Callable call) {
        if (last != null && !last.isDone()) {
            return null;
        }
        try {
            last = thread.submit(call);
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
