package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CaseWhen;
import org.apache.spark.sql.catalyst.expressions.Expression;
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
    private final PlanFacts facts;
    private final PlanWalker subqueries;

    /**
     * @param facts of the plan that has the expressions
     * @param subqueries reads the plans of subqueries into the same facts
     */
    ExpressionReader(PlanFacts facts, PlanWalker subqueries) {
        this.facts = facts;
        this.subqueries = subqueries;
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
        if (expression instanceof If) {
            return ofIf((If) expression);
        }
        if (expression instanceof CaseWhen) {
            return ofCaseWhen((CaseWhen) expression);
        }
        return ofChildren(expression).after(step(expression));
    }

    private Inputs ofChildren(Expression expression) {
        return inputsOfAll(Trees.expressions(expression.children()));
    }

    /** Returns the kind of the way from an expression's children to its value. */
    private static int step(Expression expression) {
        String name = Reflect.simpleName(expression.getClass());
        if (expression instanceof Alias || name.endsWith("Cast") && isSameType(expression)) {
            return Inputs.IDENTITY;
        }
        int step = expression instanceof AggregateExpression ? Inputs.AGGREGATION : Inputs.TRANSFORMATION;
        return MASKING.contains(name) ? step | Inputs.MASKING : step;
    }

    private static boolean isSameType(Expression cast) {
        return cast.dataType().equals(((Expression) cast.children().head()).dataType());
    }

    /** A subquery's own filters and joins influence the whole; its columns, and what it is compared with, the value. */
    private Inputs ofSubquery(SubqueryExpression subquery) {
        LogicalPlan plan = (LogicalPlan) subquery.plan();
        subqueries.walk(plan);
        Inputs outer = ofChildren(subquery).after(Inputs.CONDITIONAL);
        if (Reflect.isA(subquery, "Exists")) {
            return outer;
        }
        return outer.plus(inputsOfAll(Trees.output(plan)).after(Inputs.TRANSFORMATION));
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
