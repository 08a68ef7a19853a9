package io.sparkevents.lineage;

import io.sparkevents.jvm.Identities;
import io.sparkevents.jvm.Reflect;
import java.util.Arrays;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
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

    /** The anchor's columns are those that the recursion reads, and both are those of the whole. */
    private void walkLoop(LogicalPlan loop) {
        LogicalPlan anchor = (LogicalPlan) Reflect.get(loop, "anchor");
        LogicalPlan recursion = (LogicalPlan) Reflect.get(loop, "recursion");
        walk(anchor);
        outputsById.put(Reflect.get(loop, "id"), anchor.output());
        facts.copy(Trees.output(anchor), Trees.output(loop));
        walk(recursion);
        operators.combineByPlace(loop.output(), Arrays.asList(anchor.output(), recursion.output()));
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
        }
    }

    /** Tells whether a leaf has rows that a program made, by pandas, say; those of VALUES are in the SQL text. */
    private static boolean isOfProgram(LogicalPlan leaf) {
        return Reflect.isA(leaf, "LocalRelation") && !Reflect.list(Reflect.get(leaf, "data")).isEmpty()
            && Reflect.get(leaf.origin(), "sqlText") == null;
    }
}
