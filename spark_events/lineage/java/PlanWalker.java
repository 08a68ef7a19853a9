package io.sparkevents.lineage;

import io.sparkevents.jvm.Identities;
import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CaseWhen;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Reads an analysed plan from its leaves to its root, and knows for each expression id which source columns it is
 * computed from. Expression ids are unique in an analysed plan, so that a join or a filter costs nothing for the
 * columns that it passes on.
 */
public class PlanWalker {
    private static final String MASKING =
        " Crc32 HiveHash Md5 Murmur3Hash Sha1 Sha2 XxHash64 Count Mask ";
    private static final int LOOK_AT_CLOCK_EVERY = 256;

    private final Identities identities;
    private final Remembered remembered;
    private final long deadlineNs;
    private final HashMap inputs = new HashMap();
    private final HashMap ctes = new HashMap();
    private final ArrayList sources = new ArrayList();
    private final ArrayList columns = new ArrayList();
    private final IdentityHashMap seen = new IdentityHashMap();
    private Inputs indirect = Inputs.NONE;
    private int steps = 0;
    private boolean outOfTime = false;
    private boolean updating = false;
    private String incomplete = null;

    public PlanWalker(Identities identities, Remembered remembered, long budgetMs) {
        this.identities = identities;
        this.remembered = remembered;
        this.deadlineNs = System.nanoTime() + budgetMs * 1000000L;
    }

    // -- what was found ----------------------------------------------------------------------------------------

    public List sources() {
        return sources;
    }

    public List columns() {
        return columns;
    }

    public Inputs indirect() {
        return indirect;
    }

    /** Says why columns may miss; null where none does. */
    public String incomplete() {
        return incomplete;
    }

    public void incomplete(String reason) {
        incomplete = incomplete == null ? reason : incomplete;
    }

    public Inputs of(Attribute attribute) {
        Inputs found = (Inputs) inputs.get(Long.valueOf(attribute.exprId().id()));
        return found == null ? Inputs.NONE : found;
    }

    public void put(Attribute attribute, Inputs from) {
        inputs.put(Long.valueOf(attribute.exprId().id()), from);
    }

    private boolean has(Attribute attribute) {
        return inputs.containsKey(Long.valueOf(attribute.exprId().id()));
    }

    // -- plans -------------------------------------------------------------------------------------------------

    /** Reads a plan; once, however often it is in the tree. */
    public void walk(LogicalPlan plan) {
        if (seen.put(plan, Boolean.TRUE) != null) {
            return;
        }
        String node = Reflect.simpleName(plan.getClass());
        if (node.equals("WithCTE")) {
            walkAll(Reflect.get(plan, "cteDefs"));
            walk((LogicalPlan) Reflect.get(plan, "plan"));
            return;
        }
        if (node.equals("UnionLoop")) {
            walkLoop(plan);
            return;
        }
        walkAll(plan.children());
        if (node.equals("CTERelationDef")) {
            ctes.put(Reflect.get(plan, "id"), plan.output());
        } else if (node.equals("CTERelationRef")) {
            bind(plan.output(), ctes.get(Reflect.get(plan, "cteId")));
        } else if (node.equals("UnionLoopRef")) {
            bind(plan.output(), ctes.get(Reflect.get(plan, "loopId")));
        } else if (plan.children().isEmpty()) {
            leaf(plan);
        } else if (!checkTime()) {
            operator(plan, node);
        }
    }

