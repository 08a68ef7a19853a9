package io.sparkevents.lineage;

import io.sparkevents.jvm.Identities;
import io.sparkevents.jvm.Reflect;
import io.sparkevents.jvm.Written;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What a statement has read, by the scans of its own plan and their metrics: versions, rows, bytes and files. */
final class DataRead {
    private static final String[] VERSIONS = {
        "relation.location.preparedScan.version", "relation.location.snapshotAtAnalysis.version"
    };

    /** Returns each scan among the nodes of a plan: what it is of, and how much it has read. */
    static List by(List nodes, Identities identities) {
        ArrayList reads = new ArrayList();
        SampledScans sampled = new SampledScans(nodes);
        for (int i = 0; i < nodes.size(); i++) {
            LinkedHashMap identity = identity(nodes.get(i), identities);
            if (identity != null && !isOfLog(identity)) {
                LinkedHashMap read = read(nodes.get(i), identity);
                if (sampled.has(nodes.get(i))) {
                    read.remove("rows");
                }
                reads.add(read);
            }
        }
        return reads;
    }

    /** Tells whether Delta reads its own log, as a part of a statement: that is no data. */
    private static boolean isOfLog(Map identity) {
        return String.valueOf(identity.get("paths")).indexOf("/_delta_log") >= 0;
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
        read.put("offsets", KafkaOffsets.of(node));
        read.put("report", IcebergReports.ofScan(node));
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
