package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import io.sparkevents.jvm.Written;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * What Dataset.observe has measured of data: of all rows that are read of a source, or that a table has from now on. An
 * observation elsewhere in a plan is of rows that are neither.
 */
final class Observed {
    private static final List PASSING = Arrays.asList("SubqueryAlias", "View", "Project");
    /** Nodes that may end before they have taken all rows below them. */
    private static final List STOPPING = Arrays.asList(
        "GlobalLimit", "LocalLimit", "Offset", "Tail", "MapPartitions", "MapInPandas", "MapInArrow", "PythonMapInArrow"
    );
    private static final String SCANNED = "numOutputRows";
    private final PlanFacts facts;
    private final Sinks sinks;
    private final Map measured;
    private final ArrayList observations = new ArrayList();

    private Observed(PlanFacts facts, Sinks sinks, Map measured) {
        this.facts = facts;
        this.sinks = sinks;
        this.measured = measured;
    }

    /** Adds the values of the observations among the nodes of a plan that has run, and the rows of their scans. */
    static void addMeasured(List nodes, Map measured) {
        for (int i = 0; i < nodes.size(); i++) {
            if (Reflect.isA(nodes.get(i), "CollectMetricsExec")) {
                Object row = Reflect.get(nodes.get(i), "collectedMetrics");
                if (row instanceof Row) {
                    Object scanned = Written.metrics(leaf(nodes.get(i))).get(SCANNED);
                    measured.put(Reflect.text(Reflect.get(nodes.get(i), "name")), new Object[] {row, scanned});
                }
            }
        }
    }

    /** Returns the node at the end of a chain of nodes; null where several lie below one. */
    private static Object leaf(Object node) {
        List children = Reflect.list(Reflect.get(node, "children"));
        while (children.size() == 1) {
            node = children.get(0);
            children = Reflect.list(Reflect.get(node, "children"));
        }
        return children.isEmpty() ? node : null;
    }

    /**
     * Returns what is known of data: its identity, whether it was written, rows, and figures of its columns.
     *
     * @param command that has run for the statement, if it writes files
     */
    static List by(LogicalPlan plan, Object command, PlanFacts facts, Sinks sinks, Map measured) {
        Observed observed = new Observed(facts, sinks, measured);
        if (!measured.isEmpty()) {
            observed.walk(plan, observed.ofSink(plan, command), true);
        }
        return observed.observations;
    }

    /** Returns the observation of the very rows that are written in place of all others; null where there is none. */
    private LogicalPlan ofSink(LogicalPlan plan, Object command) {
        Object query = Reflect.get(plan, "query");
        while (query instanceof LogicalPlan && PASSING.contains(Reflect.simpleName(query.getClass()))) {
            query = ((LogicalPlan) query).children().head();
        }
        boolean isOfAll = isObservation(query) && sinks.all().size() == 1
            && Overwrite.isOfAll(plan, command, (Map) sinks.all().get(0));
        return isOfAll ? (LogicalPlan) query : null;
    }

    private static boolean isObservation(Object plan) {
        return Reflect.isA(plan, "CollectMetrics");
    }

    /** @param takenOnce whether the nodes above take all of its rows, and each of them once */
    private void walk(LogicalPlan plan, LogicalPlan ofSink, boolean takenOnce) {
        Object[] values = isObservation(plan)
            ? (Object[]) measured.get(Reflect.text(Reflect.get(plan, "name"))) : null;
        if (values != null) {
            addValues(plan, (Row) values[0], values[1], plan == ofSink, takenOnce);
        }
        List parts = Reflect.list(plan.children());
        Object query = Reflect.get(plan, "query");
        if (query instanceof LogicalPlan && !parts.contains(query)) {
            parts.add(query);
        }
        boolean takesOnce = isShuffle(plan) || takenOnce && !STOPPING.contains(Reflect.simpleName(plan.getClass()));
        for (int i = 0; i < parts.size(); i++) {
            walk((LogicalPlan) parts.get(i), ofSink, takesOnce && !isSampled(plan));
        }
    }

    private void addValues(LogicalPlan observation, Row row, Object scanned, boolean isOfSink, boolean takenOnce) {
        if (isOfSink) {
            add(((Map) sinks.all().get(0)).get("identity"), true, data(observation, row, sinks.namesById()));
        }
        LogicalPlan source = takenOnce ? source(observation) : null;
        if (source != null) {
            LinkedHashMap data = data(observation, row, sourceColumns(source));
            Object rows = data.get("rows");
            if (rows == null || scanned == null || rows.equals(scanned)) {
                add(identity(source), false, data);
            }
        }
    }

    /** Tells whether a node takes all rows below it, though one above it may stop. */
    private static boolean isShuffle(LogicalPlan plan) {
        return Reflect.isA(plan, "RepartitionByExpression")
            || Reflect.isA(plan, "Repartition") && Boolean.TRUE.equals(Reflect.get(plan, "shuffle"));
    }

