package io.sparkevents;

import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import org.apache.spark.ExceptionFailure;
import org.apache.spark.FetchFailed;
import org.apache.spark.Success$;
import org.apache.spark.TaskCommitDenied;
import org.apache.spark.TaskEndReason;
import org.apache.spark.TaskKilled;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.scheduler.TaskInfo;

/** How the tasks of one stage attempt stand: by index, for several attempts of a task may run at once. */
public class StageTasks {
    /** The sums of the tasks' metrics, in the order of {@code sums}. */
    private static final String[] SUMS = {
        "Executor Run Time", "Executor CPU Time", "JVM GC Time", "Input Bytes", "Output Bytes", "Shuffle Read Bytes",
        "Shuffle Write Bytes", "Memory Bytes Spilled", "Disk Bytes Spilled"
    };
    private static final int MOST_THROWN = 8;
    /** By this many first characters of what it says, a stage's failure is recognized as that of its task. */
    private static final int COMPARED = 1000;
    private static final int MOST_OF_CAUSES = 8000;
    private static final String CAUSED_BY = "\nCaused by: ";

    private final int stage;
    private final int attempt;
    private final int total;
    private final int[] running;
    private final BitSet finished;
    private final HashMap runningTasks = new HashMap(); // Long task id -> TaskInfo
    private final LinkedHashMap thrown = new LinkedHashMap(); // what tasks said last -> a record of what threw it
    private final TaskStatistics statistics = new TaskStatistics();
    private int covered = 0;
    private int runningNow = 0;
    private int mostRunning = 0;
    private int failures = 0;
    private int finishedBefore = 0;
    private long firstLaunch = 0;
    private int changes = 0;
    private boolean all = false;
    private boolean changed = false;
    private final long[] sums = new long[SUMS.length];

    public StageTasks(StageInfo info) {
        stage = info.stageId();
        attempt = info.attemptNumber();
        total = info.numTasks();
        running = new int[total];
        finished = new BitSet(total);
    }

    /** Tells whether a task has begun or ended since the last record. */
    boolean isChanged() {
        return changed;
    }

    /** Tells whether a task runs. */
    boolean isRunning() {
        return runningNow > 0;
    }

    /** Takes a task's start; tells whether now, and not before, all are running or finished. */
    boolean start(TaskInfo info) {
        int index = info.index();
        if (index >= total) {
            return false;
        }
        changed = true;
        firstLaunch = firstLaunch == 0 ? info.launchTime() : firstLaunch;
        runningNow++;
        mostRunning = Math.max(mostRunning, runningNow);
        runningTasks.put(Long.valueOf(info.taskId()), info);
        if (running[index]++ == 0 && !finished.get(index)) {
            covered++;
        }
        if (all || covered < total) {
            return false;
        }
        all = true;
        changes++;
        return true;
    }

    /** Takes a task's end; tells whether by that not all are running or finished any longer. */
    boolean end(SparkListenerTaskEnd event) {
        boolean succeeded = event.reason() == Success$.MODULE$;
        int index = event.taskInfo().index();
        statistics.end(event, succeeded);
        if (!succeeded) {
            keepThrown(event.reason());
        }
        runningTasks.remove(Long.valueOf(event.taskInfo().taskId()));
        if (index >= total || running[index] == 0) {
            return false;
        }
        changed = true;
        runningNow--;
        running[index]--;
        if (succeeded) {
            finished.set(index);
        } else if (!(event.reason() instanceof TaskKilled || event.reason() instanceof TaskCommitDenied)) {
            failures++; // by Spark's own count, which has those that it has stopped apart
        }
        return uncover(index);
    }

    /** Takes the loss of a finished task's output. */
    boolean resubmit(int index) {
        if (index >= total || !finished.get(index)) {
            return false;
        }
        finished.clear(index);
        return uncover(index);
    }

    private boolean uncover(int index) {
        if (running[index] > 0 || finished.get(index)) {
            return false;
        }
        covered--;
        boolean ceased = all;
        all = false;
        changes += ceased ? 1 : 0;
        return ceased;
    }

    /** Adds what a task has taken; null where Spark does not know. */
    void sum(TaskMetrics metrics) {
        if (metrics == null) {
            return;
        }
        sums[0] += metrics.executorRunTime();
        sums[1] += metrics.executorCpuTime();
        sums[2] += metrics.jvmGCTime();
        sums[3] += metrics.inputMetrics().bytesRead();
        sums[4] += metrics.outputMetrics().bytesWritten();
        sums[5] += metrics.shuffleReadMetrics().totalBytesRead();
        sums[6] += metrics.shuffleWriteMetrics().bytesWritten();
        sums[7] += metrics.memoryBytesSpilled();
        sums[8] += metrics.diskBytesSpilled();
    }

