package io.sparkevents.jvm;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.streaming.StreamingQuery;

/**
 * The streaming queries that run in a driver, whatever session has started them. Spark lists them by the state that
 * sessions share, and those of a Spark Connect server do not share the state of the driver's own session. Each has a
 * thread, which belongs to its query.
 */
public class StreamingQueries {
    private static final String THREAD = ".QueryExecutionThread";
    private static final int MORE = 64;

    /** Returns all of them. */
    public static ArrayList running() {
        ArrayList running = new ArrayList();
        for (Iterator threads = threads().iterator(); threads.hasNext();) {
            StreamingQuery query = queryOf((Thread) threads.next());
            if (query != null && query.isActive()) {
                running.add(query);
            }
        }
        return running;
    }

    /** Returns the one with an id; null where it has ended. */
    public static Object withId(String id) {
        for (Iterator queries = running().iterator(); queries.hasNext();) {
            StreamingQuery query = (StreamingQuery) queries.next();
            if (query.id().toString().equals(id)) {
                return query;
            }
        }
        return null;
    }

    private static List threads() {
        ThreadGroup group = Thread.currentThread().getThreadGroup();
        while (group.getParent() != null) {
            group = group.getParent();
        }
        for (int size = group.activeCount() + MORE;; size *= 2) {
            Thread[] threads = new Thread[size];
            int count = group.enumerate(threads);
            if (count < size) { // it leaves out what has no room
                return Arrays.asList(threads).subList(0, count);
            }
        }
    }

    /** Returns the query that a thread executes; null for any other thread, or where a version of Spark differs. */
    private static StreamingQuery queryOf(Thread thread) {
        Class above = thread.getClass().getSuperclass();
        if (above == null || !above.getName().endsWith(THREAD)) {
            return null;
        }
        try {
            Field query = thread.getClass().getDeclaredField("$outer");
            query.setAccessible(true);
            return (StreamingQuery) query.get(thread);
        } catch (Exception error) {
            return null;
        }
    }
}
