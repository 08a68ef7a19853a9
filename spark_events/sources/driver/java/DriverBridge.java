package io.sparkevents;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.spark.Resubmitted$;
import org.apache.spark.Success$;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.*;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;
import org.apache.spark.sql.streaming.StreamingQueryListener;
import org.apache.spark.util.JsonProtocol;
import org.apache.spark.util.ShutdownHookManager;

/**
 * Collects listener events as JSON for Python to fetch. Compiled in the driver by Spark's own Janino, which knows
 * neither lambdas nor generic types; hence the casts. Runs on a listener-bus queue of its own: nothing of Spark's
 * waits for it, but a JVM that is being shut down.
 */
public class DriverBridge extends SparkListener implements Consumer {
    private static final long GATHER_MS = 5;
    private static final long WORK_NS = 1000000;
    private static final long TASKS_EVERY_MS = 1000;
    private static final int MOST_OF_DESCRIPTION = 4096;

    // Each holds Object[] {number, record}; routine ones are dropped first, and both are drained in order.
    private final ArrayDeque routine = new ArrayDeque();
    private final ArrayDeque lasting = new ArrayDeque();
    private final Object records = new Object();
    private final HashMap stages = new HashMap();
    private final HashSet wanted = new HashSet();
    private final ObjectMapper mapper = new ObjectMapper();
    private final RecordTexts texts;
    private final long maxBytes;
    private final boolean dropOldest;
    private final long shutdownWaitMs;
    private long number = 0;
    private long bytes = 0;
    private long dropped = 0;
    private long failed = 0;
    private boolean woken = false;
    private boolean finished = false;
    private long gatheredAt = 0;
    private long tasksAt = 0;

    public DriverBridge(long maxBytes, boolean dropOldest, long shutdownWaitMs, String[] wantedOtherEvents) {
        this.maxBytes = maxBytes;
        this.texts = new RecordTexts(maxBytes);
        this.dropOldest = dropOldest;
        this.shutdownWaitMs = shutdownWaitMs;
        for (int i = 0; i < wantedOtherEvents.length; i++) {
            wanted.add(wantedOtherEvents[i]);
        }
    }

    // -- called by Python ---------------------------------------------------------------------------------------

    /** Waits for records, up to waitMs, and returns them: a line of counters, then a line each, with its time. */
    public String drain(int maxRecords, long waitMs) throws InterruptedException {
        addChangedTasks();
        StringBuilder batch = new StringBuilder();
        synchronized (records) {
            if (waitMs > 0 && isEmpty() && !woken) {
                records.wait(waitMs);
            }
            woken = false;
            batch.append("{\"dropped\":").append(dropped).append(",\"failed\":").append(failed);
            batch.append(",\"bytes\":").append(bytes);
            batch.append(",\"records\":").append(routine.size() + lasting.size()).append('}');
            for (int i = 0; i < maxRecords && !isEmpty(); i++) {
                batch.append('\n').append(poll(earlier()));
            }
        }
        return batch.toString();
    }

    /** Ends a drain that is waiting. */
    public void wake() {
        synchronized (records) {
            woken = true;
            records.notifyAll();
        }
    }

    /** Takes a record of another listener of ours, a Map; a Throwable, where it could not make one. */
    public void accept(Object record) {
        if (record instanceof Map) {
            addJson((Map) record, false);
        } else {
            countFailed();
        }
    }

    /** Says that Python has delivered everything: nothing has to wait for it any longer. */
    public void finish() {
        synchronized (records) {
            finished = true;
            records.notifyAll();
        }
    }

    // -- called by Spark ----------------------------------------------------------------------------------------

    public void onApplicationEnd(SparkListenerApplicationEnd event) {
        add(event);
        // After a signal nobody else waits for Python, and this JVM would take it along.
        if (ShutdownHookManager.inShutdown()) {
            awaitFinish();
        }
    }

    public void onJobStart(SparkListenerJobStart event) {
        add(event);
    }

    public void onJobEnd(SparkListenerJobEnd event) {
        add(event);
    }

    public void onExecutorAdded(SparkListenerExecutorAdded event) {
        add(event);
    }

    public void onExecutorRemoved(SparkListenerExecutorRemoved event) {
        add(event);
    }

    public void onStageSubmitted(SparkListenerStageSubmitted event) {
        StageInfo info = event.stageInfo();
        synchronized (stages) {
            stages.put(key(info.stageId(), info.attemptNumber()), new StageTasks(info));
        }
        add(event);
    }

