package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.LogicalRDD;

/**
 * The origins of columns whose plan was cut: by checkpoint, after which they keep their expression ids, or by
 * foreachBatch, after which they keep their names, and their ids only until the batch is joined with itself.
 */
public class Remembered {
    private static final int MOST_COLUMNS = 20000;
    private static final int MOST_RDDS = 1000;
    private final LinkedHashMap originsById = new LinkedHashMap();
    /** Of RDDs that cut plans read, by their ids: where a plan reads one twice, its columns have other ids there. */
    private final LinkedHashMap originsByRdd = new LinkedHashMap();
    private Batch batch = null;

    /** What a column was computed from, in the facts of the plan that was read then. */
    private static final class Origin {
        final List sources;
        final List columns;
        final Inputs inputs;
        /** What decided which rows there were. */
        final Inputs indirect;

        Origin(PlanFacts facts, Attribute attribute) {
            this.sources = facts.sources();
            this.columns = facts.columns();
            this.inputs = facts.of(attribute);
            this.indirect = facts.indirect();
        }
    }

    /** What the columns of a streaming query's batches are computed from, in their order. */
    static final class Batch {
        final List names;
        final List ids;
        final ArrayList origins = new ArrayList();
        final List sources;

        Batch(PlanFacts facts, Attribute[] output) {
            this.names = Trees.names(output);
            this.ids = ids(output);
            this.sources = facts.sources();
            for (int i = 0; i < output.length; i++) {
                origins.add(new Origin(facts, output[i]));
            }
        }

        /** Tells whether a plan reads a batch: an RDD that has its columns, by their expression ids. */
        boolean isReadBy(LogicalPlan plan) {
            ArrayList waiting = new ArrayList(Arrays.asList(new Object[] {plan}));
            while (!waiting.isEmpty()) {
                LogicalPlan node = (LogicalPlan) waiting.remove(waiting.size() - 1);
                waiting.addAll(Arrays.asList(Trees.children(node)));
                List inner = Reflect.list(node.innerChildren());
                for (int i = 0; i < inner.size(); i++) {
                    if (inner.get(i) instanceof LogicalPlan) {
                        waiting.add(inner.get(i));
                    }
                }
                if (node instanceof LogicalRDD && ids.equals(ids(Trees.output(node)))) {
                    return true;
                }
            }
            return false;
        }

        /** Replaces the files of a batch, which its RDDs read, by the query's sources; those are all if none is known. */
        void nameSources(List read) {
            if (read.isEmpty()) {
                read.addAll(sources);
            }
            for (int i = 0; i < read.size(); i++) {
                for (int j = 0; j < sources.size(); j++) {
                    if (isBelow(paths(read.get(i)), paths(sources.get(j)))) {
                        read.set(i, sources.get(j));
                    }
                }
            }
        }

        private static List paths(Object source) {
            Map identity = (Map) ((Map) source).get("identity");
            Object option = Reflect.map(identity.get("options")).get("path");
            List paths = Reflect.list(identity.get("paths"));
            return paths.isEmpty() && option != null ? Arrays.asList(option) : paths;
        }

        private static boolean isBelow(List files, List folders) {
            for (int i = 0; i < files.size(); i++) {
                for (int j = 0; j < folders.size(); j++) {
                    if (place(files.get(i)).startsWith(place(folders.get(j)))) {
                        return true;
                    }
                }
            }
            return false;
        }

        /** Returns a path without its scheme, which the program may have left out. */
        private static String place(Object path) {
            return new Path(String.valueOf(path)).toUri().getPath();
        }
    }

    /** Keeps what a plan's columns are computed from. */
    public void remember(PlanFacts facts, Attribute[] output) {
        for (int i = 0; i < output.length; i++) {
            if (facts.of(output[i]).size() > 0) {
                originsById.put(output[i].exprId().id(), new Origin(facts, output[i]));
            }
        }
        dropEldest(originsById, MOST_COLUMNS);
    }

    /** Sets the batch that a cut plan with the batch's columns is assumed to read; null for none. */
    void inBatch(Batch batch) {
        this.batch = batch;
    }

