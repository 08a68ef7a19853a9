package io.sparkevents.lineage;

import io.sparkevents.jvm.Identities;
import io.sparkevents.jvm.Reflect;
import io.sparkevents.jvm.Written;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.execution.QueryExecution;

/** What a statement has read, by the scans of its own plan and their metrics: versions, rows, bytes and files. */
final class DataRead {
    private static final int MOST_NODES = 10000;
    private static final String INNER = "commandPhysicalPlan|executedPlan|finalPhysicalPlan";
    private static final String[] VERSIONS = {
        "relation.location.preparedScan.version", "relation.location.snapshotAtAnalysis.version"
    };

    /** Returns each scan of a plan: what it is of, and how much it has read. */
    static List by(QueryExecution execution) {
        Identities identities = new Identities(Reflect.get(execution, "sparkSession"));
        ArrayList reads = new ArrayList();
        ArrayList nodes = new ArrayList();
        nodes.add(Reflect.get(execution, "executedPlan"));
        for (int i = 0; i < nodes.size() && i < MOST_NODES; i++) {
            Object node = nodes.get(i);
            LinkedHashMap identity = identity(node, identities);
            if (identity != null) {
                reads.add(read(node, identity));
            }
            addInner(nodes, node);
        }
        return reads;
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

    private static LinkedHashMap identity(Object node, Identities identities) {
        if (Reflect.isA(node, "FileSourceScanExec") || Reflect.isA(node, "RowDataSourceScanExec")) {
            return identities.ofRelation(Reflect.get(node, "relation"), null);
        }
        if (Reflect.isA(node, "BatchScanExec") && Reflect.get(node, "table") != null) {
            return identities.ofV2Table(Reflect.get(node, "table"));
        }
        return Reflect.isA(node, "HiveTableScanExec")
            ? identities.ofCatalogTable(Reflect.path(node, "relation.tableMeta")) : null;
    }

    private static LinkedHashMap read(Object node, LinkedHashMap identity) {
        Map metrics = Written.metrics(node);
        LinkedHashMap read = new LinkedHashMap();
        read.put("identity", identity);
        read.put("version", Reflect.text(version(node)));
        read.put("rows", metrics.get("numOutputRows"));
        read.put("bytes", metrics.get("filesSize"));
        Object files = metrics.get("numFiles");
        read.put("files", files == null ? metrics.get("resultDataFiles") : files);
        return read;
    }

    /** Returns Delta's version, or Iceberg's snapshot; null for what has none. */
    private static Object version(Object node) {
        Object scan = Reflect.get(node, "scan");
        Object version = scan == null ? null : Reflect.path(Reflect.field(scan, "scan"), "snapshot.snapshotId");
        for (int i = 0; i < VERSIONS.length && version == null; i++) {
            version = Reflect.path(node, VERSIONS[i]);
        }
        return version;
    }
}
