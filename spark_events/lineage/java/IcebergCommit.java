package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.List;
import java.util.concurrent.Callable;

/**
 * Finds the snapshot that a statement has committed to a table of Iceberg. A write keeps the last report of its table,
 * which may be another statement's by now: a snapshot is told only if one alone may be the statement's.
 */
final class IcebergCommit implements Callable {
    private final Object write;
    private final long sinceMs;
    private final long untilMs;

    private IcebergCommit(Object write, long sinceMs, long untilMs) {
        this.write = write;
        this.sinceMs = sinceMs;
        this.untilMs = untilMs;
    }

    /** Returns what writes to a table of Iceberg among the nodes of a plan; null where nothing does. */
    static Object write(List nodes) {
        for (int i = 0; i < nodes.size(); i++) {
            boolean writes = Reflect.isA(nodes.get(i), "V2ExistingTableWriteExec");
            Object write = writes ? Reflect.get(nodes.get(i), "write") : null;
            if (Reflect.isA(write, "SparkWrite") || Reflect.isA(write, "SparkPositionDeltaWrite")) {
                return write;
            }
        }
        return null;
    }

    /** Returns the report of the statement's commit; null where it is not known. */
    static java.util.LinkedHashMap find(Object write, long sinceMs, long untilMs) {
        return (java.util.LinkedHashMap) CatalogCalls.LOGS.ask(new IcebergCommit(write, sinceMs, untilMs));
    }

    public Object call() {
        Object table = Reflect.field(write, "table");
        if (Reflect.isA(table, "TransactionTable")) {
            // As of a new table: nobody else commits to it.
            return IcebergReports.ofSnapshot(Reflect.get(table, "currentSnapshot"));
        }
        List snapshots = Reflect.list(Reflect.get(table, "snapshots"));
        Object own = null;
        for (int i = 0; i < snapshots.size(); i++) {
            if (mayBeOwn(snapshots.get(i))) {
                if (own != null) {
                    return null;
                }
                own = snapshots.get(i);
            }
        }
        return own == null ? null : IcebergReports.ofCommit(write, own);
    }

    private boolean mayBeOwn(Object snapshot) {
        long time = ((Number) Reflect.get(snapshot, "timestampMillis")).longValue();
        Object application = Reflect.map(Reflect.get(snapshot, "summary")).get("spark.app.id");
        return time >= sinceMs && time <= untilMs && application != null
            && application.equals(Reflect.field(write, "applicationId"));
    }
}
