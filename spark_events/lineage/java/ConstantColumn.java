package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** A column that has the same value in all rows, because a projection gives it a literal. */
final class ConstantColumn {
    /** Returns the value of a plan's column; null where it is not the same for all rows. */
    static Object value(LogicalPlan plan, String column) {
        ExprId wanted = idOf(plan, column);
        while (wanted != null && plan.children().size() == 1) {
            Expression definition = definition(plan, wanted);
            if (definition instanceof Literal) {
                return ((Literal) definition).value();
            }
            if (definition != null) {
                wanted = definition instanceof Attribute ? ((Attribute) definition).exprId() : null;
            }
            plan = (LogicalPlan) plan.children().head();
        }
        return null;
    }

    private static ExprId idOf(LogicalPlan plan, String column) {
        ExprId id = null;
        Attribute[] output = Trees.output(plan);
        for (int i = 0; i < output.length; i++) {
            id = output[i].name().equals(column) ? output[i].exprId() : id;
        }
        return id;
    }

    /** Returns what a projection gives another name; null where this node passes the column on as it is. */
    private static Expression definition(LogicalPlan plan, ExprId id) {
        List projected = Reflect.list(Reflect.get(plan, "projectList"));
        for (int i = 0; i < projected.size(); i++) {
            if (projected.get(i) instanceof Alias && ((Alias) projected.get(i)).exprId().equals(id)) {
                return ((Alias) projected.get(i)).child();
            }
        }
        return null;
    }
}
