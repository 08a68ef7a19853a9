package io.sparkevents.lineage;

import io.sparkevents.jvm.Identities;
import io.sparkevents.jvm.Reflect;
import io.sparkevents.jvm.Written;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;

/** One statement or streaming query: what it reads, what it writes, and which columns make which. */
public class Statement {
    private static final int MOST_NODES_FOR_TEXT = 50;
    /** The table's name, and the transaction's id; see ``spark_events.ctas``. */
    private static final Pattern FOLDER = Pattern.compile(".*/\\.?([^/]+)-\\d{8}T\\d{6}-[0-9a-f]{8}/?");
    final LogicalPlan plan;
    final PlanFacts facts;
    final Writes writes;
    final LinkedHashMap written = new LinkedHashMap();
    final ArrayList read = new ArrayList();
    private final HashMap measured = new HashMap();
    private final HashMap deltaCounts = new HashMap();
    private Object command = null;
    private Object icebergWrite = null;
    /** When it began, in ms since the epoch. */
    long begunMs = 0L;
    private final PlanWalker walker;
    private final Sinks sinks;

    public Statement(LogicalPlan plan, Identities identities, Remembered remembered, long budgetMs) {
        this.plan = plan;
        this.walker = new PlanWalker(identities, remembered, budgetMs);
        this.facts = walker.facts;
        this.sinks = new Sinks(facts);
        this.writes = new Writes(identities, walker, sinks);
    }

    /**
     * Reads a statement's plan.
     *
     * @param change of a table itself, which the statement makes; null where it makes none
     */
    void read(TableChange change, KnownTables known) throws java.io.IOException {
        if (change != null) {
            change.addTo(sinks, facts, known);
            return;
        }
        writes.readAll(plan);
        if (!hasSinks()) {
            walker.walk(plan);
            if (Reflect.isA(plan, "Command")) {
                walker.sayUnknown(plan, "writes");
            }
        }
    }

    /** Reads a streaming query, whose sink is not in its plan. */
    public void readStream(LinkedHashMap sink) {
        walker.walk(plan);
        Writes.addTopic(sink, plan);
        sinks.add(sink, "INSERT", Trees.output(plan), null);
    }

    /** Takes the table as it is when the statement has ended; tells whether it differs from what was known. */
    boolean update(TableChange change, KnownTables known) {
        return change != null && change.updateTo(sinks, known);
    }

    public boolean hasSinks() {
        return !sinks.all().isEmpty();
    }

    /** Tells whether it makes a table whose place is not known before its catalog has it. */
    boolean isProvisional() {
        for (int i = 0; i < sinks.all().size(); i++) {
            if (identity(i).get("provisional") != null) {
                return true;
            }
        }
        return false;
    }

    /** Tells whether it writes all that another one does: files at the same place, or a table of the same name. */
    boolean writesAll(Statement other) {
        HashSet places = new HashSet();
        for (int i = 0; i < sinks.all().size(); i++) {
            places.add(identity(i).get("paths"));
            places.add(identity(i).get("table"));
        }
        places.remove(null);
        for (int i = 0; i < other.sinks.all().size(); i++) {
            Map identity = other.identity(i);
            if (!places.contains(identity.get("paths")) && !places.contains(identity.get("table"))
                && !isFolderOf(places, identity)) {
                return false;
            }
        }
        return true;
    }

    /** Tells whether a place is the folder in which an atomic CREATE TABLE AS SELECT writes one of some tables. */
    private static boolean isFolderOf(HashSet places, Map identity) {
        List paths = Reflect.list(identity.get("paths"));
        Matcher folder = FOLDER.matcher(paths.size() == 1 ? String.valueOf(paths.get(0)) : "");
        for (Iterator each = places.iterator(); folder.matches() && each.hasNext();) {
            List names = Reflect.list(each.next());
            String last = names.isEmpty() ? "" : String.valueOf(names.get(names.size() - 1));
            if (folder.group(1).equalsIgnoreCase(last.substring(last.lastIndexOf('/') + 1))) {
                return true;
            }
        }
        return false;
    }

    private Map identity(int sink) {
        return (Map) ((Map) sinks.all().get(sink)).get("identity");
    }

