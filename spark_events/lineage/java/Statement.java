package io.sparkevents.lineage;

import io.sparkevents.jvm.Identities;
import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;

/** One statement or streaming query: what it reads, what it writes, and which columns make which. */
public class Statement {
    private static final int MOST_NODES_FOR_TEXT = 50;
    final LogicalPlan plan;
    final PlanFacts facts;
    final Writes writes;
    final LinkedHashMap written = new LinkedHashMap();
    final ArrayList read = new ArrayList();
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
    void read(TableChange change, KnownTables known) {
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

    /** Keeps how much was written; a part of the statement may tell it before the whole. */
    void addWritten(LinkedHashMap amounts) {
        if (written.isEmpty()) {
            written.putAll(amounts);
        }
    }

    /** Keeps what was read; a part of the statement may tell it before the whole, which has the same scans then. */
    void addRead(QueryExecution execution) {
        if (read.isEmpty() && !facts.sources().isEmpty()) {
            read.addAll(DataRead.by(execution));
        }
    }

    /** Returns all that is known of it, as JSON has it. */
    public LinkedHashMap record() {
        return record(facts, sinks);
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
        ArrayList nodes = new ArrayList();
        nodes.add(plan);
        Object query = Reflect.get(plan, "query");
        if (query != null) {
            nodes.add(query);
        }
        for (int i = 0; i < nodes.size() && i < MOST_NODES_FOR_TEXT; i++) {
            Object origin = Reflect.get(nodes.get(i), "origin");
            Object text = Reflect.get(origin, "sqlText");
            if (text != null && Reflect.get(origin, "objectType") == null) {
                return Reflect.text(text);
            }
            nodes.addAll(Reflect.list(Reflect.get(nodes.get(i), "children")));
        }
        return null;
    }
}
