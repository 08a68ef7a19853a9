package io.sparkevents;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeSet;
import org.apache.spark.ExecutorLostFailure;
import org.apache.spark.executor.ExecutorMetrics;
import org.apache.spark.metrics.ExecutorMetricType$;
import org.apache.spark.scheduler.SparkListenerExecutorMetricsUpdate;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;

/**
 * What each executor runs, and what it has measured since Python fetched it last. However many tasks and heartbeats
 * there are, Python gets one record a second with at most one set of values for each executor.
 */
public class ExecutorStates {
    private static final String HEAP = "JVMHeapMemory";

    /** One executor: its running tasks by stage, and its measurements that wait for Python. */
    private static class State {
        final HashMap running = new HashMap(); // Integer stage -> int[] {tasks}
        final TreeSet lostOf = new TreeSet(); // stages whose tasks were lost with it
        int lost = 0;
        long shuffleBytes = 0;
    }

    private final String[] names;
    private final HashMap states = new HashMap();
    private HashMap beats = new HashMap(); // executor -> long[] by name
    private HashMap peaks = new HashMap();

    public ExecutorStates() {
        ArrayList keys = new ArrayList();
        scala.collection.Iterator metrics = ExecutorMetricType$.MODULE$.metricToOffset().keysIterator();
        while (metrics.hasNext()) {
            String name = (String) metrics.next();
            // Sums of others, and address space, which nobody runs out of.
            if (name.indexOf("Unified") < 0 && !name.endsWith("VMemory")) {
                keys.add(name);
            }
        }
        names = (String[]) keys.toArray(new String[keys.size()]);
    }

    /** Takes a heartbeat: for each stage that is active, the highest values since the heartbeat before. */
    synchronized void beat(SparkListenerExecutorMetricsUpdate event) {
        scala.collection.Iterator ofStages = event.executorUpdates().valuesIterator();
        while (ofStages.hasNext()) {
            keepHighest(beats, event.execId(), (ExecutorMetrics) ofStages.next());
        }
    }

    synchronized void start(SparkListenerTaskStart event) {
        String executor = event.taskInfo().executorId();
        State state = (State) states.get(executor);
        if (state == null) {
            state = new State();
            states.put(executor, state);
        }
        int[] tasks = (int[]) state.running.get(Integer.valueOf(event.stageId()));
        if (tasks == null) {
            tasks = new int[1];
            state.running.put(Integer.valueOf(event.stageId()), tasks);
        }
        tasks[0]++;
    }

    /** Takes a task's end, with the highest values while it ran. */
    synchronized void end(SparkListenerTaskEnd event) {
        String executor = event.taskInfo().executorId();
        if (event.taskExecutorMetrics() != null) {
            keepHighest(peaks, executor, event.taskExecutorMetrics());
        }
        State state = (State) states.get(executor);
        if (state == null) {
            return; // it began before anybody listened, or its executor is gone already
        }
        Integer stage = Integer.valueOf(event.stageId());
        int[] tasks = (int[]) state.running.get(stage);
        if (tasks != null && --tasks[0] == 0) {
            state.running.remove(stage);
        }
        if (event.reason() instanceof ExecutorLostFailure) {
            state.lost++;
            state.lostOf.add(stage);
        } else if (event.taskMetrics() != null) {
            state.shuffleBytes += event.taskMetrics().shuffleWriteMetrics().bytesWritten();
        }
    }

    /** Returns what was measured since the last call; null where nothing was. */
    synchronized LinkedHashMap measured(long now) {
        if (beats.isEmpty() && peaks.isEmpty()) {
            return null;
        }
        LinkedHashMap record = new LinkedHashMap();
        record.put("Event", "SparkEventsExecutorMetrics");
        record.put("Time", Long.valueOf(now));
        record.put("Heartbeats", byName(beats));
        record.put("Task Peaks", byName(peaks));
        beats = new HashMap();
        peaks = new HashMap();
        return record;
    }

    /** Returns what an executor ran when it went, and forgets it. */
    synchronized LinkedHashMap removed(String executor) {
        State state = (State) states.remove(executor);
        if (state == null) {
            state = new State();
        }
        int tasks = state.lost;
        TreeSet stages = state.lostOf;
        for (Iterator running = state.running.entrySet().iterator(); running.hasNext();) {
            Map.Entry ofStage = (Map.Entry) running.next();
            tasks += ((int[]) ofStage.getValue())[0];
            stages.add(ofStage.getKey());
        }
        LinkedHashMap record = new LinkedHashMap();
        record.put("Event", "SparkEventsExecutorTasks");
        record.put("Executor ID", executor);
        record.put("Running Tasks", Integer.valueOf(tasks));
        record.put("Stage IDs", stages);
        record.put("Shuffle Bytes Written", Long.valueOf(state.shuffleBytes));
        return record;
    }

    /** Keeps the highest of each value; no heap at all means that nobody has measured. */
    private void keepHighest(HashMap kept, String executor, ExecutorMetrics metrics) {
        if (metrics.getMetricValue(HEAP) <= 0) {
            return;
        }
        long[] values = (long[]) kept.get(executor);
        if (values == null) {
            values = new long[names.length];
            kept.put(executor, values);
        }
        for (int i = 0; i < names.length; i++) {
            values[i] = Math.max(values[i], metrics.getMetricValue(names[i]));
        }
    }

    private LinkedHashMap byName(HashMap ofExecutors) {
        LinkedHashMap all = new LinkedHashMap();
        for (Iterator executors = ofExecutors.entrySet().iterator(); executors.hasNext();) {
            Map.Entry executor = (Map.Entry) executors.next();
            long[] values = (long[]) executor.getValue();
            LinkedHashMap named = new LinkedHashMap();
            for (int i = 0; i < names.length; i++) {
                named.put(names[i], Long.valueOf(values[i]));
            }
            all.put(executor.getKey(), named);
        }
        return all;
    }
}
