package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.lang.reflect.Method;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Supplier;

/** What Iceberg reports of a scan or of a commit. It keeps that with the nodes of the plan: nothing is asked. */
final class IcebergReports {
    private static final String[] NUMBERS = {"snapshotId", "sequenceNumber", "schemaId"};
    /** Metrics of a commit, and what they are called in the summary of a snapshot. */
    private static final String[][] SUMMARY = {
        {"addedDataFiles", "added-data-files"}, {"addedDeleteFiles", "added-delete-files"},
        {"addedRecords", "added-records"},
        {"addedFilesSizeInBytes", "added-files-size"}, {"removedDataFiles", "deleted-data-files"},
        {"removedRecords", "deleted-records"}, {"removedFilesSizeInBytes", "removed-files-size"},
        {"totalDataFiles", "total-data-files"}, {"totalRecords", "total-records"},
        {"totalFilesSizeInBytes", "total-files-size"}, {"totalDeleteFiles", "total-delete-files"},
        {"totalPositionalDeletes", "total-position-deletes"}, {"totalEqualityDeletes", "total-equality-deletes"}
    };

    /** Returns the report of a scan; null for a scan that is not Iceberg's, or that has planned nothing. */
    static LinkedHashMap ofScan(Object node) {
        Object supplier = Reflect.field(Reflect.get(node, "scan"), "scanReportSupplier");
        try {
            Object report = supplier instanceof Supplier ? ((Supplier) supplier).get() : null;
            LinkedHashMap shown = read(report, "scanMetrics");
            if (shown != null) {
                // Iceberg has put the kinds of literals in the place of their values.
                String filter = Reflect.text(Reflect.get(report, "filter"));
                shown.put("filterDescription", "true".equals(filter) ? "" : filter);
                shown.put("projectedFieldNames", Reflect.list(Reflect.get(report, "projectedFieldNames")));
            }
            return shown;
        } catch (RuntimeException missing) {
            return null;
        }
    }

    /** Returns the report of a snapshot by the write that has made it; by its summary where that has another one. */
    static LinkedHashMap ofCommit(Object write, Object snapshot) {
        Object report = Reflect.get(Reflect.field(write, "metricsReporter"), "commitReport");
        Object id = Reflect.get(snapshot, "snapshotId");
        if (report == null || !id.equals(Reflect.get(report, "snapshotId"))) {
            return ofSnapshot(snapshot);
        }
        LinkedHashMap shown = read(report, "commitMetrics");
        shown.put("operation", Reflect.text(Reflect.get(report, "operation")));
        return shown;
    }

    /** Returns what a snapshot says of itself. */
    static LinkedHashMap ofSnapshot(Object snapshot) {
        LinkedHashMap shown = read(snapshot, "commitMetrics");
        if (shown != null) {
            Map summary = Reflect.map(Reflect.get(snapshot, "summary"));
            Map metrics = (Map) shown.get("commitMetrics");
            for (int i = 0; i < SUMMARY.length; i++) {
                if (summary.get(SUMMARY[i][1]) != null) {
                    metrics.put(SUMMARY[i][0], Long.valueOf((String) summary.get(SUMMARY[i][1])));
                }
            }
            shown.put("operation", Reflect.text(Reflect.get(snapshot, "operation")));
        }
        return shown;
    }

    private static LinkedHashMap read(Object report, String metrics) {
        if (report == null) {
            return null;
        }
        LinkedHashMap shown = new LinkedHashMap();
        for (int i = 0; i < NUMBERS.length; i++) {
            Object number = Reflect.get(report, NUMBERS[i]);
            if (number != null) {
                shown.put(NUMBERS[i], number);
            }
        }
        shown.put(metrics, metrics(Reflect.get(report, metrics)));
        shown.put("metadata", Reflect.map(Reflect.get(report, "metadata")));
        return shown;
    }

    /** Returns counters as numbers, and timers in ms. */
    private static LinkedHashMap metrics(Object result) {
        LinkedHashMap values = new LinkedHashMap();
        Method[] methods = result == null ? new Method[0] : result.getClass().getMethods();
        for (int i = 0; i < methods.length; i++) {
            String type = methods[i].getParameterTypes().length == 0 ? methods[i].getReturnType().getSimpleName() : "";
            String path = type.equals("CounterResult") ? "value" : "totalDuration.toMillis";
            if (type.equals("CounterResult") || type.equals("TimerResult")) {
                Object value = Reflect.path(Reflect.get(result, methods[i].getName()), path);
                if (value != null) {
                    values.put(methods[i].getName(), value);
                }
            }
        }
        return values;
    }
}
