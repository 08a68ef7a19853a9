package io.sparkevents;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.ExceptionFailure;
import org.apache.spark.ExecutorLostFailure;
import org.apache.spark.FetchFailed;
import org.apache.spark.TaskEndReason;
import org.apache.spark.TaskKilled;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.TaskInfo;

/**
 * What the tasks of one stage attempt measured: how each quantity is distributed, and how much each host has done.
 * Only first attempts that succeeded count; speculative copies and failed attempts do not tell how long a task takes.
 * The event-log source does the same with the same arithmetic (task_statistics.py).
 */
public class TaskStatistics {
    private static final int MOST_HOSTS = 100;
    private static final int MOST_EXECUTORS = 100;
    private static final String[] QUANTITIES = {
        "Duration", "Executor Run Time", "JVM GC Time", "Executor Deserialize Time", "Scheduler Delay",
        "Fetch Wait Time", "Bytes Read", "Records Read", "Bytes Written", "Disk Bytes Spilled"
    };
    private static final int RUN = 1;
    private static final int MOST_LONGEST = 8;
    private static final int LONGEST_REASON = 10000;

    private final Distribution[] distributions = new Distribution[QUANTITIES.length];
    private final HashMap hosts = new HashMap(); // host -> long[] {tasks, run time, bytes read}
    private final HashMap executors = new HashMap(); // executor -> Object[] {host, tasks, run time, bytes read}
    private long withoutInput = 0; // tasks that read nothing from a source, nor from a cache
    private long withoutInputMs = 0;
    private long firstLaunch = Long.MAX_VALUE;
    private long lastFinish = 0;
    private final ArrayList longestRuns = new ArrayList(); // Object[], see keepLongest; the longest first
    private int failed = 0;
    private int killed = 0;
    private int fetchFailures = 0;
    private long failedMs = 0;
    private long killedMs = 0;
    private String lastFailure = "";

    public TaskStatistics() {
        for (int i = 0; i < QUANTITIES.length; i++) {
            distributions[i] = new Distribution();
        }
    }

    /** Takes a task that has ended. */
    void end(SparkListenerTaskEnd event, boolean succeeded) {
        TaskInfo info = event.taskInfo();
        long duration = Math.max(0, info.finishTime() - info.launchTime());
        firstLaunch = Math.min(firstLaunch, info.launchTime());
        lastFinish = Math.max(lastFinish, info.finishTime());
        if (succeeded) {
            if (!info.speculative() && event.taskMetrics() != null) {
                add(info, event.taskMetrics(), duration);
            }
        } else if (event.reason() instanceof TaskKilled) {
            killed++;
            killedMs += duration;
        } else {
            failed++;
            failedMs += duration;
            fetchFailures += event.reason() instanceof FetchFailed ? 1 : 0;
            String said = said(event.reason());
            lastFailure = said == null ? lastFailure : said.substring(0, Math.min(said.length(), LONGEST_REASON));
        }
    }

    /** Returns what an attempt failed of, as the event log tells it; null if that is said elsewhere. */
    private static String said(TaskEndReason reason) {
        if (reason instanceof ExceptionFailure && ((ExceptionFailure) reason).description() != null) {
            return ((ExceptionFailure) reason).className() + ": " + ((ExceptionFailure) reason).description();
        }
        if (reason instanceof ExecutorLostFailure && ((ExecutorLostFailure) reason).reason().isDefined()) {
            return (String) ((ExecutorLostFailure) reason).reason().get();
        }
        return null;
    }

