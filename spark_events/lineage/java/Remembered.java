package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Where columns came from whose plan was cut: by checkpoint, after which they keep their expression ids, or by
 * foreachBatch, after which they keep their names.
 */
public class Remembered {
    private static final int MOST = 20000;
    private final LinkedHashMap columns = new LinkedHashMap();
    private List batchNames = null;
    private List batchColumns = null;

    /** Keeps what a plan's columns are computed from. */
    public void remember(PlanWalker walker, Object output) {
        for (Iterator each = Reflect.list(output).iterator(); each.hasNext();) {
            Attribute attribute = (Attribute) each.next();
            if (walker.of(attribute).size() > 0) {
                columns.put(Long.valueOf(attribute.exprId().id()), entry(walker, attribute));
            }
        }
        for (Iterator eldest = columns.keySet().iterator(); columns.size() > MOST && eldest.hasNext();) {
            eldest.next();
            eldest.remove();
        }
    }

    /** Returns what the columns of a streaming query's batches are computed from, in their order. */
    public static List[] batch(PlanWalker walker, Object output) {
        ArrayList names = new ArrayList();
        ArrayList entries = new ArrayList();
        for (Iterator each = Reflect.list(output).iterator(); each.hasNext();) {
            Attribute attribute = (Attribute) each.next();
            names.add(attribute.name());
            entries.add(entry(walker, attribute));
        }
        return new List[] {names, entries};
    }

    /** Until it is called again, takes a plan that was cut, and has columns of these names, for such a batch. */
    public void inBatch(List[] batch) {
        batchNames = batch == null ? null : batch[0];
        batchColumns = batch == null ? null : batch[1];
    }

    /** Gives a leaf without a source the columns that are known of it. */
    public void restore(PlanWalker walker, LogicalPlan leaf) {
        List output = Reflect.list(leaf.output());
        boolean isBatch = batchNames != null && Reflect.isA(leaf, "LogicalRDD") && names(output).equals(batchNames);
        IdentityHashMap numbers = new IdentityHashMap();
        for (int i = 0; i < output.size(); i++) {
            Attribute attribute = (Attribute) output.get(i);
            Object entry = isBatch ? batchColumns.get(i) : columns.get(Long.valueOf(attribute.exprId().id()));
            walker.put(attribute, entry == null ? Inputs.NONE : restored(walker, (Object[]) entry, numbers));
        }
        if (isBatch) {
            restoreSources(walker, numbers);
        }
    }

    /** A batch that takes no column of a source comes from it nevertheless. */
    private void restoreSources(PlanWalker walker, Map numbers) {
        for (Iterator each = batchColumns.iterator(); each.hasNext();) {
            List sources = (List) ((Object[]) each.next())[0];
            for (Iterator source = sources.iterator(); source.hasNext();) {
                number(walker, (LinkedHashMap) source.next(), numbers);
            }
        }
    }

    private static Inputs restored(PlanWalker walker, Object[] entry, Map numbers) {
        List sources = (List) entry[0];
        List known = (List) entry[1];
        Inputs sum = Inputs.NONE;
        for (Iterator each = ((Inputs) entry[2]).kinds().entrySet().iterator(); each.hasNext();) {
            Map.Entry input = (Map.Entry) each.next();
            List column = (List) known.get(((Integer) input.getKey()).intValue());
            LinkedHashMap source = (LinkedHashMap) sources.get(((Integer) column.get(0)).intValue());
            int number = number(walker, source, numbers);
            Integer now = (Integer) numbers.get(column);
            if (now == null) {
                now = Integer.valueOf(walker.addColumn(number, (String) column.get(1), (String) column.get(2)));
                numbers.put(column, now);
            }
            sum = sum.plus(Inputs.of(now.intValue(), ((Integer) input.getValue()).intValue()));
        }
        return sum;
    }

    private static int number(PlanWalker walker, LinkedHashMap source, Map numbers) {
        Integer number = (Integer) numbers.get(source);
        if (number == null) {
            number = Integer.valueOf(walker.addSource(
                (LinkedHashMap) source.get("identity"), null, ((Boolean) source.get("streaming")).booleanValue()));
            numbers.put(source, number);
        }
        return number.intValue();
    }

    private static Object[] entry(PlanWalker walker, Attribute attribute) {
        return new Object[] {walker.sources(), walker.columns(), walker.of(attribute)};
    }

    private static List names(List output) {
        ArrayList names = new ArrayList();
        for (Iterator each = output.iterator(); each.hasNext();) {
            names.add(((Attribute) each.next()).name());
        }
        return names;
    }
}
