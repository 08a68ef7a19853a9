package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CaseWhen;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.OuterReference;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Reads which source columns an expression is computed from, and in which way. */
public class ExpressionReader {
    private static final List MASKING = Arrays.asList(
        "Count", "Crc32", "HiveHash", "Mask", "Md5", "Murmur3Hash", "Sha1", "Sha2", "XxHash64");
    /** Parts of aggregate functions that decide which value, or in which order: the function, its part, the kind. */
    private static final Object[][] DECIDING = {
        {"ListAgg", "orderExpressions", Inputs.SORT},
        {"MaxMinBy", "orderingExpr", Inputs.CONDITIONAL},
        {"MaxMinByK", "orderingExpr", Inputs.CONDITIONAL},
        {"PivotFirst", "pivotColumn", Inputs.CONDITIONAL}
    };
    private final PlanFacts facts;
    private final PlanWalker subqueries;
    final StructFields fields;

    /**
     * @param facts of the plan that has the expressions
     * @param subqueries reads the plans of subqueries into the same facts
     */
    ExpressionReader(PlanFacts facts, PlanWalker subqueries) {
        this.facts = facts;
        this.subqueries = subqueries;
        this.fields = new StructFields(facts);
    }

    /** Notes that rows are there, or where they are, because of an expression or of several. */
    public void influence(Object expressions, int kind) {
        // A subquery among them adds to the same sum: it has to be read before that is asked for.
        Inputs inputs = inputsOfAll(Trees.expressions(expressions));
        facts.addIndirect(inputs.after(kind));
    }

    public Inputs inputsOfAll(Expression[] expressions) {
        Inputs sum = Inputs.NONE;
        for (int i = 0; i < expressions.length; i++) {
            sum = sum.plus(inputsOf(expressions[i]));
        }
        return sum;
    }

    public Inputs inputsOf(Expression expression) {
        if (expression == null || facts.isOutOfTime()) {
            return Inputs.NONE;
        }
        if (expression instanceof Attribute) {
            return facts.of((Attribute) expression);
        }
        if (expression instanceof OuterReference) {  // a leaf, in Spark's own words
            return inputsOf((Expression) ((OuterReference) expression).e());
        }
        if (expression instanceof SubqueryExpression) {
            return ofSubquery((SubqueryExpression) expression);
        }
        if (expression instanceof WindowExpression) {
            return ofWindow((WindowExpression) expression);
        }
        Expression stored = StoredCopies.source(expression);
        if (stored != null) {
            return inputsOf(stored);
        }
        if (expression instanceof If) {
            return ofIf((If) expression);
        }
        if (expression instanceof CaseWhen) {
            return ofCaseWhen((CaseWhen) expression);
        }
        if (expression instanceof AggregateExpression) {
            return ofAggregate((AggregateExpression) expression);
        }
        if (expression instanceof GetStructField) {
            return ofField((GetStructField) expression);
        }
        if (Reflect.isA(expression, "UpdateFields")) {
            return inputsOf(StructFields.updated(expression));
        }
        return ofChildren(expression).after(step(expression));
    }

    private Inputs ofChildren(Expression expression) {
        return inputsOfAll(Trees.expressions(expression.children()));
    }

    /** Returns the kind of the way from an expression's children to its value. */
    private static int step(Expression expression) {
        String name = Reflect.simpleName(expression.getClass());
        if (expression instanceof Alias || keepsType(expression)) {
            return Inputs.IDENTITY;
        }
        return MASKING.contains(name) ? Inputs.TRANSFORMATION | Inputs.MASKING : Inputs.TRANSFORMATION;
    }

    /** Returns whether an expression is a cast to the type that its value has. */
    static boolean keepsType(Expression expression) {
        return Reflect.simpleName(expression.getClass()).endsWith("Cast")
                && expression.dataType().sameType(((Expression) expression.children().head()).dataType());
    }

    /** Reads a subquery whose rows are joined with those of the plan: what decides them decides those of the plan. */
    void readJoined(SubqueryExpression subquery) {
        subqueries.walk((LogicalPlan) subquery.plan());
    }

