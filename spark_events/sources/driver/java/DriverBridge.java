package io.sparkevents;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.spark.Resubmitted$;
import org.apache.spark.scheduler.*;
import org.apache.spark.sql.execution.ui.SparkListenerDriverAccumUpdates;
import org.apache.spark.sql.execution.ui.SparkListenerSQLAdaptiveExecutionUpdate;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;
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
    private static final long CHANGES_EVERY_MS = 1000;
    private static final long LOOK_EVERY_MS = 100;
    private static final int MOST_JOBS = 2000;
    private static final int MOST_LATE = 100;
    private static final long LAST_WORD_MS = 10000;

    private final RecordQueue records;
    private final HashMap stages = new HashMap();
    private final LinkedHashMap lateStages = new LinkedHashMap(); // those that have ended, and of which tasks run on
    private final ExecutorStates executors = new ExecutorStates();
    private final SchedulerErrors errors = new SchedulerErrors();
    private final ExecutionPlans plans;
    private final HashSet wanted = new HashSet();
    private final ObjectMapper mapper = new ObjectMapper();
    private final RecordTexts texts;
    private final CountDownLatch delivered = new CountDownLatch(1);
    private final long shutdownWaitMs;
    private final double laggingFactor;
    private final long laggingMs;
    // The starts of jobs whose end nobody has handled: job id to JSON; and {job id, number of the record} of ends.
    private final LinkedHashMap jobs = new LinkedHashMap();
    private final ArrayDeque endedJobs = new ArrayDeque();
    private volatile LastWord lastWord = null;
    private volatile boolean stopped = false;
    private long gatheredAt = 0;
    private long changedAt = 0;

    public DriverBridge(long maxBytes, long shutdownWaitMs, String[] wantedOtherEvents,
            String[] planMetrics, double laggingFactor, long laggingMs) {
        this.records = new RecordQueue(maxBytes);
        this.texts = new RecordTexts(maxBytes);
        this.shutdownWaitMs = shutdownWaitMs;
        this.laggingFactor = laggingFactor;
        this.laggingMs = laggingMs;
        this.plans = new ExecutionPlans(planMetrics);
        wanted.addAll(Arrays.asList(wantedOtherEvents));
        errors.listen();
    }

    // -- called by Python ---------------------------------------------------------------------------------------

    /** Waits for records, up to waitMs, and returns them: a line of counters, then a line each, with its time. */
    public String drain(int maxRecords, long waitMs) throws InterruptedException {
        forgetEndedJobs();
        addWhatChanged();
        return records.drain(maxRecords, waitMs);
    }

    /** Ends a drain that is waiting. */
    public void wake() {
        records.wake();
    }

    /** Takes a record of another listener of ours, a Map; a Throwable, where it could not make one. */
    public void accept(Object record) {
        if (record instanceof Map) {
            addMap((Map) record, false);
        } else {
            records.countFailed();
        }
    }

    /** Lets the end be told where Python cannot: see {@code LastWord}, whose arguments these are. */
    public void prepareLastWord(LiveListenerBus bus, long python, String[] command,
            String pythonPath, String words, String rest) throws IOException {
        Runnable atShutdown = new Runnable() {
            public void run() {
                if (stopped) { // else Spark stops now, and waits in onApplicationEnd
                    awaitDelivery();
                }
            }
        };
        lastWord = new LastWord(bus, python, command, pythonPath, words, rest, delivered, errors, atShutdown);
    }

    /** Takes changes of what has to be known to tell the end: see {@code LastWord}. */
    public void changeTestament(String changes) {
        lastWord.change(changes);
    }

    /** See {@code LastWord}. */
    public void writeMasterEndTo(String path) throws IOException {
        lastWord.writeMasterEndTo(path);
    }

    /** See {@code LastWord}. */
    public void awaitKernel() {
        lastWord.awaitKernel();
    }

    /** See {@code LastWord}. */
    public void kernelEnds() {
        if (lastWord != null) {
            lastWord.kernelEnds();
        }
    }

    /** Says that Python has delivered everything: nothing has to wait for it any longer, and it fetches no more. */
    public void finish() {
        delivered.countDown();
        records.close();
        errors.close();
        synchronized (jobs) {
            jobs.clear();
            endedJobs.clear();
        }
        if (lastWord != null) {
            lastWord.close();
        }
    }

    // -- called by Spark ----------------------------------------------------------------------------------------

    public void onApplicationEnd(SparkListenerApplicationEnd event) {
        boolean inShutdown = ShutdownHookManager.inShutdown();
        Map cause = addEnd(event, inShutdown);
        if (!inShutdown) {
            // On Kubernetes, spark-submit stops Spark once the driver's Python is over, and ends this JVM only then.
            boolean pythonIsOver = cause != null && EndCause.PYTHON.equals(cause.get("by"));
            boolean told = pythonIsOver && delivered.getCount() > 0 && spokeForPython();
            stopped = !told;
            return;
        }
        awaitDelivery();
    }

    /** Nobody else waits for Python once this JVM shuts down, which would take it along. */
    private void awaitDelivery() {
        long until = System.currentTimeMillis() + shutdownWaitMs;
        try {
            while (System.currentTimeMillis() < until && !delivered.await(LOOK_EVERY_MS, TimeUnit.MILLISECONDS)) {
                if (spokeForPython()) {
                    return;
                }
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    public void onJobStart(SparkListenerJobStart event) {
        try {
            String json = texts.bounded(JsonProtocol.sparkEventToJsonString(event));
            synchronized (jobs) {
                // Once all is told, nobody asks for them, and nobody says that they are handled.
                if (delivered.getCount() > 0 && jobs.size() < MOST_JOBS) {
                    jobs.put(Integer.valueOf(event.jobId()), json);
                }
            }
            records.add(System.currentTimeMillis() + " " + json, true);
        } catch (Throwable error) {
            records.countFailed();
        }
    }

    public void onJobEnd(SparkListenerJobEnd event) {
        long number = addEvent(event);
        synchronized (jobs) {
            if (jobs.containsKey(Integer.valueOf(event.jobId()))) {
                endedJobs.addLast(new long[] {event.jobId(), number});
            }
        }
    }

    public void onResourceProfileAdded(SparkListenerResourceProfileAdded event) {
        addEvent(event);
    }

    public void onExecutorAdded(SparkListenerExecutorAdded event) {
        addEvent(event);
    }

    public void onExecutorRemoved(SparkListenerExecutorRemoved event) {
        addMap(executors.removed(event.executorId()), false);
        addEvent(event);
    }

    public void onExecutorMetricsUpdate(SparkListenerExecutorMetricsUpdate event) {
        try {
            executors.beat(event);
        } catch (Throwable error) {
            records.countFailed();
        }
    }

    public void onStageSubmitted(SparkListenerStageSubmitted event) {
        StageInfo info = event.stageInfo();
        synchronized (stages) {
            stages.put(key(info.stageId(), info.attemptNumber()), new StageTasks(info));
        }
        addEvent(event);
    }

    public void onStageCompleted(SparkListenerStageCompleted event) {
        StageInfo info = event.stageInfo();
        synchronized (stages) {
            StageTasks tasks = (StageTasks) stages.remove(key(info.stageId(), info.attemptNumber()));
            if (tasks != null) {
                long time = info.completionTime().isDefined() ? ((Number) info.completionTime().get()).longValue() : 0L;
                addMap(tasks.lastRecord(info, time > 0 ? time : System.currentTimeMillis()), true);
                awaitLateTasks(key(info.stageId(), info.attemptNumber()), tasks);
            }
        }
        addEvent(event);
    }

    public void onUnpersistRDD(SparkListenerUnpersistRDD event) {
        addEvent(event);
    }

    public void onTaskStart(SparkListenerTaskStart event) {
        gather();
        executors.start(event);
        synchronized (stages) {
            StageTasks tasks = (StageTasks) stages.get(key(event.stageId(), event.stageAttemptId()));
            if (tasks != null && tasks.start(event.taskInfo())) {
                addMap(tasks.record("ALL_RUNNING_OR_FINISHED", event.taskInfo().launchTime()), true);
            }
        }
    }

    public void onTaskEnd(SparkListenerTaskEnd event) {
        gather();
        executors.end(event);
        synchronized (stages) {
            Object key = key(event.stageId(), event.stageAttemptId());
            StageTasks tasks = (StageTasks) stages.get(key);
            if (tasks == null) {
                endLateTask(key, event);
                return;
            }
            TaskInfo info = event.taskInfo();
            tasks.sum(event.taskMetrics());
            boolean ceased = event.reason() == Resubmitted$.MODULE$
                ? tasks.resubmit(info.index())
                : tasks.end(event);
            if (ceased) {
                addMap(tasks.record("NOT_ALL_RUNNING_OR_FINISHED", info.finishTime()), true);
            }
        }
    }

    public void onOtherEvent(SparkListenerEvent event) {
        if (!wanted.contains(event.getClass().getName())) {
            return;
        }
        try {
            if (event instanceof SparkListenerSQLExecutionStart) {
                SparkListenerSQLExecutionStart start = (SparkListenerSQLExecutionStart) event;
                plans.begin(start);
                Map record = EventRecords.ofExecutionStart(start);
                if (record != null) {
                    addMap(record, true);
                }
            } else if (event instanceof SparkListenerSQLAdaptiveExecutionUpdate) {
                plans.replan((SparkListenerSQLAdaptiveExecutionUpdate) event);
            } else if (event instanceof SparkListenerDriverAccumUpdates) {
                plans.add((SparkListenerDriverAccumUpdates) event);
            } else if (event instanceof SparkListenerSQLExecutionEnd) {
                SparkListenerSQLExecutionEnd end = (SparkListenerSQLExecutionEnd) event;
                LinkedHashMap record = EventRecords.ofExecutionEnd(end);
                plans.end(end.executionId(), end.time(), record);
                addMap(record, true);
            } else {
                addEvent(event);
            }
        } catch (Throwable error) {
            records.countFailed();
        }
    }

    // -----------------------------------------------------------------------------------------------------------

    private void awaitLateTasks(Object key, StageTasks tasks) {
        if (tasks.isRunning()) {
            lateStages.put(key, tasks);
            if (lateStages.size() > MOST_LATE) {
                lateStages.remove(lateStages.keySet().iterator().next());
            }
        }
    }

    /** Takes the end of a task whose stage has ended before: that was cancelled, or has failed. */
    private void endLateTask(Object key, SparkListenerTaskEnd event) {
        StageTasks tasks = (StageTasks) lateStages.get(key);
        if (tasks != null) {
            tasks.sum(event.taskMetrics());
            tasks.end(event);
            if (!tasks.isRunning()) {
                lateStages.remove(key);
                addMap(tasks.lateRecord(), true);
            }
        }
    }

    /**
     * Once a second, adds what executors have measured, and how the tasks of each stage stand of which one has begun or
     * ended since, or lags behind.
     */
    private void addWhatChanged() {
        long now = System.currentTimeMillis();
        if (now - changedAt < CHANGES_EVERY_MS) {
            return;
        }
        changedAt = now;
        Map measured = executors.measured(now);
        if (measured != null) {
            addMap(measured, true);
        }
        synchronized (stages) {
            for (Iterator running = stages.values().iterator(); running.hasNext();) {
                StageTasks tasks = (StageTasks) running.next();
                TaskInfo lagging = tasks.lagging(now, laggingFactor, laggingMs);
                if (tasks.isChanged() || lagging != null) {
                    addMap(tasks.record(now, lagging), true);
                }
            }
            for (Iterator late = lateStages.values().iterator(); late.hasNext();) {
                StageTasks tasks = (StageTasks) late.next();
                if (tasks.isChanged()) {
                    addMap(tasks.lateRecord(), true);
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

    /** Tells the end in place of the driver's Python if that is gone, and returns whether it is. */
    private boolean spokeForPython() {
        if (lastWord == null || !lastWord.pythonIsGone()) {
            return false;
        }
        lastWord.speak(startsOfJobs(), records.rest(), Math.max(shutdownWaitMs, LAST_WORD_MS));
        return true;
    }

    /** Adds an ApplicationEnd with its cause, and returns that; null if it is not known. */
    private Map addEnd(SparkListenerApplicationEnd event, boolean inShutdown) {
        Map cause = lastWord == null ? null : lastWord.cause();
        try {
            String json = JsonProtocol.sparkEventToJsonString(event);
            if (cause == null) {
                cause = EndCause.of(inShutdown);
            }
            if (EndCause.SPARK.equals(cause.get("by")) && !cause.containsKey("said")) {
                cause.put("said", errors.recent());
            }
            if (EndCause.EXIT.equals(cause.get("by"))) {
                cause.put("said", errors.ofExit((String) cause.get("frames")));
            }
            if (EndCause.PYTHON.equals(cause.get("by")) && errors.exitCode() != null) {
                cause.put("exitCode", errors.exitCode());
            }
            String added = mapper.writeValueAsString(cause);
            addJson(json.substring(0, json.lastIndexOf('}')) + ",\"SparkEventsCause\":" + added + "}", false);
        } catch (Throwable error) {
            addEvent(event);
        }
        return cause;
    }

    private void forgetEndedJobs() {
        long handled = records.handled();
        synchronized (jobs) {
            while (!endedJobs.isEmpty() && ((long[]) endedJobs.peekFirst())[1] <= handled) {
                jobs.remove(Integer.valueOf((int) ((long[]) endedJobs.pollFirst())[0]));
            }
        }
    }

    private String startsOfJobs() {
        StringBuilder starts = new StringBuilder();
        synchronized (jobs) {
            for (Iterator all = jobs.values().iterator(); all.hasNext();) {
                starts.append(all.next()).append('\n');
            }
        }
        return starts.toString();
    }

    private long addEvent(SparkListenerEvent event) {
        try {
            return addJson(JsonProtocol.sparkEventToJsonString(event), !EventRecords.isLasting(event));
        } catch (Throwable error) {
            // Half a surrogate pair in a text, say: what tells of an end is told in our own words then.
            Map record = EventRecords.ofEnd(event);
            if (record != null) {
                return addMap(record, false);
            }
            records.countFailed();
            return 0;
        }
    }

    private long addMap(Map record, boolean isRoutine) {
        try {
            return addJson(mapper.writeValueAsString(record), isRoutine);
        } catch (Throwable error) {
            // Must not reach the listener bus, which would take this listener off for good.
            records.countFailed();
            return 0;
        }
    }

    private long addJson(String json, boolean isRoutine) throws IOException {
        return records.add(System.currentTimeMillis() + " " + texts.bounded(json), isRoutine);
    }

    private static Long key(int stage, int attempt) {
        return Long.valueOf(((long) stage << 32) | attempt);
    }
}