    /**
     * Returns the task that runs on although most others have finished, for longer than so many times their median and
     * for at least so many ms; null if there is none.
     */
    TaskInfo lagging(long now, double factor, long leastMs) {
        if (runningNow == 0 || finished.cardinality() * 4L < total * 3L) {
            return null;
        }
        TaskInfo oldest = null;
        for (Iterator infos = runningTasks.values().iterator(); infos.hasNext();) {
            TaskInfo info = (TaskInfo) infos.next();
            if (oldest == null || info.launchTime() < oldest.launchTime()) {
                oldest = info;
            }
        }
        if (oldest == null || now - oldest.launchTime() < leastMs) {
            return null;
        }
        return now - oldest.launchTime() > factor * statistics.medianRunMs() ? oldest : null;
    }

    /** Returns a record of how they stand, with the task that lags behind, if any. */
    LinkedHashMap record(long now, TaskInfo lagging) {
        LinkedHashMap record = record(null, now);
        if (lagging != null) {
            LinkedHashMap task = new LinkedHashMap();
            task.put("Index", Integer.valueOf(lagging.index()));
            task.put("Executor ID", lagging.executorId());
            task.put("Host", lagging.host());
            task.put("Running For", Long.valueOf(now - lagging.launchTime()));
            task.put("Median Run Time", Long.valueOf(statistics.medianRunMs()));
            record.put("Lagging Task", task);
        }
        return record;
    }

    /** Returns the last record of a stage that has ended, with all that its tasks measured, and which of them failed it. */
    LinkedHashMap lastRecord(StageInfo info, long time) {
        LinkedHashMap record = record(null, time);
        record.put("Task Statistics", statistics.toMap(mostRunning));
        if (info.failureReason().isDefined()) {
            record.put("Thrown By Task", thrown.get(beginning((String) info.failureReason().get())));
        }
        forgetWhatIsTold();
        return record;
    }

    /** Returns a record of what its tasks have taken since the last one, or the one before, after their stage has ended. */
    LinkedHashMap lateRecord() {
        changed = false;
        LinkedHashMap record = new LinkedHashMap();
        record.put("Event", "SparkEventsLateTasks");
        record.put("Stage ID", stage);
        record.put("Stage Attempt ID", attempt);
        record.put("Finished", finished.cardinality() - finishedBefore);
        record.put("Failed", failures);
        for (int i = 0; i < SUMS.length; i++) {
            record.put(SUMS[i], sums[i]);
        }
        forgetWhatIsTold();
        return record;
    }

    private void forgetWhatIsTold() {
        finishedBefore = finished.cardinality();
        failures = 0;
        Arrays.fill(sums, 0);
    }

    private void keepThrown(TaskEndReason reason) {
        LinkedHashMap record = new LinkedHashMap();
        String said = null;
        if (reason instanceof ExceptionFailure) {
            said = ((ExceptionFailure) reason).description();
            record.put("Class", ((ExceptionFailure) reason).className());
            record.put("Causes", causes(((ExceptionFailure) reason).fullStackTrace()));
        } else if (reason instanceof FetchFailed && ((FetchFailed) reason).bmAddress() != null) {
            said = ((FetchFailed) reason).message();
            record.put("Fetched From", ((FetchFailed) reason).bmAddress().executorId());
        }
        if (said == null) {
            return;
        }
        thrown.put(beginning(said), record);
        if (thrown.size() > MOST_THROWN) {
            thrown.remove(thrown.keySet().iterator().next());
        }
    }

    /** Returns what caused an exception, of its stack trace; null where nothing did. */
    private static String causes(String stackTrace) {
        int begin = stackTrace == null ? -1 : stackTrace.indexOf(CAUSED_BY);
        return begin < 0 ? null : stackTrace.substring(begin, Math.min(stackTrace.length(), begin + MOST_OF_CAUSES));
    }

    private static String beginning(String said) {
        return said.substring(0, Math.min(said.length(), COMPARED));
    }

    /** Returns a record of how they stand: with a status where that has changed, at a time in ms. */
    LinkedHashMap record(String status, long time) {
        changed = false;
        LinkedHashMap record = new LinkedHashMap();
        record.put("Event", "SparkEventsStageTasks");
        record.put("Stage ID", stage);
        record.put("Stage Attempt ID", attempt);
        record.put("Number of Tasks", total);
        record.put("Change", changes);
        record.put("Running", runningNow);
        record.put("Finished", finished.cardinality());
        record.put("Failed", failures);
        record.put("First Launch Time", firstLaunch);
        for (int i = 0; i < SUMS.length; i++) {
            record.put(SUMS[i], sums[i]);
        }
        record.put("Status", status);
        record.put("Timestamp", time);
        return record;
    }
}
