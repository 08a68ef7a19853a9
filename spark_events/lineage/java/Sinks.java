package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import io.sparkevents.jvm.TableProperties;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.StructField;

/** What a statement writes, and for each column what it is computed from. */
class Sinks {
    private static final int MOST_INPUTS = 200000;
    private static final int MOST_TEXT = 65536;
    private final PlanFacts facts;
    private final ArrayList sinks = new ArrayList();
    private final ArrayList groups = new ArrayList();
    private final IdentityHashMap groupNumbers = new IdentityHashMap();
    private final HashMap namesById = new HashMap();
    private int inputCount = 0;
    private int textLength = 0;

    Sinks(PlanFacts facts) {
        this.facts = facts;
    }

    List all() {
        return sinks;
    }

    /** Returns the columns' inputs; columns with the same inputs share a group, to avoid quadratic output. */
    List groups() {
        return groups;
    }

    /**
     * Adds a sink whose columns are a query's, by place; returns it.
     *
     * @param names its own names of the columns, or a relation that has them; null where they are the query's
     */
    Map add(LinkedHashMap identity, String modify, Attribute[] output, Object names) {
        List own = names instanceof LogicalPlan ? Trees.names(Trees.output((LogicalPlan) names)) : Reflect.list(names);
        List shown = own.size() == output.length ? own : Trees.names(output);
        ArrayList columns = new ArrayList();
        LinkedHashMap texts = new LinkedHashMap();
        for (int i = 0; i < output.length; i++) {
            String name = String.valueOf(shown.get(i));
            columns.add(column(name, output[i], facts.of(output[i])));
            namesById.put(output[i].exprId(), name);
            addText(texts, name, facts.of(output[i]).isMade() ? ExpressionText.of(output[i], facts) : null);
        }
        Map sink = add(identity, modify, columns);
        sink.put("expressions", texts);
        return sink;
    }

    /** Adds the text of a column's expression, as far as those of all columns stay within a bound. */
    void addText(Map texts, String column, String text) {
        if (text != null && !facts.isOutOfTime() && textLength + text.length() <= MOST_TEXT) {
            textLength += text.length();
            texts.put(column, text);
        }
    }

    /** Returns the names of the written columns by the id of the query's column. */
    Map namesById() {
        return namesById;
    }

    Map add(LinkedHashMap identity, String modify, List columns) {
        LinkedHashMap sink = new LinkedHashMap();
        sink.put("identity", identity);
        sink.put("modify", modify);
        sink.put("columns", columns);
        sinks.add(sink);
        return sink;
    }

    /** Says which columns decide the rows of the sinks from a number on, instead of those of the statement. */
    void decide(int first, Inputs indirect) {
        for (int i = first; i < sinks.size(); i++) {
            ((Map) sinks.get(i)).put("indirect", kinds(indirect));
        }
    }

    /** Adds a table that is itself changed: its columns come from nowhere. */
    void addTable(TableState table, String modify) {
        add(table.identity, modify, columns(table));
    }

    /** Replaces the only sink by the table as it is now, under its new name if it has one; tells whether it differs. */
    boolean updateTable(TableState table, boolean isRenamed) {
        Map sink = (Map) sinks.get(0);
        Map identity = (Map) sink.get("identity");
        // The entry of a catalog may not have all properties: those of Delta are in the table's log.
        LinkedHashMap now = TableProperties.completed(table.identity, identity);
        List columns = columns(table);
        if (identity.equals(now) && columns.equals(sink.get("columns"))) {
            return false;
        }
        if (isRenamed) {
            sink.put("renamedFrom", identity);
        }
        sink.put("identity", now);
        sink.put("columns", columns);
        return true;
    }

    private List columns(TableState table) {
        ArrayList columns = new ArrayList();
        StructField[] fields = table.schema.fields();
        for (int i = 0; i < fields.length; i++) {
            String type = fields[i].dataType().simpleString();
            columns.add(Arrays.asList(fields[i].name(), type, groupOf(Inputs.NONE)));
        }
        return columns;
    }

    /** Returns a column of a sink: its name, its type, and the number of its group. */
    List column(String name, Attribute attribute, Inputs inputs) {
        return Arrays.asList(name, attribute.dataType().simpleString(), groupOf(inputs));
    }

    private Integer groupOf(Inputs inputs) {
        Integer number = (Integer) groupNumbers.get(inputs);
        if (number == null) {
            number = groups.size();
            groupNumbers.put(inputs, number);
            inputCount += inputs.size();
            groups.add(kinds(inputCount > MOST_INPUTS ? Inputs.NONE : inputs));
            if (inputCount > MOST_INPUTS) {
                facts.setIncomplete("its columns have more than " + MOST_INPUTS + " inputs");
            }
        }
        return number;
    }

    /** Returns the kinds by the column's number, which JSON has as text. */
    static LinkedHashMap kinds(Inputs inputs) {
        LinkedHashMap kinds = new LinkedHashMap();
        for (Iterator entries = inputs.kinds().entrySet().iterator(); entries.hasNext();) {
            Map.Entry input = (Map.Entry) entries.next();
            kinds.put(String.valueOf(input.getKey()), input.getValue());
        }
        return kinds;
    }
}
