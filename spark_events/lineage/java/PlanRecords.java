package io.sparkevents.lineage;

import io.sparkevents.jvm.Identities;
import io.sparkevents.jvm.Reflect;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.function.Consumer;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;

/** Makes and sends the records of statements and queries, with what their plans say. */
class PlanRecords {
    private static final int MOST_OF_TEXT = 65536;
    private static final int LONGEST_REASON = 500;
    private final Consumer sink;
    final long budgetMs;
    private final Remembered remembered = new Remembered();
    final KnownTables knownTables = new KnownTables();

    PlanRecords(Consumer sink, long budgetMs) {
        this.sink = sink;
        this.budgetMs = budgetMs;
    }

    static LinkedHashMap create(String name, long time) {
        LinkedHashMap record = new LinkedHashMap();
        record.put("Event", name);
        record.put("time", time);
        return record;
    }

    void send(LinkedHashMap record) {
        sink.accept(record);
    }

    void sendError(Throwable error) {
        sink.accept(error);
    }

    Statement statement(LogicalPlan plan, Identities identities) {
        return new Statement(plan, identities, remembered, budgetMs);
    }

    /** Keeps what the columns of a statement without sinks are computed from, for plans that are cut after it. */
    void remember(Statement statement) {
        remembered.remember(statement.facts, Trees.output(statement.plan));
    }

    /**
     * Reads a plan into a record; returns null, and says so in the record, where that cannot be done.
     *
     * @param change of a table itself, which the statement makes; null where it makes none
     * @param batch of the streaming query whose function of foreachBatch runs the plan; null where none does
     */
    Statement addLineage(
        LinkedHashMap record, QueryExecution execution, TableChange change, Remembered.Batch batch) {
        if (execution == null) {
            record.put("incomplete", "its plan was not kept: it had ended, or too many plans waited");
            return null;
        }
        remembered.inBatch(batch);
        try {
            Identities identities = new Identities(Reflect.get(execution, "sparkSession"));
            Statement statement = statement(execution.analyzed(), identities);
            statement.begunMs = ((Long) record.get("time")).longValue();
            statement.read(change, knownTables);
            sayUnknownProcedure(execution.logical(), statement);
            record.put("lineage", statement.record());
            record.put("sql", cut(statement.sql()));
            return statement;
        } catch (Throwable error) {
            record.put("incomplete", unread(error));
            return null;
        } finally {
            remembered.inBatch(null);
        }
    }

    /** Says that what CALL does is not known: when Spark analyzes it, it runs the procedure, and keeps the answer. */
    private static void sayUnknownProcedure(LogicalPlan asked, Statement statement) {
        String kind = Reflect.simpleName(asked.getClass());
        if (kind.equals("Call") || kind.equals("CallStatement")) {  // the latter is Iceberg's before Spark 4
            List parts = Reflect.list(Reflect.first(asked, "procedure.nameParts|name"));
            statement.facts.setIncomplete("what CALL " + String.join(".", parts) + " writes is not known");
        }
    }

    /** Returns why a statement failed; null where it did not. */
    static LinkedHashMap failure(Throwable thrown, scala.Option message) {
        String text = message.isDefined() ? String.valueOf(message.get()) : "";
        if (thrown == null && text.length() == 0) {
            return null;
        }
        LinkedHashMap failure = new LinkedHashMap();
        failure.put("text", text);
        if (thrown != null) {
            StringWriter stack = new StringWriter();
            thrown.printStackTrace(new PrintWriter(stack));
            failure.put("text", cut(stack.toString()));
            failure.put("errorClass", Reflect.text(Reflect.first(thrown, "getCondition|getErrorClass")));
            failure.put("sqlState", Reflect.text(Reflect.get(thrown, "getSqlState")));
        }
        return failure;
    }

    static String cut(String text) {
        return text == null ? null : text.substring(0, Math.min(text.length(), MOST_OF_TEXT));
    }

    /** Says why a plan could not be read; what Spark adds to its errors behind the first line is the whole plan. */
    static String unread(Throwable error) {
        String said = error.toString();
        int end = said.indexOf('\n');
        String line = end < 0 ? said : said.substring(0, end);
        return "its plan could not be read: " + line.substring(0, Math.min(line.length(), LONGEST_REASON));
    }
}
