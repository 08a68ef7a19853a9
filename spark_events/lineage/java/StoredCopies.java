package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.StructType;

/** Finds what Spark puts together again, field by field, to store it as it is: structs, arrays and maps of them. */
class StoredCopies {
    /** Returns what an expression is a copy of; null where it makes anything else. */
    static Expression source(Expression expression) {
        if (expression instanceof If) {
            return ofStruct((If) expression);
        }
        if (Reflect.isA(expression, "ArrayTransform")) {
            return ofArray(expression);
        }
        return Reflect.isA(expression, "MapFromArrays") ? ofMap(expression) : null;
    }

    /** if (isnull(s)) null else named_struct(x, s.x, y, s.y) */
    private static Expression ofStruct(If choice) {
        boolean isNull = choice.trueValue() instanceof Literal && ((Literal) choice.trueValue()).value() == null;
        if (!isNull || !Reflect.isA(choice.predicate(), "IsNull")
                || !(choice.falseValue() instanceof CreateNamedStruct)) {
            return null;
        }
        Expression struct = (Expression) choice.predicate().children().head();
        List values = Reflect.list(((CreateNamedStruct) choice.falseValue()).valExprs());
        if (!(struct.dataType() instanceof StructType)
                || ((StructType) struct.dataType()).fields().length != values.size()) {
            return null;
        }
        for (int place = 0; place < values.size(); place++) {
            Expression value = copied((Expression) values.get(place));
            if (!(value instanceof GetStructField) || ((GetStructField) value).ordinal() != place
                    || !((GetStructField) value).child().semanticEquals(struct)) {
                return null;
            }
        }
        return struct;
    }

    /** transform(z, element -> if (isnull(element)) null else named_struct(x, element.x)) */
    private static Expression ofArray(Expression transform) {
        Expression function = (Expression) Reflect.get(transform, "function");
        List variables = Reflect.list(Reflect.get(function, "arguments"));
        Expression element = copied((Expression) Reflect.get(function, "function"));
        boolean keepsAll = variables.size() == 1 && element.semanticEquals((Expression) variables.get(0));
        return keepsAll ? (Expression) Reflect.get(transform, "argument") : null;
    }

    /** map_from_arrays(map_keys(m), transform(map_values(m), …)) */
    private static Expression ofMap(Expression made) {
        Expression keys = copied((Expression) Reflect.get(made, "left"));
        Expression values = copied((Expression) Reflect.get(made, "right"));
        if (!Reflect.isA(keys, "MapKeys") || !Reflect.isA(values, "MapValues")) {
            return null;
        }
        Expression map = (Expression) keys.children().head();
        return map.semanticEquals((Expression) values.children().head()) ? map : null;
    }

    private static Expression copied(Expression expression) {
        if (ExpressionReader.keepsType(expression)) {
            return copied((Expression) expression.children().head());
        }
        Expression source = source(expression);
        return source == null ? expression : source;
    }
}
