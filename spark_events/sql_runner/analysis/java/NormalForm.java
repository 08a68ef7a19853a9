package io.sparkevents.sqlrunner;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Identities;
import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * Writes an analyzed plan without anything, except Spark's numbers, that differs from one analysis of a query to the
 * next; sources appear by identity instead of the objects that read them. This is not Spark's canonical form, which
 * orders commutative operands by hashes of numbers.
 */
public final class NormalForm extends AbstractPartialFunction {
    private final Identities identities;
    private final ArrayList lines = new ArrayList();
    private final ArrayList sources = new ArrayList();
    private final ArrayList texts = new ArrayList();

    public NormalForm(Object session) {
        this.identities = new Identities(session, false);
    }

    /** Returns the lines of the plan, each source once in its place, and the columns that come out. */
    public Map of(LogicalPlan plan) throws Throwable {
        Object seeded = Calls.call(plan, "transformAllExpressionsWithSubqueries", new Object[] {this});
        walk((LogicalPlan) seeded, 0);
        LinkedHashMap form = new LinkedHashMap();
        form.put("plan", lines);
        form.put("sources", sources);
        form.put("texts", texts);
        form.put("columns", plan.schema().json());
        return form;
    }

    private void walk(LogicalPlan plan, int depth) throws Throwable {
        List children = Reflect.list(plan.children());
        if (Reflect.isA(plan, "SubqueryAlias") || Reflect.isA(plan, "View")) {
            walk((LogicalPlan) children.get(0), depth);
            return;
        }
        Map source = children.isEmpty() ? identities.ofSource(plan) : null;
        if (source != null) {
            source.put("columns", columns(plan));
            source.put("output", String.valueOf(Reflect.list(plan.output())));
            source.put("streaming", Boolean.valueOf(plan.isStreaming()));
            lines.add(depth + " source " + sources.size());
            sources.add(source);
        } else {
            lines.add(depth + " " + plan.simpleString(Integer.MAX_VALUE).replaceFirst("^['~!]*", ""));
        }
        if (Reflect.isA(plan, "LocalRelation")) {
            lines.add(depth + " rows " + Reflect.list(Reflect.get(plan, "data")));
        }
        List expressions = Reflect.list(plan.expressions());
        for (int i = 0; i < expressions.size(); i++) {
            addTexts(expressions.get(i));
        }
        List subqueries = Reflect.list(Reflect.get(plan, "subqueries"));
        for (int i = 0; i < subqueries.size(); i++) {
            lines.add(depth + " subquery");
            walk((LogicalPlan) subqueries.get(i), depth + 1);
        }
        for (int i = 0; i < children.size(); i++) {
            walk((LogicalPlan) children.get(i), depth + 1);
        }
    }

    /** Texts are listed separately, because a text may look like one of Spark's numbers. */
    private void addTexts(Object expression) {
        if (Reflect.isA(expression, "Literal") && Reflect.isA(Reflect.get(expression, "value"), "UTF8String")) {
            texts.add(Reflect.text(Reflect.get(expression, "value")));
        }
        List children = Reflect.list(Reflect.get(expression, "children"));
        for (int i = 0; i < children.size(); i++) {
            addTexts(children.get(i));
        }
    }

    /** All columns of what is read, where a relation knows them; else those of the leaf. */
    private static String columns(LogicalPlan leaf) {
        String[] places = {"dataSource.userSpecifiedSchema", "dataSource.catalogTable.schema", "relation.schema",
            "tableMeta.schema", "table.schema"};
        for (int i = 0; i < places.length; i++) {
            Object schema = Reflect.path(leaf, places[i]);
            if (schema instanceof StructType) {
                return ((StructType) schema).json();
            }
        }
        return leaf.schema().json();
    }

    public boolean isDefinedAt(Object expression) {
        return isSeeded(expression);
    }

    /** Spark gives rand() and uuid() another seed at each analysis. */
    public Object applyOrElse(Object expression, Function1 otherwise) {
        if (!isSeeded(expression)) {
            return otherwise.apply(expression);
        }
        try {
            return Calls.call(expression, "withNewSeed", new Object[] {Long.valueOf(0)});
        } catch (Throwable error) {
            throw new IllegalStateException(error);
        }
    }

    private static boolean isSeeded(Object expression) {
        return Reflect.isA(expression, "ExpressionWithRandomSeed")
            && (Boolean.TRUE.equals(Reflect.get(expression, "hideSeed")) || Reflect.isA(expression, "Uuid"));
    }
}