    private void operator(LogicalPlan plan, String node) {
        if (node.equals("Project")) {
            defineAll(Reflect.get(plan, "projectList"));
        } else if (node.equals("Aggregate")) {
            influence(Reflect.get(plan, "groupingExpressions"), Inputs.GROUP_BY);
            defineAll(Reflect.get(plan, "aggregateExpressions"));
        } else if (node.equals("Filter")) {
            influence(Reflect.get(plan, "condition"), Inputs.FILTER);
        } else if (node.equals("Join") || node.equals("LateralJoin") || node.equals("AsOfJoin")) {
            join(plan, node);
        } else if (node.equals("Sort")) {
            influence(Reflect.get(plan, "order"), Inputs.SORT);
        } else if (node.equals("Window")) {
            defineAll(Reflect.get(plan, "windowExpressions"));
        } else if (node.equals("Generate")) {
            Inputs from = eval((Expression) Reflect.get(plan, "generator")).after(Inputs.TRANSFORMATION);
            putAll(Reflect.get(plan, "generatorOutput"), from);
        } else if (node.equals("Expand")) {
            alternatives(plan.output(), Reflect.list(Reflect.get(plan, "projections")));
        } else if (node.equals("Union")) {
            union(plan);
        } else if (node.equals("Except") || node.equals("Intersect")) {
            LogicalPlan right = (LogicalPlan) Reflect.get(plan, "right");
            influence(right.output(), Inputs.FILTER);
            define(plan);
        } else if (node.equals("Deduplicate") || node.equals("DeduplicateWithinWatermark")) {
            influence(Reflect.get(plan, "keys"), Inputs.GROUP_BY);
        } else if (node.equals("MergeRows")) {
            mergeRows(plan);
        } else {
            define(plan);
        }
    }

    /** A lateral join's right side is an expression, with the left side's columns in it. */
    private void join(LogicalPlan plan, String node) {
        Object right = Reflect.get(plan, "right");
        if (right instanceof SubqueryExpression) {
            eval((Expression) right);
        }
        influence(Reflect.get(plan, "condition"), Inputs.JOIN);
        if (node.equals("AsOfJoin")) {
            influence(Reflect.get(plan, "asOfCondition"), Inputs.JOIN);
        }
        if (Reflect.isA(Reflect.get(plan, "joinType"), "ExistenceJoin")) {
            define(plan);
        }
    }

    private void leaf(LogicalPlan plan) {
        LinkedHashMap identity = identities.ofSource(plan);
        if (identity == null) {
            remembered.restore(this, plan);
            return;
        }
        addSource(identity, plan.output(), plan.isStreaming());
    }

    /** Adds a source and its columns, and returns its number. */
    public int addSource(LinkedHashMap identity, Object output, boolean streaming) {
        int number = sources.size();
        LinkedHashMap source = new LinkedHashMap();
        source.put("identity", identity);
        source.put("streaming", Boolean.valueOf(streaming));
        sources.add(source);
        for (Iterator each = Reflect.list(output).iterator(); each.hasNext();) {
            Attribute attribute = (Attribute) each.next();
            int column = addColumn(number, attribute.name(), attribute.dataType().simpleString());
            put(attribute, Inputs.of(column, Inputs.IDENTITY));
        }
        return number;
    }

    public int addColumn(int source, String name, String type) {
        ArrayList column = new ArrayList();
        column.add(Integer.valueOf(source));
        column.add(name);
        column.add(type);
        columns.add(column);
        return columns.size() - 1;
    }

    /** The anchor's columns are those that the recursion reads, and both are those of the whole. */
    private void walkLoop(LogicalPlan plan) {
        LogicalPlan anchor = (LogicalPlan) Reflect.get(plan, "anchor");
        LogicalPlan recursion = (LogicalPlan) Reflect.get(plan, "recursion");
        walk(anchor);
        ctes.put(Reflect.get(plan, "id"), anchor.output());
        bind(plan.output(), anchor.output());
        walk(recursion);
        ArrayList rows = new ArrayList();
        rows.add(anchor.output());
        rows.add(recursion.output());
        alternatives(plan.output(), rows);
    }

    private void union(LogicalPlan plan) {
        ArrayList rows = new ArrayList();
        for (Iterator each = Reflect.list(plan.children()).iterator(); each.hasNext();) {
            rows.add(((LogicalPlan) each.next()).output());
        }
        alternatives(plan.output(), rows);
    }

    /** Each column comes from the expressions at its place in several rows. */
    private void alternatives(Object output, List rows) {
        List attributes = Reflect.list(output);
        Inputs[] sums = new Inputs[attributes.size()];
        for (Iterator each = rows.iterator(); each.hasNext();) {
            List row = Reflect.list(each.next());
            for (int i = 0; i < sums.length && i < row.size(); i++) {
                Inputs from = eval((Expression) row.get(i));
                sums[i] = sums[i] == null ? from : sums[i].plus(from);
            }
        }
        for (int i = 0; i < sums.length; i++) {
            put((Attribute) attributes.get(i), sums[i] == null ? Inputs.NONE : sums[i]);
        }
    }

