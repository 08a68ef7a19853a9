package io.sparkevents;

import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.spark.scheduler.LiveListenerBus;

/**
 * Sees to it that an end is told whose Python can no longer tell it: it was killed, or this JVM is ended with it. Then
 * a Python of its own is started here and given all that it has to know. Costs nothing until then.
 */
public class LastWord implements Runnable {
    // Before Spark stops its context, which it does at 40, so that a mark comes before the end in its event log.
    private static final int PRIORITY = 100;
    private static final int MOST_WORDS = 16384;
    private static final long KERNEL_MS = 2000;
    private static final long GONE_MS = 1000;
    private static final long GONE_LOOK_MS = 20;
    // As ending.py has it.
    private static final String STOPPED = "Spark stopped its SparkContext by itself: ";
    // As last_word.py has it.
    private static final String ENDED
        = "the driver's Python ended without a word: by a signal (SIGKILL, say), os._exit, exec or a crash";

    private final LiveListenerBus bus;
    private final long python;
    private final String[] command;
    private final String pythonPath;
    private final InputStream words;
    private final CountDownLatch delivered;
    private final SchedulerErrors errors;
    private final String rest;
    private final Runnable atShutdown;
    // Set once a kernel of Jupyter that ends its JVM by a signal has said so; null where the driver is none.
    private volatile CountDownLatch kernelEnds = null;
    private OutputStream masterEnd = null;
    private boolean pythonTells = false;
    // What runs, by what it is: JSON of the records that tell it, and of the configuration first.
    private final LinkedHashMap testament = new LinkedHashMap();
    private Map cause = null;
    private String said = null;

    /**
     * @param python the process id of the driver's Python.
     * @param command starts the Python that tells the end; null where somebody else sees to that.
     * @param words a file in which the driver's Python leaves a word when it ends abruptly; null for none.
     * @param rest a file for what Python did not handle any more, for whoever tells the end; null for none.
     * @param errors may know how Python ended.
     * @param atShutdown called when this JVM shuts down, once the event log is marked.
     */
    public LastWord(LiveListenerBus bus, long python, String[] command, String pythonPath,
            String words, String rest, CountDownLatch delivered, SchedulerErrors errors,
            Runnable atShutdown) throws IOException {
        this.bus = bus;
        this.python = python;
        this.command = command;
        this.pythonPath = pythonPath;
        this.words = words == null ? null : new FileInputStream(words);
        this.rest = rest;
        this.delivered = delivered;
        this.errors = errors;
        this.atShutdown = atShutdown;
        org.apache.hadoop.util.ShutdownHookManager.get().addShutdownHook(this, PRIORITY);
    }

    /** Takes changes of the testament, a line each: what it is, a tab, and its JSON; without JSON, it is over. */
    void change(String changes) {
        String[] lines = changes.split("\n");
        synchronized (testament) {
            for (int index = 0; index < lines.length; index++) {
                int tab = lines[index].indexOf('\t');
                if (tab < 0) {
                    testament.remove(lines[index]);
                } else {
                    testament.put(lines[index].substring(0, tab), lines[index].substring(tab + 1));
                }
            }
        }
    }

    /** Called when everything is told: nothing has to be seen to any longer. */
    void close() {
        try {
            org.apache.hadoop.util.ShutdownHookManager.get().removeShutdownHook(this);
            if (words != null) {
                words.close();
            }
            if (masterEnd != null) {
                masterEnd.close();
            }
        } catch (Exception alreadyInShutdown) {
            // Then it finds that everything is delivered.
        }
    }

    /** Called when this JVM shuts down, before Spark stops. */
    public void run() {
        if (delivered.getCount() == 0) {
            return;
        }
        cause = EndCause.of(true);
        try {
            MasterEnd.addTo(cause);
            ApplicationExit mark = mark();
            if (mark != null && !kernelEnded()) {
                bus.post(mark);
            }
            if (masterEnd != null && cause.containsKey("exitCode")) {
                pythonTells = !pythonIsGone(); // it waits for this, and cannot say that it has told it
                masterEnd.write((cause.get("exitCode") + "\n" + cause.get("said")).getBytes(StandardCharsets.UTF_8));
            }
        } catch (Throwable error) {
            // The event log then cannot say how it ended.
        }
        atShutdown.run();
    }

    /** Has the end that YARN's ApplicationMaster gives the application written to a file for Python, which it cuts off. */
    void writeMasterEndTo(String path) throws IOException {
        masterEnd = new FileOutputStream(path);
    }

    /** Called where the driver is a kernel of Jupyter: when it is shut down, it ends its JVM by SIGTERM. */
    void awaitKernel() {
        kernelEnds = new CountDownLatch(1);
    }

    /** Called when that kernel is shut down, and has marked the end in the event log. */
    void kernelEnds() {
        if (kernelEnds != null) {
            kernelEnds.countDown();
        }
    }

