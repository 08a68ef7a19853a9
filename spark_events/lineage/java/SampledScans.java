package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;

/**
 * The scans of a plan whose rows Spark counts more than once: it reads what it sorts as a whole, or partitions by range,
 * once for a sample that finds the ranges, where a sample turns out to be uneven once more in parts, and once for all.
 */
final class SampledScans {
    private final IdentityHashMap scans = new IdentityHashMap();

    /** @param nodes of the plan, with those of its stages */
    SampledScans(List nodes) {
        for (int i = 0; i < nodes.size(); i++) {
            Object partitioning = Reflect.get(nodes.get(i), "outputPartitioning");
            boolean isExchange = Reflect.isA(nodes.get(i), "ShuffleExchangeExec");
            if (isExchange && Reflect.isA(partitioning, "RangePartitioning") && isSampled(partitioning)) {
                addStage(nodes.get(i));
            }
        }
    }

    /** One partition has no range that a sample has to find. */
    private static boolean isSampled(Object partitioning) {
        Object partitions = Reflect.get(partitioning, "numPartitions");
        return partitions == null || ((Number) partitions).intValue() > 1;
    }

    /** Adds the scans up to the exchanges below, whose rows are kept and read again. */
    private void addStage(Object exchange) {
        ArrayList stage = Reflect.list(Reflect.get(exchange, "children"));
        for (int i = 0; i < stage.size(); i++) {
            Object node = stage.get(i);
            ArrayList children = Reflect.list(Reflect.get(node, "children"));
            boolean isKept = Reflect.isA(node, "Exchange") || Reflect.isA(node, "QueryStageExec");
            if (!isKept && children.isEmpty()) {
                scans.put(node, Boolean.TRUE);
            } else if (!isKept) {
                stage.addAll(children);
            }
        }
    }

    boolean has(Object scan) {
        return scans.containsKey(scan);
    }
}
