package io.sparkevents;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.execution.SparkPlanInfo;
import org.apache.spark.sql.execution.metric.SQLMetricInfo;
import org.apache.spark.sql.execution.ui.SparkListenerDriverAccumUpdates;
import org.apache.spark.sql.execution.ui.SparkListenerSQLAdaptiveExecutionUpdate;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;
import scala.Tuple2;

/**
 * What the plans of SQL executions say, and the driver's metrics of them: the shape of each plan, how many files each
 * execution reads and writes, and the nodes of its last plan. execution_plans.py does the same for event logs.
 */
public class ExecutionPlans {
    private static final int MOST_EXECUTIONS = 10000;
    private static final int MOST_NODES = 10000;
    private static final int MOST_PLANS_TOLD = 20;
    private static final int MOST_NODES_TOLD = 1000;
    private static final int LONGEST_TEXT = 500;
    private static final String STATE = ", state cleanup [";
    private static final int LONGEST_OF_STATE = 200;
    private static final String CONDITION = " WHEN ";
    private static final int MANY_CONDITIONS = 50;
    private static final int ALL_SHOWN = 20;
    private static final Pattern MORE_AGGREGATES =
        Pattern.compile("functions=\\[.*\\.\\.\\. ([0-9]{1,5}) more fields\\]");
    private static final Pattern WINDOW =
        Pattern.compile("named_struct\\(start, (?:knownnullable\\()?precisetimestampconversion\\(");
    private static final Pattern COLUMN = Pattern.compile("[A-Za-z_][A-Za-z0-9_.]*#[0-9]+");
    /** Spark's metrics, in the order of an execution's sums. */
    private static final String[] METRICS = {
        "number of files read", "size of files read", "number of written files", "written output",
        "number of dynamic part"
    };
    private static final String[] FIELDS = {"Read", "Read Bytes", "Written", "Written Bytes", "Written Parts"};
    /** The places of the metrics that the sink of a streaming query tells, of those that it makes; no plan has them. */
    private static final int[] UNPLANNED = {0, 1, 2, 3, 5};
    private static final String[] METADATA = {"Location", "PartitionFilters", "DataFilters"};

    private final HashMap executions = new HashMap(); // Long execution id -> Execution
    private final HashMap told = new HashMap(); // name of a metric -> Integer, its place in PLAN_METRICS

    /** An execution that runs; one that is a part of another adds to the sums and the plans of that. */
    private static class Execution {
        final HashMap metrics = new HashMap(); // Long accumulator id -> Integer index in METRICS
        final long[] sums;
        final LinkedHashMap plans; // Long execution id -> SparkPlanInfo, the last one
        final TreeMap driver; // Long accumulator id -> Long, the sum of the driver's updates
        final Execution whole; // null if it is no part of another
        final long begun;
        long partsTime = 0;

        Execution(Execution whole, long begun) {
            this.whole = whole;
            this.begun = begun;
            sums = whole == null ? new long[METRICS.length] : whole.sums;
            plans = whole == null ? new LinkedHashMap() : whole.plans;
            driver = whole == null ? new TreeMap() : whole.driver;
        }
    }

    /** Takes the names of the metrics of nodes that are told: execution_plans.py has them. */
    ExecutionPlans(String[] planMetrics) {
        for (int index = 0; index < planMetrics.length; index++) {
            told.put(planMetrics[index], Integer.valueOf(index));
        }
    }

    void begin(SparkListenerSQLExecutionStart event) {
        scala.Option root = event.rootExecutionId();
        Execution whole = root.isDefined() ? execution(((Number) root.get()).longValue()) : null;
        if (executions.size() < MOST_EXECUTIONS) {
            Execution execution = new Execution(whole, event.time());
            executions.put(Long.valueOf(event.executionId()), execution);
            if (event.sparkPlanInfo() != null) {
                follow(event.executionId(), execution, event.sparkPlanInfo());
            }
        }
    }

    /** Takes the new plan of an execution: its nodes may have other metrics. */
    void replan(SparkListenerSQLAdaptiveExecutionUpdate event) {
        Execution execution = execution(event.executionId());
        if (execution != null && event.sparkPlanInfo() != null) {
            follow(event.executionId(), execution, event.sparkPlanInfo());
        }
    }

