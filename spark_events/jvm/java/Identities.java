package io.sparkevents.jvm;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * Identifies what a leaf of a plan reads, or a command writes: raw facts from which Python makes a name. It never asks
 * a relation for its files or size: Delta would run a Spark job to answer.
 */
public class Identities {
    /** Of tables that were made all at once: their folder is another one after each replacement, and ends with it. */
    private static final String TRANSACTION = "ctas.txid";
    private static final int MOST_PATHS = 200;
    private final Object session;
    private final boolean qualifies;

    public Identities(Object session) {
        this(session, true);
    }

    /**
     * Identifies what a session's plans read and write.
     *
     * @param qualifies whether paths become absolute: relative ones are the same for a plan in any working directory
     */
    public Identities(Object session, boolean qualifies) {
        this.session = session;
        this.qualifies = qualifies;
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
        LinkedHashMap identity;
        if (Reflect.isA(relation, "HadoopFsRelation")) {
            Object fileFormat = Reflect.get(relation, "fileFormat");
            // Delta's files are Parquet's, which is what their format is called.
            boolean isDelta = Reflect.isA(fileFormat, "DeltaParquetFileFormat");
            String format = isDelta ? "delta" : nameOr(Reflect.get(fileFormat, "shortName"), fileFormat);
            identity = ofOptions(format, Reflect.get(relation, "options"));
            identity.put("paths", paths(Reflect.path(relation, "location.rootPaths")));
            TableProperties.add(identity, Reflect.path(fileFormat, "metadata.configuration"), null);
        } else if (Reflect.get(relation, "jdbcOptions") != null) {
            identity = ofJdbc(Reflect.get(relation, "jdbcOptions"));
        } else {
            Object options = Reflect.field(relation, "sourceOptions");
            options = options == null ? Reflect.field(relation, "parameters") : options;
            identity = ofOptions(className(relation), options);
        }
        if (catalogTable != null) {
            addTable(identity, catalogTable);
        }
        return identity;
    }

    public LinkedHashMap ofCatalogTable(Object table) {
        LinkedHashMap identity = new LinkedHashMap();
        identity.put("format", provider(table));
        addTable(identity, table);
        return identity;
    }

    /** Returns the provider of a table's or a command's data; in Spark, Hive's own tables have none. */
    public static String provider(Object table) {
        Object provider = Reflect.get(table, "provider");
        return provider == null ? "hive" : Reflect.text(provider);
    }

    public LinkedHashMap ofPath(Object path, String format) {
        LinkedHashMap identity = new LinkedHashMap();
        identity.put("paths", qualified(paths(new Object[] {path})));
        identity.put("format", format);
        return identity;
    }

    /** Returns what options say about where something is, as of {@code df.write.format(…).options(…).save()}. */
    public LinkedHashMap ofOptions(String format, Object options) {
        LinkedHashMap identity = new LinkedHashMap();
        identity.put("format", format);
        LinkedHashMap given = Reflect.map(options);
        if (given.get("path") != null) {
            given.put("path", qualified((String) given.get("path")));
        }
        identity.put("options", given);
        return identity;
    }

    /** Returns what a table of a catalog is that may not be there yet. */
    public LinkedHashMap ofIdentifier(Object catalog, Object identifier, Object table, Object spec) {
        LinkedHashMap identity = table == null ? new LinkedHashMap() : ofV2Table(table);
        addIdentifier(identity, catalog, identifier);
        if (table == null) {
            identity.put("format", Reflect.text(Reflect.get(spec, "provider")));
            TableProperties.add(identity, Reflect.get(spec, "properties"), null);
            Object location = Reflect.get(spec, "location");
            if (location != null) {
                identity.put("paths", paths(new Object[] {location}));
            } else {
                identity.put("provisional", Boolean.TRUE);
            }
        }
        return identity;
    }