    public void onStageCompleted(SparkListenerStageCompleted event) {
        StageInfo info = event.stageInfo();
        synchronized (stages) {
            StageTasks tasks = (StageTasks) stages.remove(key(info.stageId(), info.attemptNumber()));
            if (tasks != null) {
                long time = info.completionTime().isDefined() ? ((Number) info.completionTime().get()).longValue() : 0L;
                addTasks(tasks, null, time > 0 ? time : System.currentTimeMillis());
            }
        }
        add(event);
    }

    public void onTaskStart(SparkListenerTaskStart event) {
        gather();
        synchronized (stages) {
            StageTasks tasks = (StageTasks) stages.get(key(event.stageId(), event.stageAttemptId()));
            if (tasks != null && tasks.start(event.taskInfo().index())) {
                addTasks(tasks, "ALL_RUNNING_OR_FINISHED", event.taskInfo().launchTime());
            }
        }
    }

    public void onTaskEnd(SparkListenerTaskEnd event) {
        gather();
        synchronized (stages) {
            StageTasks tasks = (StageTasks) stages.get(key(event.stageId(), event.stageAttemptId()));
            if (tasks == null) {
                return;
            }
            TaskInfo info = event.taskInfo();
            tasks.sum(event.taskMetrics());
            boolean ceased;
            if (event.reason() == Resubmitted$.MODULE$) {
                ceased = tasks.resubmit(info.index());
            } else {
                ceased = tasks.end(info.index(), event.reason() == Success$.MODULE$);
            }
            if (ceased) {
                addTasks(tasks, "NOT_ALL_RUNNING_OR_FINISHED", info.finishTime());
            }
        }
    }

    public void onOtherEvent(SparkListenerEvent event) {
        String name = event.getClass().getName();
        if (!wanted.contains(name)) {
            return;
        }
        if (event instanceof SparkListenerSQLExecutionStart) {
            addExecution(name, (SparkListenerSQLExecutionStart) event);
        } else if (event instanceof SparkListenerSQLExecutionEnd) {
            addExecutionEnd(name, (SparkListenerSQLExecutionEnd) event);
        } else {
            add(event);
        }
    }

    // -----------------------------------------------------------------------------------------------------------

    /** Of an SQL execution all but its plans, which may be huge; one within another is a part of that. */
    private void addExecution(String name, SparkListenerSQLExecutionStart event) {
        scala.Option root = event.rootExecutionId();
        if (root.isDefined() && ((Number) root.get()).longValue() != event.executionId()) {
            return;
        }
        String description = event.description() == null ? "" : event.description();
        LinkedHashMap record = new LinkedHashMap();
        record.put("Event", name);
        record.put("executionId", Long.valueOf(event.executionId()));
        record.put("description", RecordTexts.cut(description, MOST_OF_DESCRIPTION));
        record.put("time", Long.valueOf(event.time()));
        addMap(record);
    }

    private void addExecutionEnd(String name, SparkListenerSQLExecutionEnd event) {
        LinkedHashMap record = new LinkedHashMap();
        record.put("Event", name);
        record.put("executionId", Long.valueOf(event.executionId()));
        record.put("time", Long.valueOf(event.time()));
        if (event.errorMessage().isDefined()) {
            record.put("errorMessage", event.errorMessage().get());
        }
        addMap(record);
    }

    /** Once a second, adds how the tasks of each stage stand of which one has begun or ended since. */
    private void addChangedTasks() {
        long now = System.currentTimeMillis();
        if (now - tasksAt < TASKS_EVERY_MS) {
            return;
        }
        tasksAt = now;
        synchronized (stages) {
            for (Iterator each = stages.values().iterator(); each.hasNext();) {
                StageTasks tasks = (StageTasks) each.next();
                if (tasks.changed) {
                    addTasks(tasks, null, now);
                }
            }
        }
    }