    /** Keeps what was read and written; a part of the statement may tell it before the whole, with the same scans. */
    void addAmounts(QueryExecution execution) {
        List nodes = PhysicalPlan.nodes(execution);
        if (written.isEmpty()) {
            written.putAll(Written.by(execution));
        }
        if (read.isEmpty() && !facts.sources().isEmpty()) {
            read.addAll(DataRead.by(nodes, new Identities(Reflect.get(execution, "sparkSession"))));
        }
        Observed.addMeasured(nodes, measured);
        command = command == null ? Overwrite.command(nodes) : command;
        icebergWrite = icebergWrite == null ? IcebergCommit.write(nodes) : icebergWrite;
        DeltaChange.addCounts(nodes, deltaCounts);
    }

    /** Adds what is known of the data when the statement has ended. */
    void addTo(LinkedHashMap end) {
        end.put("written", written);
        end.put("read", read);
        end.put("observed", Observed.by(plan, command, facts, sinks, measured));
    }

    /**
     * Adds the version of the table that it has written, if one is known.
     *
     * @param rowsWritten by each part of the statement
     * @param end receives it, with the table, and the amounts that its format knows
     */
    void addVersion(Object session, Map rowsWritten, LinkedHashMap end) {
        if (sinks.all().size() != 1) {
            return;
        }
        Map sink = (Map) sinks.all().get(0);
        long endedMs = ((Long) end.get("time")).longValue();
        LinkedHashMap commit = null;
        if (icebergWrite != null) {
            commit = DataWritten.byIceberg(icebergWrite, begunMs, endedMs);
        } else if (DataWritten.isOfDelta(sink)) {
            DeltaChange change = new DeltaChange(String.valueOf(sink.get("modify")), deltaCounts, rowsWritten);
            commit = DeltaCommits.find(session, sink, change, begunMs, endedMs);
        }
        if (commit != null) {
            LinkedHashMap version = new LinkedHashMap(commit);
            version.put("identity", sink.get("identity"));
            end.put("versions", new Object[] {version});
            Map amounts = (Map) version.remove("written");
            end.put("written", amounts.isEmpty() ? written : amounts);
        }
    }

    /** Returns the sink of a streaming query, if the versions that it writes are known; else null. */
    Map versionedSink() {
        Map sink = sinks.all().size() == 1 ? (Map) sinks.all().get(0) : null;
        return sink != null && BatchCommit.isKnown(sink) ? sink : null;
    }

    /** Returns all that is known of it, as JSON has it. */
    public LinkedHashMap record() {
        return record(facts, sinks);
    }

    /**
     * Returns what tells it from another one: all but the texts of its expressions, in which literals may differ, and
     * the properties of its tables, of which the number of the last commit is one.
     */
    String shape() {
        LinkedHashMap record = record();
        record.put("sources", shapes(facts.sources()));
        record.put("sinks", shapes(sinks.all()));
        return record.toString();
    }

    private static List shapes(List all) {
        ArrayList shapes = new ArrayList();
        for (int i = 0; i < all.size(); i++) {
            LinkedHashMap shape = new LinkedHashMap((Map) all.get(i));
            LinkedHashMap identity = new LinkedHashMap((Map) shape.get("identity"));
            identity.remove("properties");
            shape.put("identity", identity);
            shape.remove("expressions");
            shapes.add(shape);
        }
        return shapes;
    }

    static LinkedHashMap record(PlanFacts facts, Sinks sinks) {
        LinkedHashMap record = new LinkedHashMap();
        record.put("sources", facts.sources());
        record.put("columns", facts.columns());
        record.put("sinks", sinks.all());
        record.put("groups", sinks.groups());
        record.put("indirect", Sinks.kinds(facts.indirect()));
        record.put("incomplete", facts.incomplete());
        return record;
    }

    /** Returns the SQL text of the statement, or else of its query; null where it was given none. */
    String sql() {
        String text = textOf(plan);
        Object query = Reflect.get(plan, "query");
        return text == null && query != null ? textOf(query) : text;
    }

    /** Below several children, views and sources are the texts of others, such as the one that made a view. */
    private static String textOf(Object node) {
        for (int i = 0; i < MOST_NODES_FOR_TEXT; i++) {
            List children = Reflect.list(Reflect.get(node, "children"));
            Object origin = Reflect.get(node, "origin");
            Object text = Reflect.get(origin, "sqlText");
            boolean isSource = children.isEmpty() && !isOfText(node);
            if (text != null && Reflect.get(origin, "objectType") == null && !isSource) {
                return Reflect.text(text);
            }
            if (children.size() != 1 || Reflect.isA(node, "View")) {
                return null;
            }
            node = children.get(0);
        }
        return null;
    }

    private static boolean isOfText(Object node) {
        return Reflect.isA(node, "Command") || Reflect.isA(node, "LocalRelation") || Reflect.isA(node, "OneRowRelation");
    }
}