    void add(SparkListenerDriverAccumUpdates event) {
        Execution execution = execution(event.executionId());
        if (execution == null) {
            return;
        }
        TreeMap unplanned = new TreeMap();
        for (scala.collection.Iterator updates = event.accumUpdates().iterator(); updates.hasNext();) {
            Tuple2 update = (Tuple2) updates.next();
            unplanned.put(update._1(), update._2());
            long value = ((Number) update._2()).longValue();
            Integer metric = (Integer) execution.metrics.get((Long) update._1());
            if (metric == null) {
                continue;
            }
            if (metric.intValue() >= 0) {
                execution.sums[metric.intValue()] += value;
            }
            Long before = (Long) execution.driver.get(update._1());
            execution.driver.put(update._1(), Long.valueOf(value + (before == null ? 0 : before.longValue())));
        }
        if (Collections.disjoint(unplanned.keySet(), execution.metrics.keySet())) {
            addUnplanned(execution.sums, unplanned);
        }
    }

    /** Adds what the sink of a streaming query has written, as BasicWriteJobStatsTracker tells it. */
    private static void addUnplanned(long[] sums, TreeMap updates) {
        long[] values = new long[UNPLANNED.length];
        if (updates.size() != values.length) {
            return;
        }
        long first = ((Number) updates.firstKey()).longValue();
        int place = 0;
        for (Iterator each = updates.entrySet().iterator(); each.hasNext(); place++) {
            Map.Entry update = (Map.Entry) each.next();
            if (((Number) update.getKey()).longValue() != first + UNPLANNED[place]) {
                return;
            }
            values[place] = ((Number) update.getValue()).longValue();
        }
        sums[2] += values[0];
        sums[3] += values[1];
        sums[4] += values[3];
    }

