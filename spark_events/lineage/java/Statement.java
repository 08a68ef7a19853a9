package io.sparkevents.lineage;

import io.sparkevents.jvm.Identities;
import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** One statement or streaming query: what it reads, what it writes, and which columns make which. */
public class Statement {
    private static final int MOST_INPUTS = 200000;
    private static final int MOST_NODES_FOR_TEXT = 50;
    final PlanWalker walker;
    final LogicalPlan plan;
    private final Identities identities;
    private final ArrayList sinks = new ArrayList();
    private final ArrayList groups = new ArrayList();
    private final IdentityHashMap groupNumbers = new IdentityHashMap();
    private final IdentityHashMap places = new IdentityHashMap();
    private final LinkedHashMap written = new LinkedHashMap();
    private int inputCount = 0;

    public Statement(LogicalPlan plan, Identities identities, Remembered remembered, long budgetMs) {
        this.plan = plan;
        this.identities = identities;
        this.walker = new PlanWalker(identities, remembered, budgetMs);
    }

    public boolean hasSinks() {
        return !sinks.isEmpty();
    }

    /** Takes what was written for it; a part of the statement may tell it before the whole. */
    public void wrote(LinkedHashMap amounts) {
        if (written.isEmpty()) {
            written.putAll(amounts);
        }
    }

    public LinkedHashMap written() {
        return written;
    }

    /** Returns the SQL text of the statement, or else of its query; null where it was given none. */
    public String sql() {
        ArrayList nodes = new ArrayList();
        nodes.add(plan);
        for (int i = 0; i < nodes.size() && i < MOST_NODES_FOR_TEXT; i++) {
            Object node = nodes.get(i);
            Object origin = Reflect.get(node, "origin");
            Object text = Reflect.get(origin, "sqlText");
            if (text != null && Reflect.get(origin, "objectType") == null) {
                return Reflect.text(text);
            }
            if (i == 0 && Reflect.get(node, "query") != null) {
                nodes.add(Reflect.get(node, "query"));
            }
            nodes.addAll(Reflect.list(Reflect.get(node, "children")));
        }
        return null;
    }

    /** Reads a statement's plan. */
    public void read() {
        find(plan);
        if (sinks.isEmpty()) {
            walker.walk(plan);
        }
    }

    /** Reads a streaming query, whose sink is not in its plan. */
    public void readStream(LinkedHashMap sink) {
        walker.walk(plan);
        addTopic(sink, plan);
        addSink(sink, "INSERT", plan.output(), null);
    }

    /** Returns all that was found, as JSON has it. */
    public LinkedHashMap record() {
        LinkedHashMap record = new LinkedHashMap();
        record.put("sources", walker.sources());
        record.put("columns", walker.columns());
        record.put("sinks", sinks);
        record.put("groups", groups);
        record.put("indirect", kinds(walker.indirect()));
        record.put("incomplete", walker.incomplete());
        return record;
    }

    /** Asks the catalog again for tables that were not there when the statement began; tells whether any is now. */
    public boolean locate() {
        boolean changed = false;
        for (Iterator each = sinks.iterator(); each.hasNext();) {
            Map sink = (Map) each.next();
            Map identity = (Map) sink.get("identity");
            if (identity.get("provisional") != null) {
                Object[] where = (Object[]) places.get(sink);
                Object table = Identities.load(where[0], where[1]);
                if (table != null) {
                    sink.put("identity", identities.ofIdentifier(where[0], where[1], table, null));
                    changed = true;
                }
            }
        }
        return changed;
    }

    // -- sinks -------------------------------------------------------------------------------------------------

    private void find(LogicalPlan node) {
        if (!write(node)) {
            for (Iterator each = Reflect.list(node.children()).iterator(); each.hasNext();) {
                find((LogicalPlan) each.next());
            }
        }
    }

