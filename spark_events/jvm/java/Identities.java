package io.sparkevents.jvm;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Says what a leaf of a plan reads, or what a command writes: raw facts, out of which Python makes a name. Asks no
 * relation for its files or its size: Delta's runs a Spark job to answer.
 */
public class Identities {
    /** Of tables that were made all at once: their folder is another one after each replacement, and ends with it. */
    private static final String TRANSACTION = "ctas.txid";
    private static final int MOST_PATHS = 200;
    private final Object session;

    public Identities(Object session) {
        this.session = session;
    }

    /** Returns what a leaf reads; null for one that reads nothing that has a name. */
    public LinkedHashMap ofSource(Object leaf) {
        if (Reflect.isA(leaf, "LogicalRelation")) {
            return ofRelation(Reflect.get(leaf, "relation"), Reflect.get(leaf, "catalogTable"));
        }
        if (Reflect.isA(leaf, "HiveTableRelation") || Reflect.isA(leaf, "UnresolvedCatalogRelation")) {
            return ofCatalogTable(Reflect.get(leaf, "tableMeta"));
        }
        if (Reflect.isA(leaf, "StreamingRelation")) {
            return ofDataSource(Reflect.get(leaf, "dataSource"));
        }
        if (Reflect.isA(leaf, "StreamingRelationV2")) {
            return ofV2(leaf, "extraOptions", Reflect.text(Reflect.get(leaf, "sourceName")));
        }
        if (Reflect.isA(leaf, "DataSourceV2Relation") || Reflect.isA(leaf, "StreamingDataSourceV2Relation")
            || Reflect.isA(leaf, "DataSourceV2ScanRelation")) {
            Object relation = Reflect.isA(leaf, "DataSourceV2ScanRelation") ? Reflect.get(leaf, "relation") : leaf;
            return ofV2(relation, "options", null);
        }
        return null;
    }

    /** Returns what a relation of Spark's first data source interface is. */
    public LinkedHashMap ofRelation(Object relation, Object catalogTable) {
        LinkedHashMap found;
        if (Reflect.isA(relation, "HadoopFsRelation")) {
            found = new LinkedHashMap();
            found.put("paths", paths(Reflect.path(relation, "location.rootPaths")));
            found.put("format", format(Reflect.get(relation, "fileFormat")));
            found.put("options", Reflect.map(Reflect.get(relation, "options")));
        } else if (Reflect.get(relation, "jdbcOptions") != null) {
            found = ofJdbc(Reflect.get(relation, "jdbcOptions"));
        } else {
            found = new LinkedHashMap();
            found.put("format", provider(relation));
            Object options = Reflect.field(relation, "sourceOptions");
            options = options == null ? Reflect.field(relation, "parameters") : options;
            found.put("options", Reflect.map(options));
        }
        if (catalogTable != null) {
            addTable(found, catalogTable);
        }
        return found;
    }

    public LinkedHashMap ofCatalogTable(Object table) {
        LinkedHashMap found = new LinkedHashMap();
        Object provider = Reflect.get(table, "provider");
        found.put("format", provider == null ? "hive" : Reflect.text(provider));
        addTable(found, table);
        return found;
    }

    public LinkedHashMap ofPath(Object path, String format) {
        LinkedHashMap found = new LinkedHashMap();
        found.put("paths", paths(new Object[] {path}));
        found.put("format", format);
        return found;
    }

    /** Returns what options say about where something is, as of {@code df.write.format(…).options(…).save()}. */
    public LinkedHashMap ofOptions(String format, Object options) {
        LinkedHashMap found = new LinkedHashMap();
        found.put("format", format);
        found.put("options", Reflect.map(options));
        return found;
    }

    /** Returns what a table of a catalog is that may not be there yet. */
    public LinkedHashMap ofIdentifier(Object catalog, Object identifier, Object table, Object spec) {
        LinkedHashMap found = table == null ? new LinkedHashMap() : ofV2Table(table);
        addIdentifier(found, catalog, identifier);
        if (table == null) {
            found.put("format", Reflect.text(Reflect.get(spec, "provider")));
            Object location = Reflect.get(spec, "location");
            if (location != null) {
                found.put("paths", paths(new Object[] {location}));
            } else {
                found.put("provisional", Boolean.TRUE);
            }
        }
        return found;
    }

    /** Asks a catalog for a table; null where it has none. */
    public static Object load(Object catalog, Object identifier) {
        return Reflect.call(catalog, "loadTable", identifier);
    }

    public Object session() {
        return session;
    }

    public LinkedHashMap ofV2(Object relation, String optionsName, String sourceName) {
        LinkedHashMap found = ofV2Table(Reflect.get(relation, "table"));
        LinkedHashMap options = Reflect.map(Reflect.path(relation, optionsName + ".asCaseSensitiveMap"));
        if (found.get("options") == null) {
            found.put("options", options.isEmpty() ? Reflect.map(Reflect.get(relation, optionsName)) : options);
        }
        if (sourceName != null) {
            found.put("format", sourceName);
        }
        addIdentifier(found, Reflect.get(relation, "catalog"), Reflect.get(relation, "identifier"));
        return found;
    }

