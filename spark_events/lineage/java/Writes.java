package io.sparkevents.lineage;

import io.sparkevents.jvm.Identities;
import io.sparkevents.jvm.Reflect;
import java.io.IOException;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Finds the nodes of a statement's plan that write, and adds a sink for each. */
class Writes {
    private static final Attribute[] NO_COLUMNS = new Attribute[0];
    private final Identities identities;
    private final PlanWalker walker;
    private final Sinks sinks;
    private final IdentityHashMap newTables = new IdentityHashMap();

    Writes(Identities identities, PlanWalker walker, Sinks sinks) {
        this.identities = identities;
        this.walker = walker;
        this.sinks = sinks;
    }

    /** Reads all nodes of a plan that write; none lies below another. */
    void readAll(LogicalPlan node) throws IOException {
        if (read(node)) {
            return;
        }
        LogicalPlan[] children = Trees.children(node);
        for (int i = 0; i < children.length; i++) {
            Inputs before = walker.facts.takeIndirect();
            int first = sinks.all().size();
            readAll(children[i]);
            if (children.length > 1) {  // of the tables that one statement fills, each has conditions of its own
                sinks.decide(first, walker.facts.indirect());
            }
            walker.facts.addIndirect(before);
        }
    }

    /** Reads a node that writes; tells whether it is one. */
    private boolean read(LogicalPlan node) throws IOException {
        String name = Reflect.simpleName(node.getClass());
        Object query = Reflect.get(node, "query");
        Object table = Reflect.get(node, "table");
        if (name.equals("ReplaceData") || name.equals("WriteDelta")) {
            readChangedRows(node, (LogicalPlan) query);
        } else if (name.equals("CreateTableAsSelect") || name.equals("ReplaceTableAsSelect")) {
            readNewTable(node, (LogicalPlan) query, name.startsWith("Create"));
        } else if (query instanceof LogicalPlan && table instanceof LogicalPlan) {
            String modify = modify(name.startsWith("Overwrite"));
            addQuery((LogicalPlan) query, ofTable((LogicalPlan) table), modify, table);
        } else if (query instanceof LogicalPlan && Reflect.isA(node, "Command")) {
            readCommand(node, name, (LogicalPlan) query);
        } else if (name.equals("LoadDataCommand")) {
            readLoad(node);
        } else {
            return new RowChanges(this, walker, sinks).read(node, name);
        }
        return true;
    }

    /** UPDATE, DELETE or MERGE that Spark itself turns into a query over the table's rows. */
    private void readChangedRows(LogicalPlan node, LogicalPlan query) {
        String command = Reflect.text(Reflect.path(node, "table.table.operation.command"));
        walker.operators.keepingRows = "UPDATE".equals(command);
        walker.walk(query);
        walker.expressions.influence(Reflect.get(node, "condition"), Inputs.FILTER);
        LogicalPlan table = (LogicalPlan) Reflect.get(node, "originalTable");
        Attribute[] written = ofNames(Trees.output(query), Trees.names(Trees.output(table)));
        Map sink = sinks.add(ofTable(table), command == null ? "MERGE" : command, written, null);
        sink.put("rowLevel", true);
    }

    /** Returns columns of a table: such a query has others, which say what is done to a row, and where it is. */
    private static Attribute[] ofNames(Attribute[] output, List names) {
        ArrayList own = new ArrayList();
        for (int i = 0; i < output.length; i++) {
            if (names.contains(output[i].name())) {
                own.add(output[i]);
            }
        }
        return (Attribute[]) own.toArray(new Attribute[0]);
    }

    private void readNewTable(LogicalPlan node, LogicalPlan query, boolean creates) {
        Object catalog = Reflect.path(node, "name.catalog");
        Object identifier = Reflect.path(node, "name.identifier");
        Object replaced = creates ? null : Identities.load(catalog, identifier);
        LinkedHashMap identity =
            identities.ofIdentifier(catalog, identifier, replaced, Reflect.get(node, "tableSpec"));
        Map sink = addQuery(query, identity, creates ? "CTAS" : "OVERWRITE", null);
        newTables.put(sink, Reflect.get(node, "name"));
    }

    /** A command of Spark's first data source interface. */
    private void readCommand(LogicalPlan node, String name, LogicalPlan query) throws IOException {
        String mode = String.valueOf(Reflect.get(node, "mode"));
        boolean overwrites = mode.equals("Overwrite") || Boolean.TRUE.equals(Reflect.get(node, "overwrite"));
        boolean creates = name.startsWith("Create") || name.startsWith("SaveAs");
        String modify = creates && !overwrites && !mode.equals("Append") ? "CTAS" : modify(overwrites);
        LinkedHashMap target = target(node, name);
        addTopic(target, query);
        addQuery(query, target, modify, Reflect.get(node, "outputColumnNames"));
    }

