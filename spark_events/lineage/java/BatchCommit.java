package io.sparkevents.lineage;

import io.sparkevents.jvm.IcebergTables;
import io.sparkevents.jvm.Reflect;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.spark.sql.execution.QueryExecution;

/**
 * Finds the version that a micro-batch has committed: Delta and Iceberg both keep the query's id and the number of the
 * batch with a commit, so that no other writer's can be taken for it.
 */
final class BatchCommit implements OwnCommit, Callable {
    private static final String OF_ICEBERG = "spark.sql.streaming.";
    private static final String[] KEYS = {"queryId", "epochId"};
    private final QueryExecution batch;
    private final String[] values;

    private BatchCommit(QueryExecution batch) {
        this.batch = batch;
        this.values = new String[] {Reflect.text(Reflect.get(batch, "queryId")), number(batch)};
    }

    /** Returns the number of a batch; null for a plan that is no batch's. */
    static String number(QueryExecution batch) {
        return Reflect.text(Reflect.get(batch, "currentBatchId"));
    }

    /** Tells whether versions of a sink are known: none is looked for in others. */
    static boolean isKnown(Map sink) {
        return DataWritten.isOfDelta(sink) || isOfIceberg(sink);
    }

    private static boolean isOfIceberg(Map sink) {
        return String.valueOf(((Map) sink.get("identity")).get("format")).toLowerCase().indexOf("iceberg") >= 0;
    }

    /** Returns what a batch has made of the sink, in the form of {@code DataWritten}; null where it is not known. */
    static LinkedHashMap find(QueryExecution batch, Map sink, long sinceMs, long untilMs) {
        BatchCommit commit = new BatchCommit(batch);
        return isOfIceberg(sink) ? (LinkedHashMap) CatalogCalls.LOGS.ask(commit)
            : DeltaCommits.find(Reflect.get(batch, "sparkSession"), sink, commit, sinceMs, untilMs);
    }

    public boolean isOfKind(Map commit) {
        return isOwn(Reflect.map(commit.get("operationParameters")), "");
    }

    public boolean isUnique() {
        return true;
    }

    public boolean agrees(Map commit) {
        return true;
    }

    private boolean isOwn(Map told, String prefix) {
        return values[0] != null && values[0].equals(told.get(prefix + KEYS[0]))
            && values[1] != null && values[1].equals(told.get(prefix + KEYS[1]));
    }

    /** Looks at the snapshots of a table of Iceberg, which its writer has in memory, beginning with the last one. */
    public Object call() {
        List nodes = PhysicalPlan.nodes(batch);
        for (int i = 0; i < nodes.size(); i++) {
            // A micro-batch's write is a part of the stream's, and that is one of the table's.
            Object write = Reflect.field(Reflect.path(nodes.get(i), "batchWrite.writeSupport"), "this$0");
            Object table = Reflect.field(write, "table");
            Object own = table == null ? null : own(table);
            if (own != null) {
                return DataWritten.ofIceberg(IcebergReports.ofCommit(write, own));
            }
        }
        return null;
    }

    private Object own(Object shared) {
        // As the commit has loaded it.
        Object metadata = IcebergTables.metadata(shared);
        Object table = metadata == null ? shared : metadata;
        Object last = Reflect.get(table, "currentSnapshot");
        if (isOwn(last)) {
            return last;
        }
        List snapshots = Reflect.list(Reflect.get(table, "snapshots"));
        for (int i = snapshots.size() - 1; i >= 0; i--) {
            if (isOwn(snapshots.get(i))) {
                return snapshots.get(i);
            }
        }
        return null;
    }

    private boolean isOwn(Object snapshot) {
        return isOwn(Reflect.map(Reflect.get(snapshot, "summary")), OF_ICEBERG);
    }
}
