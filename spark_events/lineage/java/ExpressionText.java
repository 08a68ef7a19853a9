package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;

/** The text of the expression that computes a column last: what SQL calls it, short enough to be shown. */
final class ExpressionText {
    private static final int MOST_STEPS = 100;
    private static final int MOST_NODES = 200;
    private static final int MOST_CHARACTERS = 500;

    /** Returns it; null for a column that is passed on as it was read, and for an expression that is not told. */
    static String of(Attribute column, PlanFacts facts) {
        Expression definition = facts.definition(column);
        for (int i = 0; i < MOST_STEPS && definition != null; i++) {
            Expression passedOn = passedOn(definition);
            Expression inner = passedOn == null ? null : facts.definition((Attribute) passedOn);
            if (definition instanceof Attribute || inner != null) {
                definition = inner;
            } else {
                return of(definition);
            }
        }
        return null;
    }

    /** Returns the column that an expression is, perhaps with the type that a table wants; null for any other. */
    private static Expression passedOn(Expression expression) {
        Expression value = expression;
        while (changesTypeOnly(value)) {
            value = (Expression) value.children().head();
        }
        return value instanceof Attribute ? value : null;
    }

    private static boolean changesTypeOnly(Expression expression) {
        String name = Reflect.simpleName(expression.getClass());
        return name.endsWith("Cast") || name.equals("CheckOverflowInTableInsert");
    }

    static String of(Expression expression) {
        if (expression.children().isEmpty() || !isTold(expression)) {
            return null;
        }
        try {
            String text = expression.sql();
            return text.length() <= MOST_CHARACTERS ? text : text.substring(0, MOST_CHARACTERS - 1) + "…";
        } catch (RuntimeException hasNoSql) {
            return null;
        }
    }

    /** Tells whether an expression is small; and Spark's words for a subquery leave out what that computes. */
    private static boolean isTold(Expression expression) {
        ArrayList nodes = new ArrayList();
        nodes.add(expression);
        for (int i = 0; i < nodes.size() && nodes.size() <= MOST_NODES; i++) {
            if (nodes.get(i) instanceof SubqueryExpression) {
                return false;
            }
            List children = Reflect.list(((Expression) nodes.get(i)).children());
            nodes.addAll(children);
        }
        return nodes.size() <= MOST_NODES;
    }
}