    /** Adds to the record of an execution's end what files it has read and written, and its plans, if there are any. */
    void end(long id, long time, Map record) {
        Execution execution = (Execution) executions.remove(Long.valueOf(id));
        if (execution == null) {
            return;
        }
        if (execution.whole != null) { // which tells of its parts
            execution.whole.partsTime += Math.max(0, time - execution.begun);
            return;
        }
        if (execution.sums[0] + execution.sums[2] > 0) {
            LinkedHashMap files = new LinkedHashMap();
            for (int index = 0; index < FIELDS.length; index++) {
                files.put(FIELDS[index], Long.valueOf(execution.sums[index]));
            }
            record.put("Files", files);
        }
        if (execution.partsTime > 0) {
            record.put("Parts Time", Long.valueOf(execution.partsTime));
        }
        ArrayList plans = new ArrayList();
        int left = MOST_NODES_TOLD;
        for (Iterator each = execution.plans.values().iterator(); each.hasNext();) {
            ArrayList nodes = nodes((SparkPlanInfo) each.next(), left);
            plans.add(nodes);
            left -= nodes.size();
        }
        if (!plans.isEmpty()) {
            record.put("Plans", plans);
            record.put("Driver Metrics", execution.driver);
        }
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

    /** Returns so many nodes of a plan, each before its children: depth, name, text, metadata, metrics and their ids. */
    private ArrayList nodes(SparkPlanInfo plan, int most) {
        ArrayList nodes = new ArrayList();
        ArrayDeque waiting = new ArrayDeque();
        ArrayDeque depths = new ArrayDeque();
        waiting.push(plan);
        depths.push(Integer.valueOf(0));
        while (!waiting.isEmpty() && nodes.size() < most) {
            SparkPlanInfo node = (SparkPlanInfo) waiting.pop();
            int depth = ((Integer) depths.pop()).intValue();
            ArrayList values = new ArrayList();
            values.add(Integer.valueOf(depth));
            values.add(beginning(node.nodeName()));
            String text = withShortWindows(node.simpleString());
            values.add(beginning(text) + ofState(text) + ofCase(text));
            values.add(metadata(node));
            values.add(metrics(node));
            nodes.add(values);
            pushChildren(waiting, node);
            for (int index = 0; index < node.children().size(); index++) {
                depths.push(Integer.valueOf(depth + 1));
            }
        }
        return nodes;
    }

    private static LinkedHashMap metadata(SparkPlanInfo node) {
        LinkedHashMap metadata = new LinkedHashMap();
        for (int index = 0; index < METADATA.length; index++) {
            scala.Option value = node.metadata().get(METADATA[index]);
            if (value.isDefined()) {
                metadata.put(METADATA[index], beginning((String) value.get()));
            }
        }
        return metadata;
    }

    private ArrayList metrics(SparkPlanInfo node) {
        ArrayList metrics = new ArrayList();
        for (scala.collection.Iterator all = node.metrics().iterator(); all.hasNext();) {
            SQLMetricInfo metric = (SQLMetricInfo) all.next();
            Integer index = (Integer) told.get(metric.name());
            if (index != null) {
                metrics.add(new long[] {index.intValue(), metric.accumulatorId()});
            }
        }
        return metrics;
    }

    /** Returns what a node's text says of its state, if that is behind the beginning; else an empty text. */
    private static String ofState(String text) {
        int beginning = beginning(text).length();
        int place = text.indexOf(STATE, beginning);
        return place < 0 ? "" : text.substring(place, Math.min(text.length(), place + LONGEST_OF_STATE));
    }

    /** Returns how many conditions a node's text has, if these are many, and not all in its beginning; else an empty text. */
    private static String ofCase(String text) {
        int conditions = 0;
        if (beginning(text).length() < text.length()) {
            for (int at = text.indexOf(CONDITION); at >= 0; at = text.indexOf(CONDITION, at + CONDITION.length())) {
                conditions++;
            }
        }
        Matcher more = MORE_AGGREGATES.matcher(conditions < ALL_SHOWN ? "" : text);
        conditions += more.find() ? Integer.parseInt(more.group(1)) : 0;
        return conditions < MANY_CONDITIONS ? "" : ", conditions of CASE [" + conditions + "]";
    }

    /** Returns a node's text with window(ts#1) in place of the long text that Spark makes of that. */
    private static String withShortWindows(String text) {
        if (text.indexOf("precisetimestampconversion(") < 0) {
            return text;
        }
        StringBuilder parts = new StringBuilder();
        int done = 0;
        for (Matcher window = WINDOW.matcher(text); window.find(done);) {
            int end = endOfCall(text, window.start() + "named_struct(".length());
            if (end < 0) {
                break;
            }
            Matcher column = COLUMN.matcher(text).region(window.end(), end);
            parts.append(text.substring(done, window.start())).append("window(");
            parts.append(column.find() ? column.group() : "").append(")");
            done = end;
        }
        return parts.append(text.substring(done)).toString();
    }

    /** Returns where a call ends whose arguments begin there; -1 if it does not. */
    private static int endOfCall(String text, int begin) {
        int depth = 1;
        for (int place = begin; place < text.length(); place++) {
            char character = text.charAt(place);
            depth += character == '(' ? 1 : character == ')' ? -1 : 0;
            if (depth == 0) {
                return place + 1;
            }
        }
        return -1;
    }

    private static String beginning(String text) {
        if (text.length() <= LONGEST_TEXT || text.codePointCount(0, text.length()) <= LONGEST_TEXT) {
            return text;
        }
        return text.substring(0, text.offsetByCodePoints(0, LONGEST_TEXT));
    }

    private static void pushChildren(ArrayDeque waiting, SparkPlanInfo node) {
        for (int index = node.children().size() - 1; index >= 0; index--) {
            waiting.push(node.children().apply(index));
        }
    }

    private void follow(long id, Execution execution, SparkPlanInfo plan) {
        Long key = Long.valueOf(id);
        if (execution.plans.containsKey(key) || execution.plans.size() < MOST_PLANS_TOLD) {
            execution.plans.put(key, plan);
        }
        ArrayDeque waiting = new ArrayDeque();
        waiting.push(plan);
        for (int nodes = 0; !waiting.isEmpty() && nodes < MOST_NODES; nodes++) {
            SparkPlanInfo node = (SparkPlanInfo) waiting.pop();
            for (scala.collection.Iterator metrics = node.metrics().iterator(); metrics.hasNext();) {
                SQLMetricInfo metric = (SQLMetricInfo) metrics.next();
                Long accumulator = Long.valueOf(metric.accumulatorId());
                if (told.containsKey(metric.name())) {
                    execution.metrics.put(accumulator, Integer.valueOf(-1));
                }
                for (int index = 0; index < METRICS.length; index++) {
                    if (METRICS[index].equals(metric.name())) {
                        execution.metrics.put(accumulator, Integer.valueOf(index));
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
