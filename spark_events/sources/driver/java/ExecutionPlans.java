package io.sparkevents;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import org.apache.spark.sql.execution.SparkPlanInfo;
import org.apache.spark.sql.execution.metric.SQLMetricInfo;
import org.apache.spark.sql.execution.ui.SparkListenerDriverAccumUpdates;
import org.apache.spark.sql.execution.ui.SparkListenerSQLAdaptiveExecutionUpdate;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;
import scala.Tuple2;

/**
 * What the plans of SQL executions say, and the driver's metrics of them: the shape of each plan, and how many files
 * each execution reads and writes. execution_plans.py does the same for event logs.
 */
public class ExecutionPlans {
    private static final int MOST_EXECUTIONS = 10000;
    private static final int MOST_NODES = 10000;
    /** Spark's metrics, in the order of an execution's sums. */
    private static final String[] METRICS = {
        "number of files read", "size of files read", "number of written files", "written output"
    };
    private static final String[] FIELDS = {"Read", "Read Bytes", "Written", "Written Bytes"};

    private final HashMap executions = new HashMap(); // Long execution id -> Execution

    /** An execution that runs; one that is a part of another adds to the sums of that. */
    private static class Execution {
        final HashMap metrics = new HashMap(); // Long accumulator id -> Integer index in METRICS
        final long[] sums;

        Execution(long[] sums) {
            this.sums = sums;
        }
    }

    void begin(SparkListenerSQLExecutionStart event) {
        scala.Option root = event.rootExecutionId();
        Execution whole = root.isDefined() ? execution(((Number) root.get()).longValue()) : null;
        if (executions.size() < MOST_EXECUTIONS) {
            Execution execution = new Execution(whole == null ? new long[METRICS.length] : whole.sums);
            executions.put(Long.valueOf(event.executionId()), execution);
            if (event.sparkPlanInfo() != null) {
                follow(execution, event.sparkPlanInfo());
            }
        }
    }

    /** Takes the new plan of an execution: its nodes may have other metrics. */
    void replan(SparkListenerSQLAdaptiveExecutionUpdate event) {
        Execution execution = execution(event.executionId());
        if (execution != null && event.sparkPlanInfo() != null) {
            follow(execution, event.sparkPlanInfo());
        }
    }

    void add(SparkListenerDriverAccumUpdates event) {
        Execution execution = execution(event.executionId());
        if (execution == null) {
            return;
        }
        for (scala.collection.Iterator updates = event.accumUpdates().iterator(); updates.hasNext();) {
            Tuple2 update = (Tuple2) updates.next();
            Integer metric = (Integer) execution.metrics.get((Long) update._1());
            if (metric != null) {
                execution.sums[metric.intValue()] += ((Number) update._2()).longValue();
            }
        }
    }

    /** Returns the files of an execution that has ended; null if it has none. */
    LinkedHashMap end(long id) {
        Execution execution = (Execution) executions.remove(Long.valueOf(id));
        if (execution == null || execution.sums[0] + execution.sums[2] == 0) {
            return null;
        }
        LinkedHashMap files = new LinkedHashMap();
        for (int index = 0; index < FIELDS.length; index++) {
            files.put(FIELDS[index], Long.valueOf(execution.sums[index]));
        }
        return files;
    }

    /** Returns a digest of the names of a plan's nodes, each before its children: the same in each run. */
    static String shape(SparkPlanInfo plan) throws Exception {
        if (plan == null) {
            return null;
        }
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        ArrayDeque waiting = new ArrayDeque();
        waiting.push(plan);
        for (int nodes = 0; !waiting.isEmpty() && nodes < MOST_NODES; nodes++) {
            SparkPlanInfo node = (SparkPlanInfo) waiting.pop();
            String name = node.nodeName().replaceFirst(" \\(\\d+\\)$", "");
            String line = name + " " + node.children().size() + "\n";
            digest.update(line.getBytes(StandardCharsets.UTF_8));
            pushChildren(waiting, node);
        }
        byte[] bytes = digest.digest();
        StringBuilder text = new StringBuilder();
        for (int index = 0; index < 8; index++) {
            text.append(Character.forDigit((bytes[index] >> 4) & 15, 16));
            text.append(Character.forDigit(bytes[index] & 15, 16));
        }
        return text.toString();
    }

    private static void pushChildren(ArrayDeque waiting, SparkPlanInfo node) {
        for (int index = node.children().size() - 1; index >= 0; index--) {
            waiting.push(node.children().apply(index));
        }
    }

    private static void follow(Execution execution, SparkPlanInfo plan) {
        ArrayDeque waiting = new ArrayDeque();
        waiting.push(plan);
        for (int nodes = 0; !waiting.isEmpty() && nodes < MOST_NODES; nodes++) {
            SparkPlanInfo node = (SparkPlanInfo) waiting.pop();
            for (scala.collection.Iterator metrics = node.metrics().iterator(); metrics.hasNext();) {
                SQLMetricInfo metric = (SQLMetricInfo) metrics.next();
                for (int index = 0; index < METRICS.length; index++) {
                    if (METRICS[index].equals(metric.name())) {
                        execution.metrics.put(Long.valueOf(metric.accumulatorId()), Integer.valueOf(index));
                    }
                }
            }
            pushChildren(waiting, node);
        }
    }

    private Execution execution(long id) {
        return (Execution) executions.get(Long.valueOf(id));
    }
}