    /** What MERGE makes of matching rows: one list of expressions for each of its clauses. */
    private void mergeRows(LogicalPlan plan) {
        ArrayList rows = new ArrayList();
        String[] clauses = {"matchedInstructions", "notMatchedInstructions", "notMatchedBySourceInstructions"};
        for (int i = 0; i < clauses.length; i++) {
            for (Iterator each = Reflect.list(Reflect.get(plan, clauses[i])).iterator(); each.hasNext();) {
                Object instruction = each.next();
                influence(Reflect.get(instruction, "condition"), Inputs.FILTER);
                rows.addAll(Reflect.list(Reflect.get(instruction, "outputs")));
            }
        }
        alternatives(plan.output(), rows);
    }

    /** Gives columns that a node makes in a way that is not known here all that it refers to. */
    private void define(LogicalPlan plan) {
        Inputs from = null;
        for (Iterator each = Reflect.list(plan.output()).iterator(); each.hasNext();) {
            Attribute attribute = (Attribute) each.next();
            if (!has(attribute)) {
                from = from == null ? everything(plan) : from;
                put(attribute, from);
            }
        }
    }

    private Inputs everything(LogicalPlan plan) {
        Inputs sum = Inputs.NONE;
        for (Iterator each = Reflect.list(plan.expressions()).iterator(); each.hasNext();) {
            sum = sum.plus(eval((Expression) each.next()));
        }
        if (sum.size() == 0) {
            for (Iterator each = Reflect.list(plan.children()).iterator(); each.hasNext();) {
                sum = sum.plus(evalAll(((LogicalPlan) each.next()).output()));
            }
        }
        return sum.after(Inputs.TRANSFORMATION);
    }

    private void walkAll(Object plans) {
        for (Iterator each = Reflect.list(plans).iterator(); each.hasNext();) {
            walk((LogicalPlan) each.next());
        }
    }

    private void bind(Object to, Object from) {
        List names = Reflect.list(to);
        List given = Reflect.list(from);
        for (int i = 0; i < names.size(); i++) {
            Attribute attribute = (Attribute) names.get(i);
            put(attribute, i < given.size() ? of((Attribute) given.get(i)) : Inputs.NONE);
        }
    }

    private void putAll(Object output, Inputs from) {
        for (Iterator each = Reflect.list(output).iterator(); each.hasNext();) {
            put((Attribute) each.next(), from);
        }
    }

    // -- expressions -------------------------------------------------------------------------------------------

    private void defineAll(Object expressions) {
        for (Iterator each = Reflect.list(expressions).iterator(); each.hasNext();) {
            Expression expression = (Expression) each.next();
            if (!(expression instanceof Attribute) && expression instanceof NamedExpression) {
                Expression value = updating ? updated(expression) : expression;
                inputs.put(Long.valueOf(((NamedExpression) expression).exprId().id()), eval(value));
            }
        }
    }

    /** Where UPDATE writes whole files anew, a row that is not updated keeps its values: that is no update. */
    private Expression updated(Expression expression) {
        Expression choice = expression instanceof Alias ? ((Alias) expression).child() : expression;
        if (choice instanceof If && ((If) choice).falseValue() instanceof Attribute) {
            influence(((If) choice).predicate(), Inputs.FILTER);
            return ((If) choice).trueValue();
        }
        return expression;
    }

    public void updating(boolean is) {
        updating = is;
    }

    /** Returns the value of a column that is the same for all rows; null where it is none. */
    static Object constant(LogicalPlan plan, String column) {
        Object wanted = null;
        for (Iterator each = Reflect.list(plan.output()).iterator(); each.hasNext();) {
            Attribute attribute = (Attribute) each.next();
            wanted = attribute.name().equals(column) ? attribute.exprId() : wanted;
        }
        while (wanted != null && plan.children().size() == 1) {
            for (Iterator each = Reflect.list(Reflect.get(plan, "projectList")).iterator(); each.hasNext();) {
                Object item = each.next();
                if (item instanceof Alias && ((Alias) item).exprId().equals(wanted)) {
                    Expression value = ((Alias) item).child();
                    if (value instanceof Literal) {
                        return ((Literal) value).value();
                    }
                    wanted = value instanceof Attribute ? ((Attribute) value).exprId() : null;
                    break;
                }
            }
            plan = (LogicalPlan) plan.children().head();
        }
        return null;
    }