    /** Reads a node that writes; tells whether it is one. */
    private boolean write(LogicalPlan node) {
        String name = Reflect.simpleName(node.getClass());
        Object query = Reflect.get(node, "query");
        if (name.equals("ReplaceData") || name.equals("WriteDelta")) {
            rowLevel(node, (LogicalPlan) query);
        } else if (name.equals("CreateTableAsSelect") || name.equals("ReplaceTableAsSelect")) {
            createTable(node, (LogicalPlan) query);
        } else if (query instanceof LogicalPlan && (Reflect.get(node, "table") instanceof LogicalPlan)) {
            LogicalPlan table = (LogicalPlan) Reflect.get(node, "table");
            query((LogicalPlan) query, ofTable(table), name.startsWith("Overwrite") ? "OVERWRITE" : "INSERT", table);
        } else if (query instanceof LogicalPlan && Reflect.isA(node, "Command")) {
            v1(node, name, (LogicalPlan) query);
        } else if (name.equals("LoadDataCommand")) {
            load(node);
        } else {
            return RowChanges.read(this, node, name);
        }
        return true;
    }

    private void v1(LogicalPlan node, String name, LogicalPlan query) {
        Object mode = Reflect.get(node, "mode");
        boolean overwrite = "Overwrite".equals(String.valueOf(mode))
            || Boolean.TRUE.equals(Reflect.get(node, "overwrite"));
        String modify = overwrite ? "OVERWRITE" : "INSERT";
        boolean creates = name.startsWith("Create") || name.startsWith("SaveAs");
        if (creates && !overwrite && !"Append".equals(String.valueOf(mode))) {
            modify = "CTAS";
        }
        LinkedHashMap target = target(node, name);
        addTopic(target, query);
        query(query, target, modify, Reflect.get(node, "outputColumnNames"));
    }

    private LinkedHashMap target(LogicalPlan node, String name) {
        Object table = Reflect.get(node, "table");
        table = table == null ? Reflect.get(node, "tableDesc") : table;
        table = table == null ? Reflect.get(node, "catalogTable") : table;
        if (name.equals("InsertIntoHadoopFsRelationCommand")) {
            LinkedHashMap found = table == null
                ? identities.ofPath(Reflect.get(node, "outputPath"), null) : identities.ofCatalogTable(table);
            found.put("format", Reflect.text(Reflect.path(node, "fileFormat.shortName")));
            return found;
        }
        if (table != null) {
            return identities.ofCatalogTable(table);
        }
        Object relation = Reflect.get(node, "logicalRelation");
        if (relation != null) {
            return identities.ofSource(relation);
        }
        Object location = Reflect.path(node, "storage.locationUri");
        if (location != null) {
            Object provider = Reflect.get(node, "provider");
            return identities.ofPath(location, provider == null ? "hive" : Reflect.text(provider));
        }
        Object source = Reflect.get(node, "dataSource");
        Object format = Reflect.get(source, "shortName");
        format = format == null && source != null ? source.getClass().getName() : format;
        return identities.ofOptions(Reflect.text(format), Reflect.get(node, "options"));
    }

    /** Kafka's topic may stand in a column; one that is the same for all rows is known. */
    static void addTopic(LinkedHashMap sink, LogicalPlan query) {
        if (String.valueOf(sink.get("format")).toLowerCase().indexOf("kafka") >= 0) {
            Object topic = PlanWalker.constant(query, "topic");
            if (topic != null) {
                sink.put("topics", new Object[] {String.valueOf(topic)});
            }
        }
    }

    private void createTable(LogicalPlan node, LogicalPlan query) {
        Object catalog = Reflect.path(node, "name.catalog");
        Object identifier = Reflect.path(node, "name.identifier");
        Object spec = Reflect.get(node, "tableSpec");
        boolean create = Reflect.simpleName(node.getClass()).startsWith("Create");
        Object now = create ? null : Identities.load(catalog, identifier);
        LinkedHashMap identity = identities.ofIdentifier(catalog, identifier, now, spec);
        Map sink = query(query, identity, create ? "CTAS" : "OVERWRITE", null);
        places.put(sink, new Object[] {catalog, identifier});
    }