    /**
     * Lets task events gather for some ms in the bus's queue. Taken one by one, each would wake this thread anew,
     * which costs more than all that is done with it; so a thousand and more are taken in the ms of work between.
     */
    private void gather() {
        if (System.nanoTime() - gatheredAt < WORK_NS) {
            return;
        }
        try {
            Thread.sleep(GATHER_MS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        gatheredAt = System.nanoTime();
    }

    private boolean isEmpty() {
        return routine.isEmpty() && lasting.isEmpty();
    }

    /** Returns the queue whose first record came before the other's. */
    private ArrayDeque earlier() {
        if (routine.isEmpty() || lasting.isEmpty()) {
            return routine.isEmpty() ? lasting : routine;
        }
        long first = ((Long) ((Object[]) routine.peekFirst())[0]).longValue();
        return first < ((Long) ((Object[]) lasting.peekFirst())[0]).longValue() ? routine : lasting;
    }

    private String poll(ArrayDeque queue) {
        String record = (String) ((Object[]) queue.pollFirst())[1];
        bytes -= record.length();
        return record;
    }

    /** Tells whether a record fits, after dropping older ones where that is the policy. */
    private boolean makeRoom(int size, boolean isRoutine) {
        if (!dropOldest) {
            // The last quarter is for what tells of a beginning or an end.
            return bytes + size <= (isRoutine ? maxBytes / 4 * 3 : maxBytes);
        }
        while (bytes + size > maxBytes && !isEmpty()) {
            poll(routine.isEmpty() ? lasting : routine);
            dropped++;
        }
        return bytes + size <= maxBytes;
    }

    private void addTasks(StageTasks tasks, String status, long time) {
        LinkedHashMap record = tasks.record();
        record.put("Status", status);
        record.put("Timestamp", Long.valueOf(time));
        addMap(record);
    }

    private void addMap(Map record) {
        addJson(record, true);
    }

    private void addJson(Map record, boolean isRoutine) {
        try {
            add(mapper.writeValueAsString(record), isRoutine);
        } catch (Throwable error) {
            // Must not reach the listener bus, which would take this listener off for good.
            countFailed();
        }
    }

    private void add(SparkListenerEvent event) {
        try {
            add(JsonProtocol.sparkEventToJsonString(event), !isLasting(event));
        } catch (Throwable error) {
            // Half a surrogate pair in a text, say: what tells of an end is told in our own words then.
            Map record = ofEnd(event);
            if (record == null) {
                countFailed();
            } else {
                addJson(record, false);
            }
        }
    }

    private static boolean isLasting(SparkListenerEvent event) {
        String name = event.getClass().getName();
        return event instanceof SparkListenerApplicationEnd || failed(event) || name.endsWith("QueryStartedEvent")
            || name.endsWith("QueryTerminatedEvent");
    }

    private static boolean failed(SparkListenerEvent event) {
        return event instanceof SparkListenerJobEnd && ((SparkListenerJobEnd) event).jobResult() instanceof JobFailed;
    }

    /** Returns the record of a failed job or of a query's end as JsonProtocol writes it; null for any other. */
    private static Map ofEnd(SparkListenerEvent event) {
        LinkedHashMap record = new LinkedHashMap();
        record.put("Event", event.getClass().getName());
        if (failed(event)) {
            SparkListenerJobEnd job = (SparkListenerJobEnd) event;
            LinkedHashMap exception = new LinkedHashMap();
            exception.put("Message", ((JobFailed) job.jobResult()).exception().getMessage());
            LinkedHashMap result = new LinkedHashMap();
            result.put("Result", "JobFailed");
            result.put("Exception", exception);
            record.put("Event", "SparkListenerJobEnd");
            record.put("Job ID", Integer.valueOf(job.jobId()));
            record.put("Completion Time", Long.valueOf(job.time()));
            record.put("Job Result", result);
            return record;
        }
        if (event instanceof StreamingQueryListener.QueryTerminatedEvent) {
            StreamingQueryListener.QueryTerminatedEvent query = (StreamingQueryListener.QueryTerminatedEvent) event;
            record.put("id", query.id().toString());
            record.put("runId", query.runId().toString());
            record.put("exception", query.exception().isDefined() ? query.exception().get() : null);
            return record;
        }
        return null;
    }

    private void add(String json, boolean isRoutine) throws IOException {
        String record = System.currentTimeMillis() + " " + texts.bounded(json);
        synchronized (records) {
            if (!makeRoom(record.length(), isRoutine)) {
                dropped++;
                return;
            }
            bytes += record.length();
            (isRoutine ? routine : lasting).addLast(new Object[] {Long.valueOf(number++), record});
            records.notifyAll();
        }
    }

    private void countFailed() {
        synchronized (records) {
            failed++;
        }
    }

    private void awaitFinish() {
        long end = System.currentTimeMillis() + shutdownWaitMs;
        synchronized (records) {
            try {
                for (long rest = shutdownWaitMs; !finished && rest > 0; rest = end - System.currentTimeMillis()) {
                    records.wait(rest);
                }
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private static Long key(int stage, int attempt) {
        return Long.valueOf(((long) stage << 32) | attempt);
    }

    /** How the tasks of one stage attempt stand: by index, for several attempts of a task may run at once. */
    static class StageTasks {
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

        StageTasks(StageInfo info) {
            stage = info.stageId();
            attempt = info.attemptNumber();
            total = info.numTasks();
            running = new int[total];
            finished = new BitSet(total);
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

        LinkedHashMap record() {
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
            return record;
        }
    }
}