    /** Gives a leaf without a source the columns that are known of it; tells whether any is. */
    public boolean restore(PlanFacts facts, LogicalPlan leaf) {
        Attribute[] output = Trees.output(leaf);
        boolean isBatch = isBatch(leaf, output);
        List origins = isBatch ? batch.origins : originsOf(leaf, output);
        boolean isKnown = isBatch;
        IdentityHashMap numbers = new IdentityHashMap();
        for (int i = 0; i < output.length; i++) {
            Origin origin = (Origin) origins.get(i);
            isKnown = isKnown || origin != null;
            facts.put(output[i], origin == null ? Inputs.NONE : restored(facts, origin, origin.inputs, numbers));
            if (origin != null && numbers.put(origin.columns, Boolean.TRUE) == null) {
                facts.addIndirect(restored(facts, origin, origin.indirect, numbers));
            }
        }
        if (isBatch) {
            // A batch depends on a source even if it uses none of its columns.
            addSources(facts, numbers);
        }
        return isKnown;
    }

    /** Returns the origin of each column of a leaf, as far as they are known: by its id, or by its place in the RDD. */
    private List originsOf(LogicalPlan leaf, Attribute[] output) {
        ArrayList origins = new ArrayList();
        boolean isKnown = false;
        for (int i = 0; i < output.length; i++) {
            origins.add(originsById.get(output[i].exprId().id()));
            isKnown = isKnown || origins.get(i) != null;
        }
        Object rdd = leaf instanceof LogicalRDD ? Reflect.path(leaf, "rdd.id") : null;
        if (rdd == null) {
            return origins;
        }
        if (isKnown) {
            originsByRdd.put(rdd, origins);
            dropEldest(originsByRdd, MOST_RDDS);
            return origins;
        }
        List ofRdd = (List) originsByRdd.get(rdd);
        return ofRdd != null && ofRdd.size() == output.length ? ofRdd : origins;
    }

    private static void dropEldest(LinkedHashMap map, int most) {
        Iterator eldest = map.keySet().iterator();
        while (map.size() > most) {
            eldest.next();
            eldest.remove();
        }
    }

    /** Tells whether a leaf is the batch, and no DataFrame of another origin that has columns of the same names. */
    private boolean isBatch(LogicalPlan leaf, Attribute[] output) {
        // An RDD, or data of the program's own, has no plan that statistics would come from.
        if (batch == null || Reflect.field(leaf, "originStats") == null || !Trees.names(output).equals(batch.names)) {
            return false;
        }
        List ids = ids(output);
        for (int i = 0; i < ids.size(); i++) {
            if (originsById.containsKey(ids.get(i)) && !ids.equals(batch.ids)) {
                return false;
            }
        }
        return true;
    }

    private static List ids(Attribute[] output) {
        ArrayList ids = new ArrayList();
        for (int i = 0; i < output.length; i++) {
            ids.add(output[i].exprId().id());
        }
        return ids;
    }

    /** Tells of sources without a name whose rows a batch's function made, of RDDs or by itself: of the batch. */
    void nameSources(PlanFacts facts, int before) {
        if (batch != null) {
            batch.nameSources(facts.sources().subList(before, facts.sources().size()));
        }
    }

    private void addSources(PlanFacts facts, Map numbers) {
        for (int i = 0; i < batch.sources.size(); i++) {
            sourceNumber(facts, (LinkedHashMap) batch.sources.get(i), numbers);
        }
    }

    /** Returns inputs of an origin in new facts; the numbers are those that its sources and columns have there. */
    private static Inputs restored(PlanFacts facts, Origin origin, Inputs inputs, Map numbers) {
        Inputs sum = Inputs.NONE;
        for (Iterator entries = inputs.kinds().entrySet().iterator(); entries.hasNext();) {
            Map.Entry input = (Map.Entry) entries.next();
            List column = (List) origin.columns.get((Integer) input.getKey());
            int source = sourceNumber(facts, (LinkedHashMap) origin.sources.get((Integer) column.get(0)), numbers);
            Integer number = (Integer) numbers.get(column);
            if (number == null) {
                number = facts.addColumn(source, (String) column.get(1), (String) column.get(2));
                numbers.put(column, number);
            }
            sum = sum.plus(Inputs.of(number, (Integer) input.getValue()));
        }
        return sum;
    }

    private static int sourceNumber(PlanFacts facts, LinkedHashMap source, Map numbers) {
        Integer number = (Integer) numbers.get(source);
        if (number == null) {
            LinkedHashMap identity = (LinkedHashMap) source.get("identity");
            number = facts.addSource(identity, new Attribute[0], (Boolean) source.get("streaming"));
            numbers.put(source, number);
        }
        return number;
    }
}