    public LinkedHashMap ofV2Table(Object table) {
        LinkedHashMap found = new LinkedHashMap();
        if (Reflect.isA(table, "RowLevelOperationTable")) {
            table = Reflect.get(table, "table");
        }
        if (Reflect.isA(table, "V1Table")) {
            return ofCatalogTable(Reflect.get(table, "v1Table"));
        }
        Object jdbc = Reflect.get(table, "jdbcOptions");
        if (jdbc != null) {
            return ofJdbc(jdbc);
        }
        LinkedHashMap properties = Reflect.map(Reflect.get(table, "properties"));
        found.put("properties", properties);
        found.put("tableName", Reflect.text(Reflect.get(table, "name")));
        found.put("format", formatOf(table, properties));
        Object location = properties.get("location");
        location = location == null ? Reflect.path(table, "table.location") : location;
        location = location == null ? Reflect.get(table, "path") : location;
        ArrayList several = Reflect.list(Reflect.get(table, "paths"));
        if (location != null) {
            several.clear();
            several.add(location);
        }
        if (!several.isEmpty()) {
            found.put("paths", paths(several));
        }
        Object catalogTable = Reflect.get(table, "catalogTable");
        if (Reflect.isA(catalogTable, "CatalogTable")) {
            addTable(found, catalogTable);
        }
        return found;
    }

    private LinkedHashMap ofDataSource(Object source) {
        LinkedHashMap found = ofOptions(Reflect.text(Reflect.get(source, "className")), Reflect.get(source, "options"));
        ArrayList paths = Reflect.list(Reflect.get(source, "paths"));
        if (!paths.isEmpty()) {
            found.put("paths", paths(paths));
        }
        Object table = Reflect.get(source, "catalogTable");
        if (table != null) {
            addTable(found, table);
        }
        return found;
    }

    private LinkedHashMap ofJdbc(Object jdbc) {
        LinkedHashMap found = new LinkedHashMap();
        found.put("format", "jdbc");
        LinkedHashMap options = new LinkedHashMap();
        options.put("url", Reflect.text(Reflect.get(jdbc, "url")));
        options.put("dbtable", Reflect.text(Reflect.get(jdbc, "tableOrQuery")));
        found.put("options", options);
        return found;
    }

    private void addTable(LinkedHashMap found, Object table) {
        addNames(found, table);
        Object txid = Reflect.map(Reflect.get(table, "properties")).get(TRANSACTION);
        ArrayList paths = (ArrayList) found.get("paths");
        for (int i = 0; txid != null && paths != null && i < paths.size(); i++) {
            paths.set(i, String.valueOf(paths.get(i)).replace("-" + txid, ""));
        }
    }

    private void addNames(LinkedHashMap found, Object table) {
        Object identifier = Reflect.get(table, "identifier");
        LinkedHashMap names = new LinkedHashMap();
        Object catalog = Reflect.get(identifier, "catalog");
        names.put("catalog", catalog == null ? "spark_catalog" : Reflect.text(catalog));
        Object database = Reflect.get(identifier, "database");
        if (database == null) {
            database = Reflect.path(session, "sessionState.catalog.getCurrentDatabase");
        }
        names.put("database", Reflect.text(database));
        names.put("table", Reflect.text(Reflect.get(identifier, "table")));
        putTable(found, names);
        if (found.get("paths") != null || found.get("options") != null && "jdbc".equals(found.get("format"))) {
            return;
        }
        Object location = Reflect.path(table, "storage.locationUri");
        LinkedHashMap options = Reflect.map(Reflect.path(table, "storage.properties"));
        if (location == null && !options.containsKey("url")) {
            location = defaultPath(identifier);
        }
        if (location != null) {
            found.put("paths", paths(new Object[] {location}));
        }
        found.put("options", options);
    }

    void addIdentifier(LinkedHashMap found, Object catalog, Object identifier) {
        if (identifier == null) {
            return;
        }
        LinkedHashMap names = new LinkedHashMap();
        names.put("catalog", catalog == null ? "spark_catalog" : Reflect.text(Reflect.get(catalog, "name")));
        ArrayList namespace = Reflect.list(Reflect.get(identifier, "namespace"));
        StringBuilder database = new StringBuilder();
        for (int i = 0; i < namespace.size(); i++) {
            database.append(i == 0 ? "" : ".").append(namespace.get(i));
        }
        names.put("database", database.toString());
        names.put("table", Reflect.text(Reflect.get(identifier, "name")));
        putTable(found, names);
    }

    /** The warehouse is part of a table's name: that of the session, for Spark's default is a folder of its own. */
    private void putTable(LinkedHashMap found, LinkedHashMap names) {
        found.put("table", names);
        found.put("warehouse", Reflect.text(Reflect.path(session, "sessionState.conf.warehousePath")));
    }

    /** Where a managed table without a location of its own lies. */
    private Object defaultPath(Object identifier) {
        return Reflect.call(Reflect.path(session, "sessionState.catalog"), "defaultTablePath", identifier);
    }

    private static ArrayList paths(Object values) {
        ArrayList paths = new ArrayList();
        for (Iterator each = Reflect.list(values).iterator(); each.hasNext() && paths.size() < MOST_PATHS;) {
            Object path = each.next();
            Object uri = Reflect.get(path, "toUri");
            paths.add(String.valueOf(uri == null ? path : uri));
        }
        return paths;
    }

    private static String format(Object fileFormat) {
        Object name = Reflect.get(fileFormat, "shortName");
        return name == null ? provider(fileFormat) : Reflect.text(name);
    }

    private static String formatOf(Object table, Map properties) {
        Object provider = properties.get("provider");
        provider = provider == null ? Reflect.get(table, "formatName") : provider;
        if (provider == null && Reflect.isA(table, "PythonTable")) {
            provider = Reflect.get(table, "name");
        }
        return provider == null ? provider(table) : Reflect.text(provider);
    }

    private static String provider(Object value) {
        return value == null ? null : value.getClass().getName();
    }
}
