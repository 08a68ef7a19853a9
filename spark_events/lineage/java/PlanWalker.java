package io.sparkevents.lineage;

import io.sparkevents.jvm.Identities;
import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Walks an analyzed plan from its leaves to its root, and gathers its facts. */
public class PlanWalker {
    private static final String OF_SPARK = "org.apache.spark.sql.";
    final PlanFacts facts;
    final ExpressionReader expressions;
    final OperatorReader operators;
    private final Identities identities;
    private final Remembered remembered;
    private final IdentityHashMap walked = new IdentityHashMap();
    private final HashMap outputsById = new HashMap();

    public PlanWalker(Identities identities, Remembered remembered, long budgetMs) {
        this.identities = identities;
        this.remembered = remembered;
        this.facts = new PlanFacts(budgetMs);
        this.expressions = new ExpressionReader(facts, this);
        this.operators = new OperatorReader(facts, expressions);
    }

    /** Reads a plan; once, however often it is in the tree. What it decides counts wherever it is. */
    public void walk(LogicalPlan plan) {
        Inputs known = (Inputs) walked.get(plan);
        if (known == null) {
            walked.put(plan, Inputs.NONE);
            Inputs before = facts.takeIndirect();
            readAll(plan);
            known = facts.takeIndirect();
            walked.put(plan, known);
            facts.addIndirect(before);
        }
        facts.addIndirect(known);
    }

    private void readAll(LogicalPlan plan) {
        String name = Reflect.simpleName(plan.getClass());
        if (name.equals("WithCTE")) {
            walkAll(Trees.plans(Reflect.get(plan, "cteDefs")));
            walk((LogicalPlan) Reflect.get(plan, "plan"));
        } else if (name.equals("UnionLoop")) {
            walkLoop(plan);
        } else {
            walkAll(Trees.children(plan));
            read(plan, name);
        }
    }

    private void walkAll(LogicalPlan[] plans) {
        for (int i = 0; i < plans.length; i++) {
            walk(plans[i]);
        }
    }

    /**
     * Reads a recursion, whose columns are those of its anchor and of each turn. What a turn makes of the columns
     * of the turn before is the input of the next, so it is read until nothing new comes.
     */
    private void walkLoop(LogicalPlan loop) {
        LogicalPlan anchor = (LogicalPlan) Reflect.get(loop, "anchor");
        LogicalPlan recursion = (LogicalPlan) Reflect.get(loop, "recursion");
        walk(anchor);
        outputsById.put(Reflect.get(loop, "id"), loop.output());
        facts.copy(Trees.output(anchor), Trees.output(loop));
        IdentityHashMap walkedBefore = new IdentityHashMap(walked);
        Set idsBefore = facts.knownIds();
        List before;
        do {
            forgetOperators(walkedBefore, new HashSet(idsBefore));
            before = kindsOf(loop);
            walk(recursion);
            operators.combineByPlace(loop.output(), Arrays.asList(loop.output(), recursion.output()));
        } while (!before.equals(kindsOf(loop)) && !facts.isOutOfTime());
    }

    /** Forgets what has been walked since, and its columns, but for those that leaves read: they stay the same. */
    private void forgetOperators(Map walkedBefore, Set idsKept) {
        for (Iterator all = walked.keySet().iterator(); all.hasNext();) {
            LogicalPlan plan = (LogicalPlan) all.next();
            boolean refers = isReference(Reflect.simpleName(plan.getClass()));
            if (plan.children().isEmpty() && !refers) {
                Attribute[] output = Trees.output(plan);
                for (int i = 0; i < output.length; i++) {
                    idsKept.add(PlanFacts.id(output[i]));
                }
            } else if (!walkedBefore.containsKey(plan)) {
                all.remove();
            }
        }
        facts.keepOnly(idsKept);
    }

    private List kindsOf(LogicalPlan plan) {
        Attribute[] output = Trees.output(plan);
        ArrayList kinds = new ArrayList();
        for (int i = 0; i < output.length; i++) {
            kinds.add(facts.of(output[i]).kinds());
        }
        return kinds;
    }

    private void read(LogicalPlan plan, String name) {
        if (name.equals("CTERelationDef")) {
            outputsById.put(Reflect.get(plan, "id"), plan.output());
        } else if (name.equals("CTERelationRef")) {
            copyOutput(Reflect.get(plan, "cteId"), plan);
        } else if (name.equals("UnionLoopRef")) {
            copyOutput(Reflect.get(plan, "loopId"), plan);
        } else if (plan.children().isEmpty()) {
            readLeaf(plan);
        } else if (!facts.isOutOfTime()) {
            operators.read(plan, name);
        }
    }

    private static boolean isReference(String name) {
        return name.equals("CTERelationRef") || name.equals("UnionLoopRef");
    }

    private void copyOutput(Object id, LogicalPlan reference) {
        facts.copy(Trees.attributes(outputsById.get(id)), Trees.output(reference));
    }

    private void readLeaf(LogicalPlan leaf) {
        LinkedHashMap identity = identities.ofSource(leaf);
        if (identity == null) {
            if (!remembered.restore(facts, leaf)) {
                readRdd(leaf);
                sayUnknown(leaf, "reads");
            }
        } else if (identities.isQuery(identity)) {
            // Its columns are those of the query, and not those of the table.
            facts.addSource(identity, new Attribute[0], leaf.isStreaming());
            facts.copy(new Attribute[0], Trees.output(leaf));
            facts.setIncomplete("a query was sent to a database: which columns it reads is not known");
        } else {
            facts.addSource(identity, Trees.output(leaf), leaf.isStreaming());
        }
    }

    /** Says that what a node reads or writes is not known: Spark's own nodes without a source have none. */
    void sayUnknown(LogicalPlan node, String does) {
        String name = node.getClass().getName();
        if (!name.startsWith(OF_SPARK + "catalyst.") && !name.startsWith(OF_SPARK + "execution.")) {
            facts.setIncomplete("what " + name + " " + does + " is not known");
        }
    }

    /** Adds what the RDD reads that a DataFrame was made of: its columns are made by functions. */
    private void readRdd(LogicalPlan leaf) {
        Object rdd = Reflect.get(leaf, "rdd");
        int before = facts.sources().size();
        if (rdd != null) {
            new RddReader(facts, identities).read(rdd);
        }
        if (facts.sources().size() > before) {
            facts.setIncomplete("a DataFrame was made of an RDD: which columns that reads is not known");
            remembered.nameSources(facts, before);
        } else if (rdd != null && !Reflect.isA(rdd, "EmptyRDD") || isOfProgram(leaf)) {
            facts.setIncomplete("a DataFrame was made of the program's own data: where that is from is not known");
            remembered.nameSources(facts, before);
        } else if (Reflect.isA(leaf, "MemoryPlan")) {
            facts.setIncomplete("a streaming query keeps its rows in memory: where those are from is not known");
        }
    }

    /** Tells whether a leaf has rows that a program made, by pandas, say; those of VALUES are in the SQL text. */
    private static boolean isOfProgram(LogicalPlan leaf) {
        return Reflect.isA(leaf, "LocalRelation") && !Reflect.list(Reflect.get(leaf, "data")).isEmpty()
            && Reflect.get(leaf.origin(), "sqlText") == null;
    }
}
