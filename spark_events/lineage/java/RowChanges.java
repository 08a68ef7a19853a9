package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** UPDATE, DELETE and MERGE as Spark's plans, or Delta's, say them before any query is made of them. */
final class RowChanges {
    private static final String[] CLAUSES = {
        "matchedActions", "notMatchedActions", "notMatchedBySourceActions",
        "matchedClauses", "notMatchedClauses", "notMatchedBySourceClauses"
    };
    private final Statement statement;
    private final LinkedHashMap columns = new LinkedHashMap();

    private RowChanges(Statement statement) {
        this.statement = statement;
    }

    /** Reads such a node; tells whether it is one. */
    static boolean read(Statement statement, LogicalPlan node, String name) {
        RowChanges changes = new RowChanges(statement);
        if (name.equals("UpdateTable") || name.equals("UpdateCommand")) {
            changes.update(node);
        } else if (name.equals("DeleteFromTable") || name.equals("DeleteCommand")) {
            changes.delete(node);
        } else if (name.startsWith("MergeInto")) {
            changes.merge(node);
        } else {
            return false;
        }
        return true;
    }

    private void update(LogicalPlan node) {
        LogicalPlan table = table(node);
        statement.walker.walk(table);
        statement.walker.influence(Reflect.get(node, "condition"), Inputs.FILTER);
        assignments(Reflect.get(node, "assignments"));
        List values = Reflect.list(Reflect.get(node, "updateExpressions"));
        List attributes = Reflect.list(table.output());
        for (int i = 0; i < values.size() && i < attributes.size(); i++) {
            add(((Attribute) attributes.get(i)).name(), (Expression) values.get(i));
        }
        sink(table, "UPDATE");
    }

    private void delete(LogicalPlan node) {
        LogicalPlan table = table(node);
        statement.walker.walk(table);
        statement.walker.influence(Reflect.get(node, "condition"), Inputs.FILTER);
        sink(table, "DELETE");
    }

    private void merge(LogicalPlan node) {
        LogicalPlan target = (LogicalPlan) either(node, "targetTable", "target");
        statement.walker.walk(target);
        statement.walker.walk((LogicalPlan) either(node, "sourceTable", "source"));
        statement.walker.influence(either(node, "mergeCondition", "condition"), Inputs.JOIN);
        for (int i = 0; i < CLAUSES.length; i++) {
            for (Iterator each = Reflect.list(Reflect.get(node, CLAUSES[i])).iterator(); each.hasNext();) {
                Object clause = each.next();
                statement.walker.influence(Reflect.get(clause, "condition"), Inputs.FILTER);
                assignments(either(clause, "assignments", "actions"));
            }
        }
        sink(target, "MERGE");
    }

    private static LogicalPlan table(Object node) {
        return (LogicalPlan) either(node, "table", "target");
    }

    private static Object either(Object node, String name, String other) {
        Object found = Reflect.get(node, name);
        return found == null ? Reflect.get(node, other) : found;
    }

    private void assignments(Object assignments) {
        for (Iterator each = Reflect.list(assignments).iterator(); each.hasNext();) {
            Object assignment = each.next();
            Object key = Reflect.get(assignment, "key");
            Object value = either(assignment, "value", "expr");
            List parts = Reflect.list(Reflect.get(assignment, "targetColNameParts"));
            if (value instanceof Expression) {
                add(key instanceof Attribute ? ((Attribute) key).name() : parts.isEmpty() ? String.valueOf(key)
                    : String.valueOf(parts.get(0)), (Expression) value);
            }
        }
    }

    private void add(String name, Expression value) {
        Inputs from = statement.walker.eval(value);
        Inputs known = (Inputs) columns.get(name);
        columns.put(name, known == null ? from : known.plus(from));
    }

    private void sink(LogicalPlan table, String modify) {
        ArrayList changed = new ArrayList();
        for (Iterator each = Reflect.list(table.output()).iterator(); each.hasNext();) {
            Attribute attribute = (Attribute) each.next();
            Inputs from = (Inputs) columns.get(attribute.name());
            changed.add(statement.column(
                attribute.name(), attribute.dataType().simpleString(), from == null ? Inputs.NONE : from));
        }
        Map sink = statement.addSink(statement.ofTable(table), modify, changed);
        sink.put("rowLevel", Boolean.TRUE);
    }
}