    /** Takes that rows are there, or where they are, because of an expression or of several. */
    void influence(Object expressions, int kind) {
        // Of a subquery in them, this adds to the same sum.
        Inputs from = expressions instanceof Expression ? eval((Expression) expressions) : evalAll(expressions);
        indirect = indirect.plus(from.after(kind));
    }

    public Inputs evalAll(Object expressions) {
        ArrayList list = Reflect.list(expressions);
        Inputs sum = Inputs.NONE;
        for (int i = 0; i < list.size(); i++) {
            sum = sum.plus(eval((Expression) list.get(i)));
        }
        return sum;
    }

    /** Returns what an expression is computed from. */
    public Inputs eval(Expression expression) {
        if (expression == null || checkTime()) {
            return Inputs.NONE;
        }
        if (expression instanceof Attribute) {
            return of((Attribute) expression);
        }
        if (expression instanceof Alias) {
            return eval(((Alias) expression).child());
        }
        if (expression instanceof SubqueryExpression) {
            return subquery((SubqueryExpression) expression);
        }
        if (expression instanceof WindowExpression) {
            WindowExpression window = (WindowExpression) expression;
            return eval(window.windowFunction()).after(Inputs.TRANSFORMATION)
                .plus(evalAll(window.windowSpec().children()).after(Inputs.WINDOW));
        }
        if (expression instanceof If) {
            If choice = (If) expression;
            if (choice.trueValue().semanticEquals(choice.falseValue())) {
                return eval(choice.trueValue());
            }
            return eval(choice.predicate()).after(Inputs.CONDITIONAL)
                .plus(eval(choice.trueValue()).plus(eval(choice.falseValue())).after(Inputs.TRANSFORMATION));
        }
        if (expression instanceof CaseWhen) {
            return caseWhen((CaseWhen) expression);
        }
        String name = Reflect.simpleName(expression.getClass());
        if (name.equals("OuterReference") || name.endsWith("Cast") && isSameType(expression)) {
            return evalAll(expression.children());
        }
        int step = expression instanceof AggregateExpression ? Inputs.AGGREGATION : Inputs.TRANSFORMATION;
        if (MASKING.indexOf(" " + name + " ") >= 0) {
            step |= Inputs.MASKING;
        }
        return evalAll(expression.children()).after(step);
    }

    private static boolean isSameType(Expression cast) {
        return cast.dataType().equals(((Expression) cast.children().head()).dataType());
    }

    private Inputs caseWhen(CaseWhen expression) {
        Inputs sum = Inputs.NONE;
        for (Iterator each = Reflect.list(expression.branches()).iterator(); each.hasNext();) {
            scala.Tuple2 branch = (scala.Tuple2) each.next();
            sum = sum.plus(eval((Expression) branch._1()).after(Inputs.CONDITIONAL));
            sum = sum.plus(eval((Expression) branch._2()).after(Inputs.TRANSFORMATION));
        }
        if (expression.elseValue().isDefined()) {
            sum = sum.plus(eval((Expression) expression.elseValue().get()).after(Inputs.TRANSFORMATION));
        }
        return sum;
    }

    /** A subquery's own filters and joins influence the whole; its columns, and what it is compared with, the value. */
    private Inputs subquery(SubqueryExpression subquery) {
        LogicalPlan plan = (LogicalPlan) subquery.plan();
        walk(plan);
        Inputs outer = evalAll(subquery.children()).after(Inputs.CONDITIONAL);
        boolean exists = Reflect.isA(subquery, "Exists");
        return exists ? outer : outer.plus(evalAll(plan.output()).after(Inputs.TRANSFORMATION));
    }

    // ----------------------------------------------------------------------------------------------------------

    private boolean checkTime() {
        if (!outOfTime && ++steps % LOOK_AT_CLOCK_EVERY == 0 && System.nanoTime() > deadlineNs) {
            outOfTime = true;
            incomplete("the plan took longer than spark.events.lineage.budget");
        }
        return outOfTime;
    }
}
