package io.sparkevents;

import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;

/**
 * Who ends the application, or this JVM, right now: read off the stacks of the threads that are about it. Spark's
 * ApplicationEnd is the same whether the program stopped its SparkContext, Spark did so by itself, or a shutdown hook did.
 */
public class EndCause {
    /** The program: its Python, or other code that it runs in this JVM, called {@code SparkContext.stop}. */
    public static final String PROGRAM = "program";
    /** Spark stopped its SparkContext by itself: it has lost its master, or cannot go on. */
    public static final String SPARK = "spark";
    /** A signal reached this JVM. */
    public static final String SIGNAL = "signal";
    /** Code in this JVM ended it, by {@code System.exit} or because of an error that nobody caught. */
    public static final String EXIT = "exit";
    /** The driver's Python is over: this JVM, its child or its parent, ends as well. */
    public static final String PYTHON = "python";

    // Ends a driver in a standalone cluster whose worker has gone.
    private static final String WORKER_WATCHER = "org.apache.spark.deploy.worker.WorkerWatcher";
    private static final int MOST_FRAMES = 20;

    /** Returns the cause as {@code by}, with {@code signal}, {@code thread} and {@code frames} where they tell more. */
    public static Map of(boolean inShutdown) {
        Map stacks = Thread.getAllStackTraces();
        Map stopped = null;
        for (Iterator threads = stacks.entrySet().iterator(); threads.hasNext();) {
            Map.Entry entry = (Map.Entry) threads.next();
            String name = ((Thread) entry.getKey()).getName();
            StackTraceElement[] frames = (StackTraceElement[]) entry.getValue();
            if (inShutdown) {
                if (name.startsWith("SIG") && name.endsWith(" handler") && frames.length > 0) {
                    Map cause = cause(SIGNAL, name, null, 0);
                    cause.put("signal", name.substring(0, name.indexOf(' ')));
                    return cause;
                }
                int exit = after(frames, "java.lang.Runtime", "exit");
                if (exit >= 0) {
                    return cause(endsWithPython(frames) ? PYTHON : EXIT, name, frames, exit);
                }
            } else {
                int stop = after(frames, "org.apache.spark.SparkContext", "stop");
                if (stop >= 0) {
                    String by = stoppedBySpark(name, frames, stop) ? SPARK : endsWithPython(frames) ? PYTHON : PROGRAM;
                    stopped = cause(by, name, frames, stop);
                }
            }
        }
        if (stopped != null) {
            return stopped;
        }
        // A JVM whose main thread has returned ends without a call of exit: spark-submit's, once Python is over.
        return cause(inShutdown ? PYTHON : PROGRAM, "", null, 0);
    }

    private static Map cause(String by, String thread, StackTraceElement[] frames, int first) {
        HashMap cause = new HashMap();
        cause.put("by", by);
        cause.put("thread", thread);
        if (frames != null) {
            StringBuilder text = new StringBuilder();
            for (int index = first; index < frames.length && index < first + MOST_FRAMES; index++) {
                text.append("\n\tat ").append(frames[index]);
            }
            cause.put("frames", text.toString());
        }
        return cause;
    }

    /** Returns the place below the outermost frame of a method; -1 where there is none. */
    private static int after(StackTraceElement[] frames, String name, String method) {
        for (int index = frames.length - 1; index >= 0; index--) {
            if (frames[index].getClassName().equals(name) && frames[index].getMethodName().equals(method)) {
                return index + 1;
            }
        }
        return -1;
    }

    private static boolean endsWithPython(StackTraceElement[] frames) {
        boolean ends = false;
        for (int index = 0; index < frames.length; index++) {
            String name = frames[index].getClassName();
            if (name.startsWith("py4j.")) {
                return false; // Python called it
            }
            if (name.startsWith(WORKER_WATCHER)) {
                return false; // Python runs on
            }
            ends = ends || name.startsWith("org.apache.spark.api.python.PythonGatewayServer")
                || name.startsWith("org.apache.spark.deploy.");
        }
        return ends;
    }

    /** Tells whether Spark called its {@code stop}, by the frames from a place on, which are those of the callers. */
    private static boolean stoppedBySpark(String thread, StackTraceElement[] frames, int callers) {
        if (thread.equals("stop-spark-context")) {
            return true;
        }
        for (int index = callers; index < frames.length; index++) {
            String name = frames[index].getClassName();
            if (name.startsWith("py4j.")) {
                return false;
            }
            if (name.startsWith("org.apache.spark.scheduler.")
                || name.startsWith("org.apache.spark.util.Utils") && frames[index].getMethodName().startsWith("tryOr")) {
                return true;
            }
        }
        return false;
    }
}