    /** A subquery's columns, what it is compared with, and what decides its own rows: all of it makes one value. */
    private Inputs ofSubquery(SubqueryExpression subquery) {
        Inputs before = facts.takeIndirect();
        readJoined(subquery);
        Inputs sum = facts.takeIndirect().plus(ofChildren(subquery).after(Inputs.CONDITIONAL));
        facts.addIndirect(before);
        if (Reflect.isA(subquery, "Exists")) {
            return sum;
        }
        return sum.plus(inputsOfAll(Trees.output((LogicalPlan) subquery.plan())).after(Inputs.TRANSFORMATION));
    }

    /** What FILTER, and an order as that of max_by, decide is which of the values count. */
    private Inputs ofAggregate(AggregateExpression aggregate) {
        Expression function = aggregate.aggregateFunction();
        Inputs sum = ofFilter(aggregate);
        ArrayList values = Reflect.list(function.children());
        for (int i = 0; i < DECIDING.length; i++) {
            if (Reflect.isA(function, (String) DECIDING[i][0])) {
                Expression[] deciding = Trees.expressions(Reflect.get(function, (String) DECIDING[i][1]));
                sum = sum.plus(inputsOfAll(deciding).after((Integer) DECIDING[i][2]));
                for (int j = 0; j < deciding.length; j++) {
                    values.remove(deciding[j]);  // one of them: max_by(x, x) takes its values from x, too
                }
            }
        }
        Inputs made = inputsOfAll(Trees.expressions(values)).after(step(function));
        return sum.plus(made.after(Inputs.AGGREGATION));
    }

    /** A field of a struct that the plan makes has that field's inputs, and not those of the others. */
    private Inputs ofField(GetStructField field) {
        List made = fields.made(field);
        if (made != null) {
            return inputsOfAll(Trees.expressions(made));
        }
        AggregateExpression aggregate = fields.aggregated(field);
        List chosen = aggregate == null ? null : fields.chosen(aggregate);
        if (chosen == null || chosen.isEmpty()) {
            return ofChildren(field).after(Inputs.TRANSFORMATION);
        }
        Inputs sum = inputsOf((Expression) chosen.get(field.ordinal())).after(Inputs.AGGREGATION);
        // The greatest struct is that with the greatest first field, and so on.
        String function = Reflect.simpleName(aggregate.aggregateFunction().getClass());
        for (int i = 0; i < field.ordinal() && (function.equals("Max") || function.equals("Min")); i++) {
            sum = sum.plus(inputsOf((Expression) chosen.get(i)).after(Inputs.CONDITIONAL));
        }
        return sum.plus(ofFilter(aggregate));
    }

    private Inputs ofFilter(AggregateExpression aggregate) {
        return inputsOfAll(Trees.expressions(Reflect.get(aggregate, "filter"))).after(Inputs.CONDITIONAL);
    }

    private Inputs ofWindow(WindowExpression window) {
        return inputsOf(window.windowFunction()).after(Inputs.TRANSFORMATION)
            .plus(ofChildren(window.windowSpec()).after(Inputs.WINDOW));
    }

    private Inputs ofIf(If choice) {
        if (choice.trueValue().semanticEquals(choice.falseValue())) {
            return inputsOf(choice.trueValue());
        }
        return inputsOf(choice.predicate()).after(Inputs.CONDITIONAL)
            .plus(inputsOf(choice.trueValue()).plus(inputsOf(choice.falseValue())).after(Inputs.TRANSFORMATION));
    }

    private Inputs ofCaseWhen(CaseWhen choice) {
        Inputs sum = Inputs.NONE;
        List branches = Reflect.list(choice.branches());
        for (int i = 0; i < branches.size(); i++) {
            scala.Tuple2 branch = (scala.Tuple2) branches.get(i);
            sum = sum.plus(inputsOf((Expression) branch._1()).after(Inputs.CONDITIONAL));
            sum = sum.plus(inputsOf((Expression) branch._2()).after(Inputs.TRANSFORMATION));
        }
        Expression otherwise = (Expression) Reflect.get(choice, "elseValue");
        return sum.plus(inputsOf(otherwise).after(Inputs.TRANSFORMATION));
    }
}