    private void load(LogicalPlan node) {
        LinkedHashMap table = identities.ofCatalogTable(tableMetadata(Reflect.get(node, "table")));
        walker.addSource(identities.ofPath(Reflect.get(node, "path"), null), null, false);
        boolean overwrite = Boolean.TRUE.equals(Reflect.get(node, "isOverwrite"));
        addSink(table, overwrite ? "OVERWRITE" : "INSERT", null, null);
    }

    private Object tableMetadata(Object identifier) {
        Object catalog = Reflect.path(identities.session(), "sessionState.catalog");
        return Reflect.call(catalog, "getTableMetadata", identifier);
    }

    /** UPDATE, DELETE or MERGE that Spark itself turns into a query over the table's rows. */
    private void rowLevel(LogicalPlan node, LogicalPlan query) {
        Object command = Reflect.path(node, "table.table.operation.command");
        LogicalPlan table = (LogicalPlan) Reflect.get(node, "originalTable");
        walker.updating("UPDATE".equals(String.valueOf(command)));
        walker.walk(query);
        walker.influence(Reflect.get(node, "condition"), Inputs.FILTER);
        LinkedHashMap identity = ofTable(table);
        Map sink = addSink(identity, command == null ? "MERGE" : String.valueOf(command), query.output(), null);
        sink.put("rowLevel", Boolean.TRUE);
    }

    LinkedHashMap ofTable(LogicalPlan table) {
        while (table.children().size() == 1) {
            table = (LogicalPlan) table.children().head();
        }
        LinkedHashMap identity = identities.ofSource(table);
        return identity == null ? new LinkedHashMap() : identity;
    }

    /** Adds a sink whose columns are a query's, by place; returns it. */
    Map query(LogicalPlan query, LinkedHashMap identity, String modify, Object names) {
        walker.walk(query);
        return addSink(identity, modify, query.output(), names);
    }

    Map addSink(LinkedHashMap identity, String modify, Object output, Object names) {
        List attributes = Reflect.list(output);
        List named = names instanceof LogicalPlan ? Reflect.list(((LogicalPlan) names).output()) : Reflect.list(names);
        ArrayList columns = new ArrayList();
        for (int i = 0; i < attributes.size(); i++) {
            Attribute attribute = (Attribute) attributes.get(i);
            Object name = named.size() == attributes.size() ? named.get(i) : attribute;
            columns.add(column(nameOf(name), attribute.dataType().simpleString(), walker.of(attribute)));
        }
        return addSink(identity, modify, columns);
    }

    Map addSink(LinkedHashMap identity, String modify, List columns) {
        LinkedHashMap sink = new LinkedHashMap();
        sink.put("identity", identity);
        sink.put("modify", modify);
        sink.put("columns", columns);
        sinks.add(sink);
        return sink;
    }

    private static String nameOf(Object name) {
        return name instanceof Attribute ? ((Attribute) name).name() : String.valueOf(name);
    }

    ArrayList column(String name, String type, Inputs from) {
        ArrayList column = new ArrayList();
        column.add(name);
        column.add(type);
        column.add(Integer.valueOf(group(from)));
        return column;
    }

    /** Columns that come from the same share what they come from, so that much to much is no square. */
    private int group(Inputs from) {
        Integer number = (Integer) groupNumbers.get(from);
        if (number == null) {
            inputCount += from.size();
            if (inputCount > MOST_INPUTS) {
                walker.incomplete("its columns have more than " + MOST_INPUTS + " inputs");
                from = Inputs.NONE;
            }
            number = Integer.valueOf(groups.size());
            groups.add(kinds(from));
            groupNumbers.put(from, number);
        }
        return number.intValue();
    }

    private static LinkedHashMap kinds(Inputs inputs) {
        LinkedHashMap kinds = new LinkedHashMap();
        for (Iterator each = inputs.kinds().entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            kinds.put(String.valueOf(entry.getKey()), entry.getValue());
        }
        return kinds;
    }
}
