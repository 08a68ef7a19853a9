package io.sparkevents;

import java.util.BitSet;
import java.util.LinkedHashMap;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.StageInfo;

/** How the tasks of one stage attempt stand: by index, for several attempts of a task may run at once. */
public class StageTasks {
    /** The sums of the tasks' metrics, in the order of {@code sums}. */
    private static final String[] SUMS = {
        "Executor Run Time", "Executor CPU Time", "JVM GC Time", "Input Bytes", "Output Bytes", "Shuffle Read Bytes",
        "Shuffle Write Bytes", "Memory Bytes Spilled", "Disk Bytes Spilled"
    };

    private final int stage;
    private final int attempt;
    private final int total;
    private final int[] running;
    private final BitSet finished;
    private int covered = 0;
    private int runningNow = 0;
    private int failures = 0;
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

    /** Takes a task's start; tells whether now, and not before, all are running or finished. */
    boolean start(int index) {
        if (index >= total) {
            return false;
        }
        changed = true;
        runningNow++;
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
    boolean end(int index, boolean succeeded) {
        if (index >= total || running[index] == 0) {
            return false;
        }
        changed = true;
        runningNow--;
        running[index]--;
        if (succeeded) {
            finished.set(index);
        } else {
            failures++;
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
        for (int i = 0; i < SUMS.length; i++) {
            record.put(SUMS[i], sums[i]);
        }
        record.put("Status", status);
        record.put("Timestamp", time);
        return record;
    }
}
