package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Explode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;

/** Finds which of a struct's fields a value is, where the plan itself makes the struct, or several to choose from. */
class StructFields {
    private static final List CHOOSING = Arrays.asList("AnyValue", "First", "Last", "Max", "Min");
    private final PlanFacts facts;

    StructFields(PlanFacts facts) {
        this.facts = facts;
    }

    /** Returns the expressions that a field is one of; null where a struct is read, or made in another way. */
    List made(GetStructField field) {
        List structs = made(field.child());
        ArrayList values = new ArrayList();
        for (int i = 0; i < structs.size(); i++) {
            List struct = values((Expression) structs.get(i));
            if (struct == null) {
                return null;
            }
            if (!struct.isEmpty()) {
                values.add(struct.get(field.ordinal()));
            }
        }
        return values;
    }

    /** Returns the aggregate of structs that a field is taken of; null where there is none. */
    AggregateExpression aggregated(GetStructField field) {
        List structs = made(field.child());
        return structs.size() == 1 && structs.get(0) instanceof AggregateExpression
            ? (AggregateExpression) structs.get(0) : null;
    }

    /** Returns the fields of the struct that an aggregate takes as it is; null where it makes something of several. */
    List chosen(AggregateExpression aggregate) {
        Expression function = aggregate.aggregateFunction();
        if (!CHOOSING.contains(Reflect.simpleName(function.getClass()))) {
            return null;
        }
        List structs = made((Expression) function.children().head());
        return structs.size() == 1 ? values((Expression) structs.get(0)) : null;
    }

    /**
     * Returns what the fields of a struct are made of: none of a null, and null where that is not known. An
     * arrays_zip stands for its elements here.
     */
    static List values(Expression struct) {
        if (struct instanceof CreateNamedStruct) {
            return Reflect.list(((CreateNamedStruct) struct).valExprs());
        }
        if (Reflect.isA(struct, "ArraysZip")) {
            return elementsOf(Reflect.list(struct.children()));
        }
        return struct instanceof Literal && ((Literal) struct).value() == null ? Collections.EMPTY_LIST : null;
    }

    /** Returns an expression for the elements of each of several arrays. */
    static List elementsOf(List arrays) {
        ArrayList elements = new ArrayList();
        for (int i = 0; i < arrays.size(); i++) {
            elements.add(new Explode((Expression) arrays.get(i)));
        }
        return elements;
    }

    /** Returns the struct that withField() and dropFields() make of another one. */
    static CreateNamedStruct updated(Expression update) {
        Object made = Reflect.get(update, "evalExpr");
        return (CreateNamedStruct) (made instanceof If ? ((If) made).falseValue() : made);
    }

    /** Follows an expression to what makes its value: several expressions, where rows have it from one of them. */
    List made(Expression expression) {
        if (expression instanceof Alias) {
            return made(((Alias) expression).child());
        }
        if (expression instanceof Attribute) {
            return madeOfOne(expression, facts.alternatives((Attribute) expression));
        }
        if (expression instanceof GetStructField) {
            return madeOfOne(expression, made((GetStructField) expression));
        }
        if (ExpressionReader.keepsType(expression)) {  // as a view has around each of its columns
            return made((Expression) expression.children().head());
        }
        return Collections.singletonList(
            Reflect.isA(expression, "UpdateFields") ? updated(expression) : expression);
    }

    /** Follows each of the expressions that a value is one of; null and none of them leave the value as it is. */
    private List madeOfOne(Expression value, List expressions) {
        if (expressions == null || expressions.isEmpty()) {
            return Collections.singletonList(value);
        }
        ArrayList all = new ArrayList();
        for (int i = 0; i < expressions.size(); i++) {
            all.addAll(made((Expression) expressions.get(i)));
        }
        return all.size() <= PlanFacts.MOST_ALTERNATIVES ? all : Collections.singletonList(value);
    }
}
