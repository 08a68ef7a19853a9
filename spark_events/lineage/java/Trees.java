package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Turns the Scala sequences of plans and expressions into arrays; null into an empty one. */
final class Trees {
    static LogicalPlan[] children(LogicalPlan plan) {
        return plans(plan.children());
    }

    static LogicalPlan[] plans(Object sequence) {
        return (LogicalPlan[]) Reflect.list(sequence).toArray(new LogicalPlan[0]);
    }

    static Attribute[] output(LogicalPlan plan) {
        return attributes(plan.output());
    }

    static Attribute[] attributes(Object sequence) {
        return (Attribute[]) Reflect.list(sequence).toArray(new Attribute[0]);
    }

    /** Returns the expressions of a sequence, or the one expression that is given. */
    static Expression[] expressions(Object sequence) {
        if (sequence instanceof Expression) {
            return new Expression[] {(Expression) sequence};
        }
        return (Expression[]) Reflect.list(sequence).toArray(new Expression[0]);
    }

    static ArrayList names(Attribute[] attributes) {
        ArrayList names = new ArrayList();
        for (int i = 0; i < attributes.length; i++) {
            names.add(attributes[i].name());
        }
        return names;
    }
}
