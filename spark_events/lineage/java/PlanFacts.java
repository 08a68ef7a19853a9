package io.sparkevents.lineage;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;

/**
 * What is known of one plan while it is read: its sources, their columns by number, and for each expression id the
 * columns that it is computed from. Expression ids are unique in an analyzed plan, so that an operator which passes
 * columns on changes nothing here.
 */
public class PlanFacts {
    /** A column that may be made by more expressions than this counts as made in a way that is not known. */
    static final int MOST_ALTERNATIVES = 200;
    private static final int STEPS_BETWEEN_LOOKS_AT_CLOCK = 256;

    private final long deadlineNs;
    private final ArrayList sources = new ArrayList();
    private final ArrayList columns = new ArrayList();
    private final HashMap inputsById = new HashMap();
    private final HashMap definitionsById = new HashMap();
    private Inputs indirect = Inputs.NONE;
    private String incomplete = null;
    private boolean outOfTime = false;
    private int steps = 0;

    public PlanFacts(long budgetMs) {
        this.deadlineNs = System.nanoTime() + budgetMs * 1000000L;
    }

    public List sources() {
        return sources;
    }

    /** Returns the sources' columns, each a list of the source's number, the column's name, and its type. */
    public List columns() {
        return columns;
    }

    /** Adds a source and its columns, and returns its number. */
    public int addSource(LinkedHashMap identity, Attribute[] output, boolean streaming) {
        int number = sources.size();
        LinkedHashMap source = new LinkedHashMap();
        source.put("identity", identity);
        source.put("streaming", streaming);
        sources.add(source);
        for (int i = 0; i < output.length; i++) {
            int column = addColumn(number, output[i].name(), output[i].dataType().simpleString());
            put(output[i], Inputs.of(column, Inputs.IDENTITY));
        }
        return number;
    }

    /** Adds a column of a source, and returns its number. */
    public int addColumn(int source, String name, String type) {
        columns.add(Arrays.asList(source, name, type));
        return columns.size() - 1;
    }

    public Inputs of(NamedExpression expression) {
        Inputs inputs = (Inputs) inputsById.get(id(expression));
        return inputs == null ? Inputs.NONE : inputs;
    }

    public boolean has(NamedExpression expression) {
        return inputsById.containsKey(id(expression));
    }

    public void put(NamedExpression expression, Inputs inputs) {
        inputsById.put(id(expression), inputs);
    }

    /** Returns the ids of all expressions whose inputs are known by now. */
    Set knownIds() {
        return new HashSet(inputsById.keySet());
    }

    /** Forgets the inputs of expressions with other ids. */
    void keepOnly(Set ids) {
        inputsById.keySet().retainAll(ids);
    }

    /** Keeps the expression that a column is given its value by. */
    public void define(NamedExpression column, Expression value) {
        definitionsById.put(id(column), value);
    }

    /** Keeps the expressions one of which gives a column its value, in each row that is made of an input row. */
    void defineAlternatives(NamedExpression column, List values) {
        if (values.size() <= MOST_ALTERNATIVES) {
            definitionsById.put(id(column), values);
        }
    }

    /** Forgets that expression: the column has the values of several rows, and the id of the first of them. */
    void forgetDefinition(NamedExpression column) {
        definitionsById.remove(id(column));
    }

    /** Returns that expression; null for a column that has been read, or is one of several rows. */
    public Expression definition(NamedExpression column) {
        Object known = definitionsById.get(id(column));
        return known instanceof Expression ? (Expression) known : null;
    }

    /** Returns the expressions one of which gives a column its value; null where they are not known. */
    List alternatives(NamedExpression column) {
        Object known = definitionsById.get(id(column));
        return known instanceof Expression ? Arrays.asList(known) : (List) known;
    }

    /** Gives columns the inputs of others, by place; columns beyond those have none. */
    public void copy(Attribute[] from, Attribute[] to) {
        for (int i = 0; i < to.length; i++) {
            put(to[i], i < from.length ? of(from[i]) : Inputs.NONE);
        }
    }

    static Long id(NamedExpression expression) {
        return expression.exprId().id();
    }

    /** Returns the columns that decide which rows there are, or in which order. */
    public Inputs indirect() {
        return indirect;
    }

    /** Returns them, and begins anew with none. */
    Inputs takeIndirect() {
        Inputs taken = indirect;
        indirect = Inputs.NONE;
        return taken;
    }

    public void addIndirect(Inputs inputs) {
        indirect = indirect.plus(inputs);
    }

    /** Returns why columns may be missing; null where none is known to. */
    public String incomplete() {
        return incomplete;
    }

    /** Says why columns may be missing; the first reason stays. */
    public void setIncomplete(String reason) {
        incomplete = incomplete == null ? reason : incomplete;
    }

    /** Counts a step, and tells whether the time for this plan is over. */
    public boolean isOutOfTime() {
        if (!outOfTime && ++steps % STEPS_BETWEEN_LOOKS_AT_CLOCK == 0 && System.nanoTime() > deadlineNs) {
            outOfTime = true;
            setIncomplete("the plan took longer than spark.events.lineage.timeout");
        }
        return outOfTime;
    }
}