    /** Tells whether the signal that ends this JVM is the kernel's; waits for its word, which comes at once or never. */
    private boolean kernelEnded() throws InterruptedException {
        boolean bySignal = EndCause.SIGNAL.equals(cause.get("by"));
        return kernelEnds != null && bySignal && kernelEnds.await(KERNEL_MS, TimeUnit.MILLISECONDS);
    }

    /** Returns who ends the application, once that is known: as soon as this JVM shuts down. */
    Map cause() {
        return cause;
    }

    /** Tells whether the driver's Python is over, and so cannot be waited for. */
    boolean pythonIsGone() {
        try {
            String stat = new String(Files.readAllBytes(Paths.get("/proc/" + python + "/stat")), StandardCharsets.UTF_8);
            char state = stat.charAt(stat.lastIndexOf(')') + 2);
            return state == 'Z' || state == 'X';
        } catch (Throwable absent) {
            // Where there is no such file system, a JVM that ends because Python did, knows it.
            return new File("/proc/self/stat").exists() || cause != null && EndCause.PYTHON.equals(cause.get("by"));
        }
    }

    /**
     * Starts the Python that tells the end, and waits for it, for a limited time; or leaves the rest to whoever does.
     *
     * @param jobs lines, each the start of a job whose end Python did not handle.
     * @param records that Python did not handle, each after a line feed and its time.
     */
    void speak(String jobs, String records, long waitMs) {
        if (pythonTells) {
            return;
        }
        try {
            if (rest != null) {
                Files.write(Paths.get(rest), (jobs + "\n" + records).getBytes(StandardCharsets.UTF_8));
            }
            if (command == null) {
                return;
            }
            ProcessBuilder builder = new ProcessBuilder(command);
            builder.environment().put("PYTHONPATH", pythonPath);
            builder.redirectOutput(ProcessBuilder.Redirect.INHERIT).redirectError(ProcessBuilder.Redirect.INHERIT);
            Process process = builder.start();
            StringBuilder text = new StringBuilder(lastWords().replace('\n', '\0')).append('\n');
            synchronized (testament) {
                for (Iterator known = testament.values().iterator(); known.hasNext();) {
                    text.append(known.next()).append('\n');
                }
            }
            OutputStream input = process.getOutputStream();
            input.write(text.append(jobs).append('\n').append(records).toString().getBytes(StandardCharsets.UTF_8));
            input.close();
            process.waitFor(waitMs, TimeUnit.MILLISECONDS);
        } catch (Throwable error) {
            System.err.println("spark-events: ERROR: the end of the application could not be reported: " + error);
        }
    }

    private ApplicationExit mark() {
        Object by = cause.get("by");
        if (EndCause.SIGNAL.equals(by)) {
            return new ApplicationExit(null, (String) cause.get("signal"), null, false);
        }
        if (EndCause.EXIT.equals(by)) {
            String frames = (String) cause.get("frames");
            String said = errors.ofExit(frames);
            String how = said.isEmpty() ? "the driver's JVM was ended from within" : "the driver's JVM is gone: " + said;
            return new ApplicationExit(null, null, how + frames, false);
        }
        if (EndCause.SPARK.equals(by)) {
            return new ApplicationExit((Integer) cause.get("exitCode"), null, STOPPED + cause.get("said"), false);
        }
        if (!pythonIsGoneSoon()) {
            return null;
        }
        String last = lastWords();
        if (last.startsWith("exit ")) {
            return new ApplicationExit(Integer.valueOf(last.substring(5).trim()), null, null, false);
        }
        if (last.length() > 0) {
            return new ApplicationExit(null, "SIGTERM", null, false);
        }
        Integer code = errors.exitCode();
        return code == null ? new ApplicationExit(null, null, ENDED, true) : new ApplicationExit(code, null, null, false);
    }

    /** Tells the same where Python has closed its end of the pipe: it may take a moment until it is gone. */
    private boolean pythonIsGoneSoon() {
        long until = System.currentTimeMillis() + GONE_MS;
        boolean isOver = EndCause.PYTHON.equals(cause.get("by"));
        boolean gone = pythonIsGone();
        while (isOver && !gone && System.currentTimeMillis() < until) {
            try {
                Thread.sleep(GONE_LOOK_MS);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                return false;
            }
            gone = pythonIsGone();
        }
        return gone;
    }

    /** Returns what the driver's Python left: "exit" and a code, a stack where SIGTERM found it, or nothing. */
    private String lastWords() {
        if (said == null) {
            said = "";
            try {
                byte[] read = new byte[MOST_WORDS];
                int length = words == null ? -1 : words.read(read);
                said = length > 0 ? new String(read, 0, length, StandardCharsets.UTF_8) : "";
            } catch (Throwable unreadable) {
                // Nothing was said.
            }
        }
        return said;
    }
}
