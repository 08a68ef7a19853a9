package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import io.sparkevents.jvm.Written;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/**
 * What a statement has itself changed in a table of Delta: a statement that finds nothing to change commits nothing,
 * and the commit of another one that changes the table meanwhile is not its own.
 */
final class DeltaChange implements OwnCommit {
    private static final List COMMANDS = Arrays.asList("DeleteCommand", "UpdateCommand", "MergeIntoCommand");
    private static final List OF_COMMANDS = Arrays.asList("DELETE", "UPDATE", "MERGE");
    private static final String COUNT = "num";
    private static final String COUNT_OF_SOURCE = "numSource";
    private static final String COUNT_OF_DELETION_VECTORS = "DeletionVectors";
    private final String modify;
    private final Map counts;
    private final Map rowsWritten;

    /**
     * @param modify what the statement does to the rows, as the sink has it
     * @param counts of the command that has run for DELETE, UPDATE or MERGE
     * @param rowsWritten by each part of the statement
     */
    DeltaChange(String modify, Map counts, Map rowsWritten) {
        this.modify = modify;
        this.counts = counts;
        this.rowsWritten = rowsWritten;
    }

    /** Adds what the command of DELETE, UPDATE or MERGE among the nodes of a plan has counted. */
    static void addCounts(List nodes, Map counts) {
        for (int i = 0; i < nodes.size(); i++) {
            Object command = Reflect.get(nodes.get(i), "cmd");
            if (command != null && COMMANDS.contains(Reflect.simpleName(command.getClass()))) {
                counts.putAll(Written.metrics(nodes.get(i)));
            }
        }
    }

    /** Tells whether a commit is of this kind; a compaction that follows it is not. */
    public boolean isOfKind(Map commit) {
        String operation = String.valueOf(commit.get("operation"));
        return OF_COMMANDS.contains(modify)
            ? operation.equals(modify) : operation.equals("WRITE") || operation.endsWith(" AS SELECT");
    }

    public boolean isUnique() {
        return false;
    }

    /** Tells whether the only commit of this kind says what the statement has changed itself. */
    public boolean agrees(Map commit) {
        Map told = (Map) commit.get("operationMetrics");
        return told != null && (OF_COMMANDS.contains(modify) ? agreesInCounts(told) : agreesInRows(commit, told));
    }

    /** Delta tells the same counts in both places; it leaves out some, and counts deletion vectors another way. */
    private boolean agreesInCounts(Map told) {
        boolean changed = false;
        for (Iterator names = counts.keySet().iterator(); names.hasNext();) {
            String name = (String) names.next();
            boolean isComparable = name.startsWith(COUNT) && name.indexOf(COUNT_OF_DELETION_VECTORS) < 0;
            if (isComparable && told.get(name) != null) {
                String count = String.valueOf(counts.get(name));
                if (!count.equals(String.valueOf(told.get(name)))) {
                    return false;
                }
                changed = changed || !name.startsWith(COUNT_OF_SOURCE) && !count.equals("0");
            }
        }
        return changed;
    }

    /** What writes no row may replace or create a table nevertheless, but adds nothing. */
    private boolean agreesInRows(Map commit, Map told) {
        Object rows = told.get("numOutputRows");
        if (rows != null && !"0".equals(String.valueOf(rows))) {
            return rowsWritten.containsValue(Long.valueOf(String.valueOf(rows)));
        }
        String operation = String.valueOf(commit.get("operation"));
        Object mode = Reflect.map(commit.get("operationParameters")).get("mode");
        boolean isOfMode = modify.equals("CTAS") ? operation.equals("CREATE TABLE AS SELECT")
            : modify.equals("OVERWRITE") ? operation.startsWith("CREATE OR REPLACE") || "Overwrite".equals(mode)
            : operation.equals("WRITE") && !"Append".equals(mode) && !"Overwrite".equals(mode);
        return rowsWritten.isEmpty() && isOfMode;
    }
}