    private LinkedHashMap target(LogicalPlan node, String name) throws IOException {
        Object table = Reflect.first(node, "table|tableDesc|catalogTable");
        Object relation = Reflect.get(node, "logicalRelation");
        Object location = Reflect.path(node, "storage.locationUri");
        if (name.equals("InsertIntoHadoopFsRelationCommand")) {
            LinkedHashMap files = table == null
                ? identities.ofPath(Reflect.get(node, "outputPath"), null) : identities.ofCatalogTable(table);
            files.put("format", Reflect.text(Reflect.path(node, "fileFormat.shortName")));
            return files;
        }
        if (table != null) {
            return identities.ofCatalogTable(table);
        }
        if (relation != null) {
            return identities.ofSource(relation);
        }
        if (location != null) {
            Object folder = isLocal(node) ? local(String.valueOf(location)) : location;
            return identities.ofPath(folder, Identities.provider(node));
        }
        Object source = Reflect.get(node, "dataSource");
        String format = Identities.nameOr(Reflect.get(source, "shortName"), source);
        return identities.ofOptions(format, Reflect.get(node, "options"));
    }

    private void readLoad(LogicalPlan node) throws IOException {
        Object catalog = Reflect.path(identities.session(), "sessionState.catalog");
        Object table = Reflect.call(catalog, "getTableMetadata", Reflect.get(node, "table"));
        LinkedHashMap identity = identities.ofCatalogTable(table);
        walker.facts.addSource(identities.ofPath(loaded(node), null), NO_COLUMNS, false);
        sinks.add(identity, modify(Boolean.TRUE.equals(Reflect.get(node, "isOverwrite"))), NO_COLUMNS, null);
    }

    /** Returns what LOAD DATA reads; as Hive does, Spark takes it from the user's folder where it is not LOCAL. */
    private Path loaded(LogicalPlan node) throws IOException {
        String path = Reflect.text(Reflect.get(node, "path"));
        if (isLocal(node)) {
            return local(path);
        }
        Path home = new Path("/user/" + System.getProperty("user.name"));
        return new Path(path).makeQualified(FileSystem.getDefaultUri(identities.hadoopConf()), home);
    }

    private Path local(String path) throws IOException {
        return FileSystem.getLocal(identities.hadoopConf()).makeQualified(new Path(path));
    }

    private static boolean isLocal(LogicalPlan node) {
        return Boolean.TRUE.equals(Reflect.get(node, "isLocal"));
    }

    private static String modify(boolean overwrites) {
        return overwrites ? "OVERWRITE" : "INSERT";
    }

    private Map addQuery(LogicalPlan query, LinkedHashMap identity, String modify, Object names) {
        walker.walk(query);
        return sinks.add(identity, modify, Trees.output(query), names);
    }

    /** Identifies the table that a command refers to by a plan, perhaps under an alias. */
    LinkedHashMap ofTable(LogicalPlan table) {
        while (table.children().size() == 1) {
            table = (LogicalPlan) table.children().head();
        }
        LinkedHashMap identity = identities.ofSource(table);
        return identity == null ? new LinkedHashMap() : identity;
    }

    /** Kafka's topic may be given in a column; it is known if the column is constant. */
    static void addTopic(LinkedHashMap sink, LogicalPlan query) {
        if (String.valueOf(sink.get("format")).toLowerCase().indexOf("kafka") >= 0) {
            Object topic = ConstantColumn.value(query, "topic");
            if (topic != null) {
                sink.put("topics", new Object[] {String.valueOf(topic)});
            }
        }
    }

    /** Asks the catalog again for tables that were not there when the statement began; tells whether any is now. */
    boolean locateNewTables() {
        boolean changed = false;
        List all = sinks.all();
        for (int i = 0; i < all.size(); i++) {
            Map sink = (Map) all.get(i);
            if (((Map) sink.get("identity")).get("provisional") != null) {
                LinkedHashMap located = located(newTables.get(sink));
                if (located != null) {
                    sink.put("identity", located);
                    changed = true;
                }
            }
        }
        return changed;
    }

    /** Once Spark has stopped, Delta's catalog fails, but the entry of Spark's own catalog still says the place. */
    private LinkedHashMap located(Object name) {
        Object catalog = Reflect.get(name, "catalog");
        Object identifier = Reflect.get(name, "identifier");
        Object table = Identities.load(catalog, identifier);
        if (table != null) {
            return identities.ofIdentifier(catalog, identifier, table, null);
        }
        TableState entry = new TableStates(identities).reloaded(name);
        return entry == null ? null : entry.identity;
    }
}
