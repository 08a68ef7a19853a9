package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Reads one operator whose children are read: how it makes its columns, and which expressions decide its rows. */
class OperatorReader {
    /** Operators whose rows, or whose order, an expression decides: the operator, its expression, the kind. */
    private static final Object[][] INFLUENCES = {
        {"Aggregate", "groupingExpressions", Inputs.GROUP_BY},
        {"Deduplicate", "keys", Inputs.GROUP_BY},
        {"DeduplicateWithinWatermark", "keys", Inputs.GROUP_BY},
        {"Distinct", "output", Inputs.GROUP_BY},
        {"Filter", "condition", Inputs.FILTER},
        {"Sort", "order", Inputs.SORT}
    };
    /** Operators that make columns by named expressions: the operator, its expressions. */
    private static final String[][] DEFINITIONS = {
        {"Aggregate", "aggregateExpressions"},
        {"Project", "projectList"},
        {"Window", "windowExpressions"}
    };
    /** Operators that call a function for each group of rows: the beginning of their names, the keys, the kind. */
    private static final Object[][] GROUPS = {
        {"FlatMapGroups", "groupingAttributes", Inputs.GROUP_BY},
        {"FlatMapCoGroups", "leftAttributes", Inputs.JOIN},
        {"FlatMapCoGroups", "rightAttributes", Inputs.JOIN},
        {"TransformWithState", "leftAttributes", Inputs.GROUP_BY}
    };
    private static final List JOINS = Arrays.asList("Join", "LateralJoin", "AsOfJoin");
    private static final String[] MERGE_CLAUSES = {
        "matchedInstructions", "notMatchedInstructions", "notMatchedBySourceInstructions"
    };

    private final PlanFacts facts;
    private final ExpressionReader expressions;
    private final GeneratedRows generated;
    /** Whether what is read from now on is an UPDATE that writes whole files anew, with rows that it keeps. */
    boolean keepingRows = false;

    OperatorReader(PlanFacts facts, ExpressionReader expressions) {
        this.facts = facts;
        this.expressions = expressions;
        this.generated = new GeneratedRows(expressions.fields);
    }

    void read(LogicalPlan plan, String name) {
        if (JOINS.contains(name)) {
            readJoin(plan);
        } else if (name.equals("Generate")) {
            readGenerate(plan);
        } else if (name.equals("Expand")) {
            combineByPlace(plan.output(), Reflect.list(Reflect.get(plan, "projections")));
        } else if (name.equals("Union")) {
            readUnion(plan);
        } else if (name.equals("Except") || name.equals("Intersect")) {
            readSetOperation(plan);
        } else if (name.equals("MergeRows")) {
            readMergeRows(plan);
        } else if (!readByTables(plan, name)) {
            readGroups(plan, name);
            readUnknown(plan);
        }
    }

    /** Tells whether the tables have this operator. */
    private boolean readByTables(LogicalPlan plan, String name) {
        boolean known = false;
        for (int i = 0; i < INFLUENCES.length; i++) {
            if (INFLUENCES[i][0].equals(name)) {
                expressions.influence(Reflect.get(plan, (String) INFLUENCES[i][1]), (Integer) INFLUENCES[i][2]);
                known = true;
            }
        }
        for (int i = 0; i < DEFINITIONS.length; i++) {
            if (DEFINITIONS[i][0].equals(name)) {
                define(Trees.expressions(Reflect.get(plan, DEFINITIONS[i][1])));
                known = true;
            }
        }
        return known;
    }

    private void readGroups(LogicalPlan plan, String name) {
        for (int i = 0; i < GROUPS.length; i++) {
            if (name.startsWith((String) GROUPS[i][0])) {
                expressions.influence(Reflect.get(plan, (String) GROUPS[i][1]), (Integer) GROUPS[i][2]);
            }
        }
        if (Boolean.TRUE.equals(Reflect.get(plan, "hasInitialState"))) {
            expressions.influence(Reflect.get(plan, "rightAttributes"), Inputs.GROUP_BY);
        }
    }

    /** A lateral join's right side is an expression, with the left side's columns in it. */
    private void readJoin(LogicalPlan plan) {
        Object right = Reflect.get(plan, "right");
        if (right instanceof SubqueryExpression) {
            expressions.readJoined((SubqueryExpression) right);
        }
        expressions.influence(Reflect.get(plan, "condition"), Inputs.JOIN);
        expressions.influence(Reflect.get(plan, "asOfCondition"), Inputs.JOIN);
        if (Reflect.isA(Reflect.get(plan, "joinType"), "ExistenceJoin")) {
            readUnknown(plan);
        }
    }

