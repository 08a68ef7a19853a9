package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What a statement has made of the data that it wrote: the version, what the format reports of it, the amounts. */
final class DataWritten {
    private static final List OF_ROWS = Arrays.asList("INSERT", "OVERWRITE", "CTAS", "UPDATE", "DELETE", "MERGE");
    private static final Long NONE = Long.valueOf(0L);

    /** Returns what a write has committed to a table of Iceberg; null where that is not known. */
    static LinkedHashMap byIceberg(Object node, long sinceMs, long untilMs) {
        LinkedHashMap report = IcebergCommit.find(node, sinceMs, untilMs);
        return report == null ? null : ofIceberg(report);
    }

    /** Returns what a commit's report says. */
    static LinkedHashMap ofIceberg(LinkedHashMap report) {
        LinkedHashMap written = new LinkedHashMap();
        written.put("version", Reflect.text(report.get("snapshotId")));
        written.put("report", report);
        LinkedHashMap amounts = new LinkedHashMap();
        Map metrics = (Map) report.get("commitMetrics");
        amounts.put("rows", amount(metrics, "addedRecords"));
        amounts.put("files", amount(metrics, "addedDataFiles"));
        // Files that mark rows as deleted are no data, and Iceberg has but one size for both.
        if (amount(metrics, "addedDeleteFiles").equals(NONE)) {
            amounts.put("bytes", amount(metrics, "addedFilesSizeInBytes"));
        }
        written.put("written", amounts);
        return written;
    }

    /** Returns a metric, which Iceberg leaves out where it is zero. */
    private static Object amount(Map metrics, String name) {
        Object amount = metrics.get(name);
        return amount == null ? NONE : amount;
    }

    /** Tells whether a sink is a table of Delta whose rows are changed, and not the table itself. */
    static boolean isOfDelta(Map sink) {
        String format = String.valueOf(((Map) sink.get("identity")).get("format")).toLowerCase();
        boolean isDelta = format.equals("delta") || format.startsWith("org.apache.spark.sql.delta");
        return isDelta && OF_ROWS.contains(sink.get("modify"));
    }
}
