package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Tells whether a statement puts its rows in the place of all that a table has. A partition, or what a condition finds,
 * may be replaced, too; where it is not known to be the whole table, it is not said to be.
 */
final class Overwrite {
    /** Returns the command that writes files among the nodes of a plan that has run; null where none does. */
    static Object command(List nodes) {
        for (int i = 0; i < nodes.size(); i++) {
            if (Reflect.isA(nodes.get(i), "DataWritingCommandExec")) {
                return Reflect.get(nodes.get(i), "cmd");
            }
        }
        return null;
    }

    /**
     * @param plan of the statement
     * @param command that has run for it: it alone knows by which mode, which the session's settings may choose
     */
    static boolean isOfAll(LogicalPlan plan, Object command, Map sink) {
        String name = Reflect.simpleName(plan.getClass());
        if ("CTAS".equals(sink.get("modify"))) {
            return true;
        }
        // Of Delta, a setting of the session decides, and nothing that has run says how it did.
        if (!"OVERWRITE".equals(sink.get("modify")) || DataWritten.isOfDelta(sink)) {
            return false;
        }
        if (name.equals("InsertIntoHadoopFsRelationCommand")) {
            return isEmpty(plan, "staticPartitions") && (isEmpty(plan, "partitionColumns")
                || Boolean.FALSE.equals(Reflect.get(command, "dynamicPartitionOverwrite")));
        }
        if (name.equals("InsertIntoHiveTable")) {
            return isEmpty(plan, "partition");
        }
        if (name.equals("CreateDataSourceTableAsSelectCommand") || name.equals("SaveAsV1TableCommand")) {
            return isEmpty(Reflect.first(plan, "table|tableDesc"), "partitionColumnNames");
        }
        if (name.equals("SaveIntoDataSourceCommand")) {
            return Reflect.isA(Reflect.get(plan, "dataSource"), "JdbcRelationProvider");
        }
        if (name.equals("OverwriteByExpression")) {
            return "true".equals(Reflect.text(Reflect.get(plan, "deleteExpr"))) && !choosesRows(plan);
        }
        return name.equals("ReplaceTableAsSelect");
    }

    private static boolean isEmpty(Object node, String part) {
        Object values = Reflect.get(node, part);
        return values instanceof scala.collection.Iterable && ((scala.collection.Iterable) values).isEmpty();
    }

    /** Tells whether an option of a write may say which rows it replaces. */
    private static boolean choosesRows(LogicalPlan plan) {
        for (Iterator keys = Reflect.map(Reflect.get(plan, "writeOptions")).keySet().iterator(); keys.hasNext();) {
            String key = String.valueOf(keys.next()).toLowerCase(Locale.ROOT);
            if (key.indexOf("overwrite") >= 0 || key.indexOf("replace") >= 0) {
                return true;
            }
        }
        return false;
    }
}
