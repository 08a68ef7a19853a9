package io.sparkevents.lineage;

import io.sparkevents.jvm.IcebergTables;
import io.sparkevents.jvm.Reflect;
import java.util.List;
import java.util.concurrent.Callable;

/**
 * Finds the snapshot that a statement has committed to a table of Iceberg. A write keeps the last report of its table,
 * which may be another statement's by now: a snapshot is told only if one alone may be the statement's, and agrees
 * with the rows that the statement has written itself.
 */
final class IcebergCommit implements Callable {
    private final Object node;
    private final Object write;
    private final long sinceMs;
    private final long untilMs;

    private IcebergCommit(Object node, long sinceMs, long untilMs) {
        this.node = node;
        this.write = Reflect.get(node, "write");
        this.sinceMs = sinceMs;
        this.untilMs = untilMs;
    }

    /** Returns the node of a plan that writes to a table of Iceberg; null where none does. */
    static Object write(List nodes) {
        for (int i = 0; i < nodes.size(); i++) {
            boolean writes = Reflect.isA(nodes.get(i), "V2ExistingTableWriteExec");
            Object write = writes ? Reflect.get(nodes.get(i), "write") : null;
            if (Reflect.isA(write, "SparkWrite") || Reflect.isA(write, "SparkPositionDeltaWrite")) {
                return nodes.get(i);
            }
        }
        return null;
    }

    /** Returns the report of the statement's commit; null where it is not known. */
    static java.util.LinkedHashMap find(Object node, long sinceMs, long untilMs) {
        return (java.util.LinkedHashMap) CatalogCalls.LOGS.ask(new IcebergCommit(node, sinceMs, untilMs));
    }

    public Object call() {
        Object table = Reflect.field(write, "table");
        if (Reflect.isA(table, "TransactionTable")) {
            // As of a new table: nobody else commits to it.
            return IcebergReports.ofSnapshot(Reflect.get(table, "currentSnapshot"));
        }
        // As the commit has loaded it.
        Object metadata = IcebergTables.metadata(table);
        List snapshots = Reflect.list(Reflect.get(metadata == null ? table : metadata, "snapshots"));
        Object own = null;
        for (int i = 0; i < snapshots.size(); i++) {
            if (mayBeOwn(snapshots.get(i))) {
                if (own != null) {
                    return null;
                }
                own = snapshots.get(i);
            }
        }
        return own == null || !agrees(own) ? null : IcebergReports.ofCommit(write, own);
    }

    /** What writes no row commits nothing, unless it appends to the table, or overwrites by a condition. */
    private boolean agrees(Object snapshot) {
        Object rows = Reflect.path(node, "commitProgress.numOutputRows");
        boolean commits = Long.valueOf(0L).equals(rows)
            ? Reflect.isA(node, "AppendDataExec") || Reflect.isA(node, "OverwriteByExpressionExec") : rows != null;
        // Rows that are marked as deleted are written, too, and are not among those that were added.
        Object added = Reflect.map(Reflect.get(snapshot, "summary")).get("added-records");
        return commits && (Reflect.isA(write, "SparkPositionDeltaWrite")
            || String.valueOf(rows).equals(added == null ? "0" : added));
    }

    private boolean mayBeOwn(Object snapshot) {
        long time = ((Number) Reflect.get(snapshot, "timestampMillis")).longValue();
        Object application = Reflect.map(Reflect.get(snapshot, "summary")).get("spark.app.id");
        return time >= sinceMs && time <= untilMs && application != null
            && application.equals(Reflect.field(write, "applicationId"));
    }
}
