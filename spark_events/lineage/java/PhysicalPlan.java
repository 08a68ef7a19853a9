package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.execution.QueryExecution;

/** The nodes of a plan that has run, with those of its commands, stages and subqueries. */
final class PhysicalPlan {
    private static final int MOST_NODES = 10000;
    private static final String INNER = "commandPhysicalPlan|executedPlan|finalPhysicalPlan";

    static List nodes(QueryExecution execution) {
        ArrayList nodes = new ArrayList();
        nodes.add(Reflect.get(execution, "executedPlan"));
        for (int i = 0; i < nodes.size() && i < MOST_NODES; i++) {
            addInner(nodes, nodes.get(i));
        }
        return nodes;
    }

    /** An exchange that is used again is read once. */
    private static void addInner(ArrayList nodes, Object node) {
        Object inner = Reflect.isA(node, "QueryStageExec") ? Reflect.get(node, "plan") : Reflect.first(node, INNER);
        if (inner != null) {
            nodes.add(inner);
        } else if (!Reflect.isA(node, "ReusedExchangeExec")) {
            nodes.addAll(Reflect.list(Reflect.get(node, "children")));
        }
        nodes.addAll(Reflect.list(Reflect.get(node, "subqueries")));
    }
}
