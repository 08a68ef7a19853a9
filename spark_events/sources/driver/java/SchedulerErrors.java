package io.sparkevents;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.scheduler.SparkListener;

/**
 * Hears what the part of Spark that talks to the cluster manager logs as an error. Why a cluster has given an
 * application up, Spark tells nobody else: while no job runs, there is none that could fail of it, and while one runs,
 * its end may come too late.
 *
 * By reflection: a driver may log with something else than Log4j, and then all else has to work.
 */
public class SchedulerErrors implements InvocationHandler {
    private static final String LOGGERS = "org.apache.spark.scheduler.cluster.";
    // In a standalone cluster's cluster mode: that the driver's worker has gone, with which the driver goes.
    private static final String WORKER_WATCHER = "org.apache.spark.deploy.worker.WorkerWatcher";
    // In YARN's cluster mode: how the driver's Python ended.
    private static final String APPLICATION_MASTER = "org.apache.spark.deploy.yarn.ApplicationMaster";
    private static final Pattern EXITED = Pattern.compile("User application exited with status (\\d{1,3})");
    private static final String LOG4J = "org.apache.logging.log4j.";
    // From the error to the end of the application: Spark stops at once, but its bus may be behind.
    private static final long RECENT_MS = 60000;
    private static final int MOST_CHARS = 4096;

    private final String name = "spark-events-" + System.identityHashCode(this);
    private Object root = null;
    private volatile String said = "";
    private volatile long saidAt = 0;
    private volatile String saidOfWorker = "";
    private volatile Integer exitCode = null;

    /** Listens, where Spark logs with Log4j. */
    void listen() {
        try {
            ClassLoader loader = SparkListener.class.getClassLoader();
            Class appender = loader.loadClass(LOG4J + "core.Appender");
            Class level = loader.loadClass(LOG4J + "Level");
            Class filter = loader.loadClass(LOG4J + "core.Filter");
            Object context = loader.loadClass(LOG4J + "LogManager")
                .getMethod("getContext", new Class[] {ClassLoader.class, boolean.class})
                .invoke(null, new Object[] {loader, Boolean.FALSE});
            Object configuration = context.getClass().getMethod("getConfiguration", new Class[0])
                .invoke(context, new Object[0]);
            root = loader.loadClass(LOG4J + "core.config.Configuration").getMethod("getRootLogger", new Class[0])
                .invoke(configuration, new Object[0]);
            Object listener = Proxy.newProxyInstance(loader, new Class[] {appender}, this);
            root.getClass().getMethod("addAppender", new Class[] {appender, level, filter})
                .invoke(root, new Object[] {listener, level.getField("ERROR").get(null), null});
        } catch (Throwable absent) {
            root = null;
        }
    }

    /** Listens no longer. */
    void close() {
        try {
            if (root != null) {
                root.getClass().getMethod("removeAppender", new Class[] {String.class}).invoke(root, new Object[] {name});
            }
        } catch (Throwable gone) {
            // Nothing is kept but one text.
        }
    }

    /** Returns what was said last, if that was just now; otherwise an empty text. */
    String recent() {
        return System.currentTimeMillis() - saidAt < RECENT_MS ? said : "";
    }

    /** Returns why Spark has ended this JVM, from code with these frames; an empty text if it does not say. */
    String ofExit(String frames) {
        return !saidOfWorker.isEmpty() ? saidOfWorker : frames.contains(LOGGERS) ? recent() : "";
    }

    /** Returns the exit code of the driver's Python, where its cluster says it; otherwise null. */
    Integer exitCode() {
        return exitCode;
    }

    /** Called by Log4j, which takes this for an appender. */
    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
        String called = method.getName();
        if (called.equals("append")) {
            hear(arguments[0], method.getParameterTypes()[0]);
        } else if (called.equals("getName") || called.equals("toString")) {
            return name;
        } else if (called.equals("hashCode")) {
            return Integer.valueOf(name.hashCode());
        } else if (called.equals("equals")) {
            return Boolean.valueOf(proxy == arguments[0]);
        } else if (called.equals("isStarted") || called.equals("ignoreExceptions")) {
            return Boolean.TRUE;
        } else if (called.equals("isStopped")) {
            return Boolean.FALSE;
        }
        return null;
    }

    private void hear(Object event, Class type) {
        try {
            String logger = (String) type.getMethod("getLoggerName", new Class[0]).invoke(event, new Object[0]);
            if (APPLICATION_MASTER.equals(logger)) {
                Matcher exited = EXITED.matcher(text(event, type));
                exitCode = exited.find() ? Integer.valueOf(exited.group(1)) : exitCode;
                return;
            }
            if (WORKER_WATCHER.equals(logger)) {
                saidOfWorker = text(event, type);
                return;
            }
            // YARN's task scheduler is in this package, too: what it says is of executors and tasks.
            if (logger == null || !logger.startsWith(LOGGERS) || logger.endsWith("Scheduler")) {
                return;
            }
            String text = text(event, type);
            said = text.length() > MOST_CHARS ? text.substring(0, MOST_CHARS) : text;
            saidAt = System.currentTimeMillis();
        } catch (Throwable unreadable) {
            // Must not reach Spark, which only wants to log.
        }
    }

    private static String text(Object event, Class type) throws Exception {
        Object message = type.getMethod("getMessage", new Class[0]).invoke(event, new Object[0]);
        Method formatted = type.getClassLoader().loadClass(LOG4J + "message.Message")
            .getMethod("getFormattedMessage", new Class[0]);
        return String.valueOf(formatted.invoke(message, new Object[0]));
    }
}
