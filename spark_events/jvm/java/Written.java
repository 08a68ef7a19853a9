package io.sparkevents.jvm;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.execution.QueryExecution;

/** What a statement has written, by the metrics of its own plan: no job is run for it. */
public final class Written {
    private static final int DEEP = 6;

    public static LinkedHashMap by(QueryExecution execution) {
        LinkedHashMap written = new LinkedHashMap();
        Object plan = Reflect.get(execution, "executedPlan");
        for (int i = 0; i < DEEP && plan != null && written.isEmpty(); i++) {
            Map metrics = metrics(plan);
            // A scan has files, too, and it is no write.
            if (metrics.containsKey("numFiles") && metrics.containsKey("numOutputBytes")) {
                take(written, metrics, "numOutputRows", "rows");
                take(written, metrics, "numOutputBytes", "bytes");
                take(written, metrics, "numFiles", "files");
            }
            plan = below(plan);
        }
        return written;
    }

    private static Object below(Object plan) {
        Object inner = Reflect.first(plan, "commandPhysicalPlan|executedPlan");
        inner = inner == null && Reflect.isA(plan, "QueryStageExec") ? Reflect.get(plan, "plan") : inner;
        if (inner == null) {
            List children = Reflect.list(Reflect.get(plan, "children"));
            inner = children.isEmpty() ? null : children.get(0);
        }
        return inner;
    }

    /** Returns the metrics of a node of a plan, by name. */
    public static Map metrics(Object plan) {
        LinkedHashMap metrics = new LinkedHashMap();
        List pairs = Reflect.list(Reflect.get(plan, "metrics"));
        for (int i = 0; i < pairs.size(); i++) {
            scala.Tuple2 pair = (scala.Tuple2) pairs.get(i);
            metrics.put(pair._1(), Reflect.get(pair._2(), "value"));
        }
        return metrics;
    }

    private static void take(Map written, Map metrics, String name, String as) {
        if (metrics.get(name) instanceof Number) {
            written.put(as, metrics.get(name));
        }
    }
}
