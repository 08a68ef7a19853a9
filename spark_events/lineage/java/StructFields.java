package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;

/** Finds which of a struct's fields a value is, where the plan itself makes the struct. */
class StructFields {
    private static final List CHOOSING = Arrays.asList("AnyValue", "First", "Last", "Max", "Min");
    private final PlanFacts facts;

    StructFields(PlanFacts facts) {
        this.facts = facts;
    }

    /** Returns the expression that makes a field; null where the struct is read, or made in another way. */
    Expression made(GetStructField field) {
        Expression struct = made(field.child());
        return struct instanceof CreateNamedStruct ? valueAt((CreateNamedStruct) struct, field.ordinal()) : null;
    }

    /** Returns the aggregate of structs that a field is taken of; null where there is none. */
    AggregateExpression aggregated(GetStructField field) {
        Expression struct = made(field.child());
        return struct instanceof AggregateExpression ? (AggregateExpression) struct : null;
    }

    /** Returns the struct of which an aggregate takes one as it is; null where it makes something of several. */
    CreateNamedStruct chosen(AggregateExpression aggregate) {
        Expression function = aggregate.aggregateFunction();
        if (!CHOOSING.contains(Reflect.simpleName(function.getClass()))) {
            return null;
        }
        Expression struct = made((Expression) function.children().head());
        return struct instanceof CreateNamedStruct ? (CreateNamedStruct) struct : null;
    }

    static Expression valueAt(CreateNamedStruct struct, int place) {
        return (Expression) Reflect.list(struct.valExprs()).get(place);
    }

    /** Follows an expression to what its value is made by. */
    private Expression made(Expression expression) {
        Expression known = expression;
        if (expression instanceof Alias) {
            known = made(((Alias) expression).child());
        } else if (expression instanceof Attribute) {
            Expression definition = facts.definition((Attribute) expression);
            known = definition == null ? expression : made(definition);
        } else if (ExpressionReader.keepsType(expression)) {  // as a view has around each of its columns
            known = made((Expression) expression.children().head());
        } else if (expression instanceof GetStructField) {
            Expression field = made((GetStructField) expression);
            known = field == null ? expression : made(field);
        }
        return known;
    }
}