    /** Asks a catalog for a table; null where it has none. */
    public static Object load(Object catalog, Object identifier) {
        return IcebergTables.isShared(catalog) && !Reflect.isA(identifier, "PathIdentifier")
            ? IcebergTables.load(catalog, identifier) : Reflect.call(catalog, "loadTable", identifier);
    }

    public Object session() {
        return session;
    }

    public LinkedHashMap ofV2(Object relation, String optionsName, String sourceName) {
        LinkedHashMap identity = ofV2Table(Reflect.get(relation, "table"));
        LinkedHashMap options = Reflect.map(Reflect.path(relation, optionsName + ".asCaseSensitiveMap"));
        if (identity.get("options") == null) {
            identity.put("options", options.isEmpty() ? Reflect.map(Reflect.get(relation, optionsName)) : options);
        }
        if (sourceName != null) {
            identity.put("format", sourceName);
        }
        addIdentifier(identity, Reflect.get(relation, "catalog"), Reflect.get(relation, "identifier"));
        return identity;
    }

    public LinkedHashMap ofV2Table(Object table) {
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
        LinkedHashMap identity = new LinkedHashMap();
        Object ofIceberg = IcebergTables.metadata(table);
        LinkedHashMap properties = ofIceberg == null
            ? Reflect.map(Reflect.get(table, "properties")) : IcebergTables.properties(ofIceberg);
        identity.put("properties", properties);
        identity.put("tableName", Reflect.text(Reflect.get(table, "name")));
        identity.put("format", formatOf(table, properties));
        Object location = properties.get("location");
        location = location == null ? Reflect.first(table, "table.location|path") : location;
        Object locations = location == null ? Reflect.get(table, "paths") : new Object[] {location};
        if (!Reflect.list(locations).isEmpty()) {
            identity.put("paths", qualified(paths(locations)));
        }
        Object catalogTable = Reflect.get(table, "catalogTable");
        if (Reflect.isA(catalogTable, "CatalogTable")) {
            addTable(identity, catalogTable);
        }
        return identity;
    }

    private LinkedHashMap ofDataSource(Object source) {
        LinkedHashMap identity = ofOptions(Reflect.text(Reflect.get(source, "className")), Reflect.get(source, "options"));
        ArrayList paths = Reflect.list(Reflect.get(source, "paths"));
        if (!paths.isEmpty()) {
            identity.put("paths", qualified(paths(paths)));
        }
        Object table = Reflect.get(source, "catalogTable");
        if (table != null) {
            addTable(identity, table);
        }
        return identity;
    }

    /** Tells whether what is read is a query that is sent to a database, and no table of it. */
    public boolean isQuery(LinkedHashMap identity) {
        if (!"jdbc".equals(identity.get("format"))) {
            return false;
        }
        Object read = Reflect.map(identity.get("options")).get("dbtable");
        return read != null && String.valueOf(read).trim().startsWith("(");
    }

    public LinkedHashMap ofJdbc(Object jdbc) {
        LinkedHashMap options = new LinkedHashMap();
        options.put("url", Reflect.text(Reflect.get(jdbc, "url")));
        options.put("dbtable", Reflect.text(Reflect.get(jdbc, "tableOrQuery")));
        return ofOptions("jdbc", options);
    }

    /** Returns what a table of Spark's own catalog is of which only the name is known. */
    public LinkedHashMap ofTableName(Object identifier) {
        LinkedHashMap identity = new LinkedHashMap();
        addNames(identity, identifier, null);
        return identity;
    }

    private void addTable(LinkedHashMap identity, Object table) {
        addNames(identity, Reflect.get(table, "identifier"), table);
        TableProperties.add(identity, Reflect.get(table, "properties"), Reflect.text(Reflect.get(table, "owner")));
        Object txid = Reflect.map(Reflect.get(table, "properties")).get(TRANSACTION);
        ArrayList paths = (ArrayList) identity.get("paths");
        for (int i = 0; txid != null && paths != null && i < paths.size(); i++) {
            paths.set(i, String.valueOf(paths.get(i)).replace("-" + txid, ""));
        }
    }

