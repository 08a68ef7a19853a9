package io.sparkevents.planned;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/** The names of tables and namespaces in a statement, as it was parsed, and the view that it creates or alters. */
public final class StatementNames {
    private static final int MOST_NODES = 100000;
    private static final List TABLES = Arrays.asList(
        "UnresolvedRelation", "UnresolvedIdentifier", "UnresolvedTable", "UnresolvedView", "UnresolvedTableOrView");
    private final ArrayList tables = new ArrayList();
    private final ArrayList namespaces = new ArrayList();
    private final ArrayList created = new ArrayList();
    private final ArrayList catalogs = new ArrayList();

    /** Returns what a parsed plan names, as JSON. */
    public String read(Object plan) throws Exception {
        ArrayList waiting = new ArrayList();
        waiting.add(plan);
        for (int i = 0; i < waiting.size() && i < MOST_NODES; i++) {
            Object node = waiting.get(i);
            if (node instanceof TreeNode) {
                readNode(node);
            }
            if (node instanceof scala.Product) {
                addElements((scala.Product) node, waiting);
            } else {
                waiting.addAll(Reflect.list(node));
            }
        }
        LinkedHashMap record = new LinkedHashMap();
        record.put("tables", tables);
        record.put("namespaces", namespaces);
        record.put("created", created);
        record.put("catalogs", catalogs);
        record.put("view", view(plan));
        record.put("dropped", Reflect.isA(plan, "DropView") ? name(Reflect.get(plan, "child")) : null);
        record.put("altered", altersView(plan) ? name(Reflect.get(plan, "child")) : null);
        return new ObjectMapper().writeValueAsString(record);
    }

    /** Tells whether a statement alters a view, other than by another query. */
    private static boolean altersView(Object plan) {
        return Reflect.isA(plan, "SetViewProperties") || Reflect.isA(plan, "UnsetViewProperties")
            || Reflect.isA(plan, "RenameTable") && Boolean.TRUE.equals(Reflect.get(plan, "isView"));
    }

    private static void addElements(scala.Product product, ArrayList elements) {
        for (int i = 0; i < product.productArity(); i++) {
            elements.add(product.productElement(i));
        }
    }

    private void readNode(Object node) {
        String kind = Reflect.simpleName(node.getClass());
        if (TABLES.contains(kind)) {
            tables.add(name(node));
        } else if (kind.equals("UnresolvedNamespace")) {
            namespaces.add(name(node));
        } else if (kind.equals("CreateNamespace")) {
            created.add(name(Reflect.get(node, "name")));
        } else if (kind.equals("SetCatalogCommand")) {
            catalogs.add(Reflect.text(Reflect.get(node, "catalogName")));
        }
    }

    private static ArrayList name(Object node) {
        return Reflect.list(Reflect.first(node, "multipartIdentifier|nameParts"));
    }

    private static LinkedHashMap view(Object plan) {
        boolean alters = Reflect.isA(plan, "AlterViewAs");
        if (!alters && !Reflect.isA(plan, "CreateView")) {
            return null;
        }
        ArrayList columns = new ArrayList();
        ArrayList given = Reflect.list(Reflect.get(plan, "userSpecifiedColumns"));
        for (int i = 0; i < given.size(); i++) {
            columns.add(((scala.Tuple2) given.get(i))._1());
        }
        LinkedHashMap view = new LinkedHashMap();
        view.put("name", name(Reflect.get(plan, "child")));
        view.put("columns", columns);
        view.put("query", Reflect.text(Reflect.get(plan, "originalText")));
        view.put("replaces", Boolean.valueOf(alters || Boolean.TRUE.equals(Reflect.get(plan, "replace"))));
        view.put("may_exist", Boolean.valueOf(Boolean.TRUE.equals(Reflect.get(plan, "allowExisting"))));
        view.put("must_exist", Boolean.valueOf(alters));
        return view;
    }
}
