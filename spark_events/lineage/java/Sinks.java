package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** What a statement writes, and for each column what it is computed from. */
class Sinks {
    private static final int MOST_INPUTS = 200000;
    private final PlanFacts facts;
    private final ArrayList sinks = new ArrayList();
    private final ArrayList groups = new ArrayList();
    private final IdentityHashMap groupNumbers = new IdentityHashMap();
    private int inputCount = 0;

    Sinks(PlanFacts facts) {
        this.facts = facts;
    }

    List all() {
        return sinks;
    }

    /** Returns what columns are computed from: columns that come from the same share a group. */
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
        for (int i = 0; i < output.length; i++) {
            columns.add(column(String.valueOf(shown.get(i)), output[i], facts.of(output[i])));
        }
        return add(identity, modify, columns);
    }

    Map add(LinkedHashMap identity, String modify, List columns) {
        LinkedHashMap sink = new LinkedHashMap();
        sink.put("identity", identity);
        sink.put("modify", modify);
        sink.put("columns", columns);
        sinks.add(sink);
        return sink;
    }

    /** Returns a column of a sink: its name, its type, and the number of its group. */
    ArrayList column(String name, Attribute attribute, Inputs inputs) {
        ArrayList column = new ArrayList();
        column.add(name);
        column.add(attribute.dataType().simpleString());
        column.add(groupOf(inputs));
        return column;
    }

    /** Columns that come from the same share what they come from, so that much to much is no square. */
    private Integer groupOf(Inputs inputs) {
        Integer number = (Integer) groupNumbers.get(inputs);
        if (number == null) {
            number = Integer.valueOf(groups.size());
            groupNumbers.put(inputs, number);
            inputCount += inputs.size();
            if (inputCount > MOST_INPUTS) {
                facts.setIncomplete("its columns have more than " + MOST_INPUTS + " inputs");
                groups.add(kinds(Inputs.NONE));
            } else {
                groups.add(kinds(inputs));
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