    private void add(TaskInfo info, TaskMetrics metrics, long duration) {
        long run = metrics.executorRunTime();
        long fetched = info.gettingResultTime() > 0 ? Math.max(0, info.finishTime() - info.gettingResultTime()) : 0;
        long busy = run + metrics.executorDeserializeTime() + metrics.resultSerializationTime() + fetched;
        long read = metrics.inputMetrics().bytesRead() + metrics.shuffleReadMetrics().totalBytesRead();
        long rows = metrics.inputMetrics().recordsRead() + metrics.shuffleReadMetrics().recordsRead();
        long[] values = {
            duration, run, metrics.jvmGCTime(), metrics.executorDeserializeTime(), Math.max(0, duration - busy),
            metrics.shuffleReadMetrics().fetchWaitTime(), read, rows,
            metrics.outputMetrics().bytesWritten() + metrics.shuffleWriteMetrics().bytesWritten(),
            metrics.diskBytesSpilled()
        };
        for (int i = 0; i < values.length; i++) {
            distributions[i].add(values[i]);
        }
        keepLongest(info, run, read, rows);
        if (metrics.inputMetrics().bytesRead() == 0) {
            withoutInput++;
            withoutInputMs += run;
        }
        addToExecutor(info, run, read);
        long[] host = (long[]) hosts.get(info.host());
        if (host == null) {
            if (hosts.size() >= MOST_HOSTS) {
                return;
            }
            host = new long[3];
            hosts.put(info.host(), host);
        }
        host[0]++;
        host[1] += run;
        host[2] += read;
    }

    private void addToExecutor(TaskInfo info, long run, long read) {
        Object[] executor = (Object[]) executors.get(info.executorId());
        if (executor == null) {
            if (executors.size() >= MOST_EXECUTORS) {
                return;
            }
            executor = new Object[] {info.host(), new long[3]};
            executors.put(info.executorId(), executor);
        }
        long[] work = (long[]) executor[1];
        work[0]++;
        work[1] += run;
        work[2] += read;
    }

    /** Returns what each executor has done that shares its host with others: its host, and the three sums. */
    private TreeMap sharing() {
        HashMap onHost = new HashMap();
        for (Object executor : executors.values()) {
            Object host = ((Object[]) executor)[0];
            Integer before = (Integer) onHost.get(host);
            onHost.put(host, Integer.valueOf(before == null ? 1 : before.intValue() + 1));
        }
        TreeMap sharing = new TreeMap();
        for (Object entry : executors.entrySet()) {
            Object[] executor = (Object[]) ((Map.Entry) entry).getValue();
            if (((Integer) onHost.get(executor[0])).intValue() > 1) {
                long[] work = (long[]) executor[1];
                sharing.put(((Map.Entry) entry).getKey(), new Object[] {
                    executor[0], Long.valueOf(work[0]), Long.valueOf(work[1]), Long.valueOf(work[2])
                });
            }
        }
        return sharing;
    }

    /** Keeps a task if it is among the longest; of those that are equally long, the first. */
    private void keepLongest(TaskInfo info, long run, long read, long rows) {
        int place = longestRuns.size();
        while (place > 0 && ((Long) ((Object[]) longestRuns.get(place - 1))[2]).longValue() < run) {
            place--;
        }
        if (place < MOST_LONGEST) {
            longestRuns.add(place, new Object[] {
                Integer.valueOf(info.index()), Long.valueOf(info.launchTime()), Long.valueOf(run), Long.valueOf(read),
                info.executorId(), info.host(), Long.valueOf(rows)
            });
            if (longestRuns.size() > MOST_LONGEST) {
                longestRuns.remove(MOST_LONGEST);
            }
        }
    }

    /** Returns how long half of the tasks ran at most, in ms. */
    long medianRunMs() {
        return distributions[RUN].quantile(50);
    }

    /** Returns all of it as a part of a record. */
    LinkedHashMap toMap(int mostRunning) {
        LinkedHashMap map = new LinkedHashMap();
        map.put("Tasks", Long.valueOf(distributions[RUN].count()));
        map.put("Most Running", Integer.valueOf(mostRunning));
        map.put("First Launch", Long.valueOf(lastFinish > 0 ? firstLaunch : 0));
        map.put("Last Finish", Long.valueOf(lastFinish));
        map.put("Failed", Integer.valueOf(failed));
        map.put("Failed Time", Long.valueOf(failedMs));
        map.put("Fetch Failures", Integer.valueOf(fetchFailures));
        map.put("Last Failure", lastFailure);
        map.put("Killed", Integer.valueOf(killed));
        map.put("Killed Time", Long.valueOf(killedMs));
        for (int i = 0; i < QUANTITIES.length; i++) {
            map.put(QUANTITIES[i], distributions[i].summary());
        }
        map.put("Longest Runs", longestRuns);
        map.put("Hosts", new TreeMap(hosts));
        map.put("Executors", sharing());
        map.put("Without Input", new long[] {withoutInput, withoutInputMs});
        return map;
    }
}
