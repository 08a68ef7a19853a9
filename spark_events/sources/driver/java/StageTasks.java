package io.sparkevents;

import java.util.BitSet;
import java.util.LinkedHashMap;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.StageInfo;

/** How the tasks of one stage attempt stand: by index, for several attempts of a task may run at once. */
public class StageTasks {
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
    private long runMs = 0;
    private long cpuNs = 0;
    private long gcMs = 0;
    private long inputBytes = 0;
    private long outputBytes = 0;
    private long shuffleReadBytes = 0;
    private long shuffleWriteBytes = 0;
    private long memorySpilledBytes = 0;
    private long diskSpilledBytes = 0;

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
        return becameAll();
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

    private boolean becameAll() {
        if (all || covered < total) {
            return false;
        }
        all = true;
        changes++;
        return true;
    }

    /** Adds what a task has taken; null where Spark does not know. */
    void sum(TaskMetrics metrics) {
        if (metrics == null) {
            return;
        }
        runMs += metrics.executorRunTime();
        cpuNs += metrics.executorCpuTime();
        gcMs += metrics.jvmGCTime();
        inputBytes += metrics.inputMetrics().bytesRead();
        outputBytes += metrics.outputMetrics().bytesWritten();
        shuffleReadBytes += metrics.shuffleReadMetrics().totalBytesRead();
        shuffleWriteBytes += metrics.shuffleWriteMetrics().bytesWritten();
        memorySpilledBytes += metrics.memoryBytesSpilled();
        diskSpilledBytes += metrics.diskBytesSpilled();
    }

    /** Returns a record of how they stand: with a status where that has changed, at a time in ms. */
    LinkedHashMap record(String status, long time) {
        changed = false;
        LinkedHashMap record = new LinkedHashMap();
        record.put("Event", "SparkEventsStageTasks");
        record.put("Stage ID", Integer.valueOf(stage));
        record.put("Stage Attempt ID", Integer.valueOf(attempt));
        record.put("Number of Tasks", Integer.valueOf(total));
        record.put("Change", Integer.valueOf(changes));
        record.put("Running", Integer.valueOf(runningNow));
        record.put("Finished", Integer.valueOf(finished.cardinality()));
        record.put("Failed", Integer.valueOf(failures));
        record.put("Executor Run Time", Long.valueOf(runMs));
        record.put("Executor CPU Time", Long.valueOf(cpuNs));
        record.put("JVM GC Time", Long.valueOf(gcMs));
        record.put("Input Bytes", Long.valueOf(inputBytes));
        record.put("Output Bytes", Long.valueOf(outputBytes));
        record.put("Shuffle Read Bytes", Long.valueOf(shuffleReadBytes));
        record.put("Shuffle Write Bytes", Long.valueOf(shuffleWriteBytes));
        record.put("Memory Bytes Spilled", Long.valueOf(memorySpilledBytes));
        record.put("Disk Bytes Spilled", Long.valueOf(diskSpilledBytes));
        record.put("Status", status);
        record.put("Timestamp", Long.valueOf(time));
        return record;
    }
}
