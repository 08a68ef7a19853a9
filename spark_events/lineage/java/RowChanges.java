package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** UPDATE, DELETE and MERGE in the form of Spark's or Delta's plans, before they are turned into queries. */
final class RowChanges {
    private static final String[] CLAUSES = {
        "matchedActions", "notMatchedActions", "notMatchedBySourceActions",
        "matchedClauses", "notMatchedClauses", "notMatchedBySourceClauses"
    };
    private final Writes writes;
    private final PlanWalker walker;
    private final Sinks sinks;
    private final HashMap inputsByColumn = new HashMap();
    private final HashMap textsByColumn = new HashMap();

    RowChanges(Writes writes, PlanWalker walker, Sinks sinks) {
        this.writes = writes;
        this.walker = walker;
        this.sinks = sinks;
    }

    /** Reads such a node; tells whether it is one. */
    boolean read(LogicalPlan node, String name) {
        if (name.equals("UpdateTable") || name.equals("UpdateCommand")) {
            readUpdate(node);
        } else if (name.equals("DeleteFromTable") || name.equals("DeleteCommand")) {
            addSink(readTable(node), "DELETE");
        } else if (name.startsWith("MergeInto")) {
            readMerge(node);
        } else {
            return false;
        }
        return true;
    }

    private void readUpdate(LogicalPlan node) {
        LogicalPlan table = readTable(node);
        readAssignments(Reflect.get(node, "assignments"));
        Expression[] values = Trees.expressions(Reflect.get(node, "updateExpressions"));
        Attribute[] columns = Trees.output(table);
        for (int i = 0; i < values.length && i < columns.length; i++) {
            addInputs(columns[i].name(), values[i]);
        }
        addSink(table, "UPDATE");
    }

    /** Reads the table of UPDATE or DELETE, and which of its rows are changed. */
    private LogicalPlan readTable(LogicalPlan node) {
        LogicalPlan table = (LogicalPlan) Reflect.first(node, "table|target");
        walker.walk(table);
        walker.expressions.influence(Reflect.get(node, "condition"), Inputs.FILTER);
        return table;
    }

    private void readMerge(LogicalPlan node) {
        LogicalPlan target = (LogicalPlan) Reflect.first(node, "targetTable|target");
        walker.walk(target);
        walker.walk((LogicalPlan) Reflect.first(node, "sourceTable|source"));
        walker.expressions.influence(Reflect.first(node, "mergeCondition|condition"), Inputs.JOIN);
        for (int i = 0; i < CLAUSES.length; i++) {
            List clauses = Reflect.list(Reflect.get(node, CLAUSES[i]));
            for (int j = 0; j < clauses.size(); j++) {
                walker.expressions.influence(Reflect.get(clauses.get(j), "condition"), Inputs.FILTER);
                readAssignments(Reflect.first(clauses.get(j), "assignments|actions"));
            }
        }
        addSink(target, "MERGE");
    }

    private void readAssignments(Object sequence) {
        List assignments = Reflect.list(sequence);
        for (int i = 0; i < assignments.size(); i++) {
            Object value = Reflect.first(assignments.get(i), "value|expr");
            if (value instanceof Expression) {
                addInputs(column(assignments.get(i)), (Expression) value);
            }
        }
    }

    private static String column(Object assignment) {
        Object key = Reflect.get(assignment, "key");
        if (key instanceof Attribute) {
            return ((Attribute) key).name();
        }
        List parts = Reflect.list(Reflect.get(assignment, "targetColNameParts"));
        return String.valueOf(parts.isEmpty() ? key : parts.get(0));
    }

    private void addInputs(String column, Expression value) {
        Inputs inputs = walker.expressions.inputsOf(value);
        String text = value instanceof Attribute ? null : ExpressionText.of(value);
        // Clauses of MERGE may assign different values: then none is told.
        textsByColumn.put(column, textsByColumn.containsKey(column) ? null : text);
        Inputs known = (Inputs) inputsByColumn.get(column);
        inputsByColumn.put(column, known == null ? inputs : known.plus(inputs));
    }

    private void addSink(LogicalPlan table, String modify) {
        ArrayList columns = new ArrayList();
        LinkedHashMap texts = new LinkedHashMap();
        Attribute[] output = Trees.output(table);
        for (int i = 0; i < output.length; i++) {
            Inputs inputs = (Inputs) inputsByColumn.get(output[i].name());
            columns.add(sinks.column(output[i].name(), output[i], inputs == null ? Inputs.NONE : inputs));
            sinks.addText(texts, output[i].name(), (String) textsByColumn.get(output[i].name()));
        }
        Map sink = sinks.add(writes.ofTable(table), modify, columns);
        sink.put("rowLevel", true);
        sink.put("expressions", texts);
    }
}