    private void readGenerate(LogicalPlan plan) {
        Expression generator = (Expression) Reflect.get(plan, "generator");
        if (Reflect.isA(generator, "GeneratorOuter")) {
            generator = (Expression) generator.children().head();
        }
        List made = Reflect.list(Reflect.get(plan, "generatorOutput"));
        List rows = generated.of(generator, made.size());
        Inputs inputs = expressions.inputsOf(generator).after(Inputs.TRANSFORMATION);
        boolean areCounted = generated.areCounted(generator);
        if (!areCounted) {  // how many rows there are of each is up to what is in it
            facts.addIndirect(inputs.after(Inputs.JOIN));
        }
        if (rows != null && GeneratedRows.hasPosition(generator)) {
            facts.put((Attribute) made.remove(0), areCounted ? Inputs.NONE : inputs);
        }
        if (rows != null) {
            combineByPlace(made, rows);
            defineByPlace(made, rows);
            return;
        }
        for (int i = 0; i < made.size(); i++) {
            facts.put((Attribute) made.get(i), inputs);
        }
    }

    private void defineByPlace(List columns, List rows) {
        for (int place = 0; place < columns.size(); place++) {
            ArrayList values = new ArrayList();
            for (int i = 0; i < rows.size(); i++) {
                List row = (List) rows.get(i);
                if (place < row.size()) {
                    values.add(row.get(place));
                }
            }
            facts.defineAlternatives((Attribute) columns.get(place), values);
        }
    }

    private void readUnion(LogicalPlan plan) {
        LogicalPlan[] children = Trees.children(plan);
        ArrayList rows = new ArrayList();
        for (int i = 0; i < children.length; i++) {
            rows.add(children[i].output());
        }
        combineByPlace(plan.output(), rows);
    }

    /** What a row has on either side decides whether it stays, as the keys of a semi join do. */
    private void readSetOperation(LogicalPlan plan) {
        expressions.influence(Reflect.path(plan, "left.output"), Inputs.FILTER);
        expressions.influence(Reflect.path(plan, "right.output"), Inputs.FILTER);
        readUnknown(plan);
    }

    /** What MERGE makes of matching rows: a list of expressions for each of its clauses. */
    private void readMergeRows(LogicalPlan plan) {
        ArrayList rows = new ArrayList();
        for (int i = 0; i < MERGE_CLAUSES.length; i++) {
            List instructions = Reflect.list(Reflect.get(plan, MERGE_CLAUSES[i]));
            for (int j = 0; j < instructions.size(); j++) {
                expressions.influence(Reflect.get(instructions.get(j), "condition"), Inputs.FILTER);
                rows.addAll(Reflect.list(Reflect.get(instructions.get(j), "outputs")));
            }
        }
        combineByPlace(plan.output(), rows);
    }

    /** Gives each column the inputs of the expressions at its place in several rows. */
    void combineByPlace(Object output, List rows) {
        Attribute[] columns = Trees.attributes(output);
        Inputs[] sums = new Inputs[columns.length];
        Arrays.fill(sums, Inputs.NONE);
        for (int i = 0; i < rows.size(); i++) {
            Expression[] row = Trees.expressions(rows.get(i));
            for (int place = 0; place < sums.length && place < row.length; place++) {
                sums[place] = sums[place].plus(expressions.inputsOf(row[place]));
            }
        }
        for (int place = 0; place < sums.length; place++) {
            facts.put(columns[place], sums[place]);
            facts.forgetDefinition(columns[place]);
        }
    }

    private void define(Expression[] named) {
        for (int i = 0; i < named.length; i++) {
            if (!(named[i] instanceof Attribute) && named[i] instanceof NamedExpression) {
                Expression value = keepingRows ? updated(named[i]) : named[i];
                facts.put((NamedExpression) named[i], expressions.inputsOf(value));
                facts.define((NamedExpression) named[i], value instanceof Alias ? ((Alias) value).child() : value);
            }
        }
    }

    /** Where UPDATE writes whole files anew, a row that is not updated keeps its values: that is no update. */
    private Expression updated(Expression expression) {
        Expression choice = expression instanceof Alias ? ((Alias) expression).child() : expression;
        if (choice instanceof If && ((If) choice).falseValue() instanceof Attribute) {
            expressions.influence(((If) choice).predicate(), Inputs.FILTER);
            return ((If) choice).trueValue();
        }
        return expression;
    }

    /** Gives columns that an operator makes in a way that is not known here all that it refers to. */
    private void readUnknown(LogicalPlan plan) {
        Inputs everything = null;
        Attribute[] output = Trees.output(plan);
        for (int i = 0; i < output.length; i++) {
            if (!facts.has(output[i])) {
                everything = everything == null ? everythingIn(plan) : everything;
                facts.put(output[i], everything);
            }
        }
    }

    private Inputs everythingIn(LogicalPlan plan) {
        Inputs own = expressions.inputsOfAll(Trees.expressions(plan.expressions()));
        return (own.size() == 0 ? ofChildren(plan) : own).after(Inputs.TRANSFORMATION);
    }

    private Inputs ofChildren(LogicalPlan plan) {
        LogicalPlan[] children = Trees.children(plan);
        Inputs sum = Inputs.NONE;
        for (int i = 0; i < children.length; i++) {
            sum = sum.plus(expressions.inputsOfAll(Trees.output(children[i])));
        }
        return sum;
    }
}
