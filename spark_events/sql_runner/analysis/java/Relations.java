package io.sparkevents.sqlrunner;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Products;
import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * The relations that a parsed query names: says which they are, and makes streams of some. As a partial function it
 * is what Spark's plans take to change themselves by.
 */
public final class Relations extends AbstractPartialFunction {
    private final Map streams;
    private final LinkedHashSet batches = new LinkedHashSet();
    private final LinkedHashSet declared = new LinkedHashSet();
    private final ArrayList places = new ArrayList();

    /**
     * By the names of relations to read as streams, as lists of their parts, the plan that takes the place of each, or
     * null where the relation itself does; none for one that only looks.
     */
    public Relations(Map streams) {
        this.streams = streams;
    }

    /** Returns the plan with streams in place of the relations that were asked for. */
    public Object apply(Object plan) {
        try {
            return Calls.call(plan, "transformDownWithSubqueries", new Object[] {this});
        } catch (RuntimeException error) {
            throw error;
        } catch (Throwable error) {
            throw new IllegalStateException(error);
        }
    }

    /** The names that are read as tables. */
    public List batches() {
        return new ArrayList(batches);
    }

    /** The names that the query itself reads as streams, with STREAM. */
    public List declared() {
        return new ArrayList(declared);
    }

    /** Where the relations stand in the text, each as its name and its first character, from 0. */
    public List places() {
        return places;
    }

    public boolean isDefinedAt(Object node) {
        return Reflect.isA(node, "UnresolvedRelation") || Reflect.isA(node, "UnresolvedWith");
    }

    public Object applyOrElse(Object node, Function1 otherwise) {
        try {
            if (Reflect.isA(node, "UnresolvedWith")) {
                return ofWith(node);
            }
            return Reflect.isA(node, "UnresolvedRelation") ? ofRelation(node) : otherwise.apply(node);
        } catch (RuntimeException error) {
            throw error;
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private Object ofRelation(Object relation) throws Exception {
        List name = Reflect.list(Reflect.get(relation, "multipartIdentifier"));
        if (Boolean.TRUE.equals(Reflect.get(relation, "isStreaming"))) {
            declared.add(name);
            return relation;
        }
        batches.add(name);
        ArrayList place = new ArrayList();
        place.add(name);
        place.add(Reflect.path(relation, "origin.startIndex"));
        places.add(place);
        if (!streams.containsKey(name)) {
            return relation;
        }
        if (streams.get(name) != null) {
            return streams.get(name);
        }
        HashMap changes = new HashMap();
        changes.put("isStreaming", Boolean.TRUE);
        return Products.copy(relation, changes);
    }

    /** The queries of a WITH are no children of its plan. */
    private Object ofWith(Object with) throws Exception {
        ArrayList changed = new ArrayList();
        List named = Reflect.list(Reflect.get(with, "cteRelations"));
        for (int i = 0; i < named.size(); i++) {
            scala.Product pair = (scala.Product) named.get(i);
            Object[] parts = new Object[pair.productArity()];
            for (int j = 0; j < parts.length; j++) {
                parts[j] = j == 1 ? apply(pair.productElement(j)) : pair.productElement(j);
            }
            changed.add(pair.getClass().getConstructors()[0].newInstance(parts));
        }
        HashMap changes = new HashMap();
        changes.put("cteRelations", Calls.seq(changed));
        return Products.copy(with, changes);
    }
}