    /** Tells whether Spark may run all below a node twice, first to see between which bounds the rows are. */
    private static boolean isSampled(LogicalPlan plan) {
        Object order = Reflect.get(plan, "partitionExpressions");
        return Reflect.isA(plan, "Sort") && Boolean.TRUE.equals(Reflect.get(plan, "global"))
            || Reflect.isA(Reflect.get(order, "headOption"), "SortOrder");
    }

    /** Returns the leaf whose rows, all of them, an observation sees; null where it sees others. */
    private LogicalPlan source(LogicalPlan observation) {
        LogicalPlan plan = (LogicalPlan) observation.children().head();
        while (PASSING.contains(Reflect.simpleName(plan.getClass()))) {
            plan = (LogicalPlan) plan.children().head();
        }
        return plan.children().isEmpty() && sourceNumber(plan) >= 0 ? plan : null;
    }

    private int sourceNumber(LogicalPlan leaf) {
        Attribute[] output = Trees.output(leaf);
        List column = output.length == 0 ? null : column(output[0]);
        return column == null ? -1 : ((Integer) column.get(0)).intValue();
    }

    private Object identity(LogicalPlan leaf) {
        return ((Map) facts.sources().get(sourceNumber(leaf))).get("identity");
    }

    /** Returns the source's column that an attribute passes on unchanged; null where it is no such one. */
    private List column(Attribute attribute) {
        Map kinds = facts.of(attribute).kinds();
        if (kinds.size() != 1 || !kinds.containsValue(Inputs.IDENTITY)) {
            return null;
        }
        return (List) facts.columns().get(((Integer) kinds.keySet().iterator().next()).intValue());
    }

    private Map sourceColumns(LogicalPlan leaf) {
        HashMap names = new HashMap();
        Attribute[] output = Trees.output(leaf);
        for (int i = 0; i < output.length; i++) {
            List column = column(output[i]);
            if (column != null) {
                names.put(output[i].exprId(), column.get(1));
            }
        }
        return names;
    }

    private void add(Object identity, boolean written, LinkedHashMap data) {
        data.put("identity", identity);
        data.put("written", written);
        if (data.get("rows") != null || !((Map) data.get("columns")).isEmpty()) {
            observations.add(data);
        }
    }

    /** Returns the rows and the figures of columns that an observation has. */
    private static LinkedHashMap data(LogicalPlan observation, Row row, Map names) {
        LinkedHashMap columns = new LinkedHashMap();
        LinkedHashMap data = new LinkedHashMap();
        data.put("columns", columns);
        Expression[] metrics = Trees.expressions(Reflect.get(observation, "metrics"));
        for (int i = 0; i < metrics.length && i < row.size(); i++) {
            Object value = row.get(i);
            Expression metric = unwrapped(metrics[i]);
            String figure = value instanceof Number && metric != null ? figure(metric) : null;
            Object column = figure == null ? null : names.get(columnId(metric));
            if ("rows".equals(figure)) {
                data.put("rows", value);
            } else if (column != null) {
                LinkedHashMap figures = (LinkedHashMap) columns.get(column);
                figures = figures == null ? new LinkedHashMap() : figures;
                figures.put(figure, value);
                columns.put(column, figures);
            }
        }
        return data;
    }

    /** Returns an aggregate function without its name; null for one that counts some rows only. */
    private static Expression unwrapped(Expression metric) {
        Object expression = Reflect.isA(metric, "Alias") ? Reflect.get(metric, "child") : metric;
        return Reflect.isA(expression, "AggregateExpression") && Reflect.get(expression, "filter") == null
            ? (Expression) expression : null;
    }

    /** Returns OpenLineage's name of what an aggregate is of a column, or {@code rows}; null for any other. */
    private static String figure(Expression aggregate) {
        Object function = Reflect.get(aggregate, "aggregateFunction");
        String name = Reflect.simpleName(function.getClass());
        boolean isDistinct = Boolean.TRUE.equals(Reflect.get(aggregate, "isDistinct"));
        if (name.equals("Count")) {
            Expression[] counted = Trees.expressions(((Expression) function).children());
            boolean isOfRows = counted.length == 1 && counted[0] instanceof Literal && !isDistinct;
            return isOfRows ? "rows" : counted.length > 1 ? null : isDistinct ? "distinctCount" : "count";
        }
        if (name.equals("CountIf")) {
            return Reflect.isA(((Expression) function).children().head(), "IsNull") ? "nullCount" : null;
        }
        boolean isPlain = name.equals("Min") || name.equals("Max") || name.equals("Sum") && !isDistinct;
        return isPlain ? name.toLowerCase() : null;
    }

    /** Returns the id of the column that is aggregated; null where that is an expression of some. */
    private static Object columnId(Expression aggregate) {
        Expression function = (Expression) Reflect.get(aggregate, "aggregateFunction");
        Expression input = function.children().isEmpty() ? null : (Expression) function.children().head();
        if (Reflect.isA(input, "IsNull")) {
            input = (Expression) input.children().head();
        }
        return input instanceof Attribute ? ((Attribute) input).exprId() : null;
    }
}