    private void addNames(LinkedHashMap identity, Object identifier, Object table) {
        Object database = Reflect.get(identifier, "database");
        if (database == null) {
            database = Reflect.path(session, "sessionState.catalog.getCurrentDatabase");
        }
        putTable(identity, Reflect.get(identifier, "catalog"), database, Reflect.get(identifier, "table"));
        if (identity.get("paths") != null || identity.get("options") != null && "jdbc".equals(identity.get("format"))) {
            return;
        }
        Object location = Reflect.path(table, "storage.locationUri");
        LinkedHashMap options = Reflect.map(Reflect.path(table, "storage.properties"));
        if (location == null && !options.containsKey("url")) {
            // A managed table without a location of its own.
            location = Reflect.call(Reflect.path(session, "sessionState.catalog"), "defaultTablePath", identifier);
        }
        if (location != null) {
            identity.put("paths", paths(new Object[] {location}));
        }
        identity.put("options", options);
    }

    public void addIdentifier(LinkedHashMap identity, Object catalog, Object identifier) {
        if (identifier == null) {
            return;
        }
        ArrayList names = Reflect.list(Reflect.get(identifier, "namespace"));
        String whole = String.valueOf(Reflect.get(catalog, "name")) + "." + String.join(".", names);
        // Of table.branch_x or table.snapshot_id_7, as Iceberg has them, the table is what comes before.
        Object name = whole.equals(identity.get("tableName")) && names.size() > 1
            ? names.remove(names.size() - 1) : Reflect.get(identifier, "name");
        putTable(identity, Reflect.get(catalog, "name"), String.join(".", names), name);
    }

    /** The warehouse is part of a table's name: that of the session, for Spark's default is a folder of its own. */
    private void putTable(LinkedHashMap identity, Object catalog, Object database, Object table) {
        LinkedHashMap names = new LinkedHashMap();
        names.put("catalog", catalog == null ? "spark_catalog" : Reflect.text(catalog));
        names.put("database", Reflect.text(database));
        names.put("table", Reflect.text(table));
        identity.put("table", names);
        identity.put("warehouse", Reflect.text(Reflect.path(session, "sessionState.conf.warehousePath")));
    }

    public Configuration hadoopConf() {
        return (Configuration) Reflect.path(session, "sessionState.newHadoopConf");
    }

    /** Returns paths as their file system has them: what is read or written may be relative to a working directory. */
    private ArrayList qualified(ArrayList paths) {
        for (int i = 0; i < paths.size(); i++) {
            paths.set(i, qualified((String) paths.get(i)));
        }
        return paths;
    }

    private String qualified(String given) {
        if (!qualifies) {
            return given;
        }
        try {
            Path path = new Path(given);
            boolean isWhole = path.toUri().getScheme() != null;
            return isWhole ? given : path.getFileSystem(hadoopConf()).makeQualified(path).toUri().toString();
        } catch (Exception error) {
            // A connector may call something a path that is none; it stays as it is.
            return given;
        }
    }

    public static ArrayList paths(Object values) {
        ArrayList paths = new ArrayList();
        ArrayList given = Reflect.list(values);
        for (int i = 0; i < given.size() && i < MOST_PATHS; i++) {
            Object uri = Reflect.get(given.get(i), "toUri");
            paths.add(String.valueOf(uri == null ? given.get(i) : uri));
        }
        return paths;
    }

    private static String formatOf(Object table, Map properties) {
        Object provider = properties.get("provider");
        provider = provider == null ? Reflect.get(table, "formatName") : provider;
        if (provider == null && Reflect.isA(table, "PythonTable")) {
            provider = Reflect.get(table, "name");
        }
        return nameOr(provider, table);
    }

    /** Returns a name, or else the class of what has none. */
    public static String nameOr(Object name, Object owner) {
        return name == null ? className(owner) : Reflect.text(name);
    }

    public static String className(Object value) {
        return value == null ? null : value.getClass().getName();
    }
}
