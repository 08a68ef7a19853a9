package io.sparkevents.ctas;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Products;
import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.BucketSpec;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Single calls to the session catalog, in memory or in a Hive metastore; each is one step of a commit. */
public class SessionTables {
    public static final String TXID = "ctas.txid";
    private final Object session;
    private final SessionCatalog catalog;

    public SessionTables(Object session) throws Throwable {
        this.session = session;
        this.catalog = (SessionCatalog) Reflect.path(session, "sessionState.catalog");
    }

    public boolean isHive() {
        return Reflect.isA(Reflect.path(catalog, "externalCatalog.unwrapped"), "HiveExternalCatalog");
    }

    public String databaseLocation(String database) throws Throwable {
        return Reflect.location(Reflect.path(catalog.getDatabaseMetadata(database), "locationUri"));
    }

    /** Returns the folder that a table has when it is given none. */
    public String defaultLocation(String database, String table) throws Throwable {
        return Reflect.location(catalog.defaultTablePath(identifier(database, table)));
    }

    public boolean hasDatabase(String database) {
        return catalog.databaseExists(database);
    }

    /** Returns what is known of a table, as JSON; JSON's null where there is none. */
    public String state(String database, String table) throws Throwable {
        TableIdentifier identifier = identifier(database, table);
        return Calls.json(catalog.tableExists(identifier) ? state(catalog.getTableMetadata(identifier)) : null);
    }

    private static Map state(CatalogTable table) {
        LinkedHashMap state = new LinkedHashMap();
        state.put("type", Reflect.path(table, "tableType.name"));
        state.put("location", Reflect.location(Reflect.path(table, "storage.locationUri")));
        state.put("txid", Reflect.map(Reflect.get(table, "properties")).get(TXID));
        state.put("provider", Reflect.get(table, "provider"));
        state.put("partition_by", Reflect.list(Reflect.get(table, "partitionColumnNames")));
        state.put("partition_types", types((StructType) Reflect.get(table, "partitionSchema")));
        return state;
    }

    static ArrayList types(StructType schema) {
        ArrayList types = new ArrayList();
        StructField[] fields = schema.fields();
        for (int i = 0; i < fields.length; i++) {
            types.add(fields[i].dataType().catalogString());
        }
        return types;
    }

    /** Returns a digest of a table's files, also of those of partitions that have folders of their own elsewhere. */
    public String digest(String database, String name, Storage storage) throws Throwable {
        CatalogTable table = catalog.getTableMetadata(identifier(database, name));
        ArrayList folders = new ArrayList();
        folders.add(Reflect.location(Reflect.path(table, "storage.locationUri")));
        List elsewhere = partitionsElsewhere(table, storage);
        for (int i = 0; i < elsewhere.size(); i++) {
            folders.add(location(elsewhere.get(i)));
        }
        return storage.digest(folders);
    }

    private List partitionsElsewhere(CatalogTable table, Storage storage) throws Throwable {
        ArrayList elsewhere = new ArrayList();
        if (Reflect.list(table.partitionColumnNames()).isEmpty()) {
            return elsewhere;
        }
        String folder = storage.qualified(Reflect.location(Reflect.path(table, "storage.locationUri"))) + "/";
        List partitions = Reflect.list(catalog.listPartitions(table.identifier(), scala.Option.empty()));
        for (int i = 0; i < partitions.size(); i++) {
            String location = location(partitions.get(i));
            if (location != null && !(storage.qualified(location) + "/").startsWith(folder)) {
                elsewhere.add(partitions.get(i));
            }
        }
        return elsewhere;
    }

    private static String location(Object partition) throws Throwable {
        return Reflect.location(Reflect.path(partition, "storage.locationUri"));
    }

    /** Returns the name of the table that a transaction has made, unless it is the excepted one; null for none. */
    public String find(String database, String txid, String except) throws Throwable {
        List tables = Reflect.list(catalog.listTables(database));
        for (int i = 0; i < tables.size(); i++) {
            TableIdentifier table = (TableIdentifier) tables.get(i);
            boolean isTemporary = Reflect.get(table, "database") == null;
            if (!isTemporary && !table.table().equalsIgnoreCase(except) && catalog.tableExists(table)
                && txid.equals(state(catalog.getTableMetadata(table)).get("txid"))) {
                return table.table();
            }
        }
        return null;
    }

    /** Creates a table over files that are there; throws where the name is taken. */
    public void create(String described, String name, String location, boolean managed) throws Throwable {
        catalog.createTable(table(Calls.parse(described), name, location, managed), false, false);
    }

    /** Points a table of the catalog in memory at other files. */
    public void replace(String described, String name, String location, boolean managed) throws Throwable {
        CatalogTable table = table(Calls.parse(described), name, location, managed);
        catalog.alterTable(table);
        catalog.refreshTable(table.identifier());
    }

    /**
     * Forgets the partitions whose files are not below the table's folder, and leaves their files. They are those of a
     * table before, maybe with other columns: Spark's session catalog refuses such, and the one behind it takes them.
     */
    public void dropStalePartitions(String database, String name, Storage storage) throws Throwable {
        CatalogTable table = catalog.getTableMetadata(identifier(database, name));
        TableIdentifier identifier = table.identifier();
        List elsewhere = partitionsElsewhere(table, storage);
        ArrayList specs = new ArrayList();
        for (int i = 0; i < elsewhere.size(); i++) {
            specs.add(Calls.call(elsewhere.get(i), "spec"));
        }
        if (!specs.isEmpty()) {
            listFolders(table);
            Calls.call(Reflect.path(catalog, "externalCatalog"), "dropPartitions", new Object[] {
                identifier.database().get(), identifier.table(), Calls.seq(specs), Boolean.TRUE, Boolean.FALSE,
                Boolean.TRUE});
        }
    }

    /** Has readers find the partitions by their folders, until {@link #addPartitions} is done. */
    private void listFolders(CatalogTable table) throws Throwable {
        boolean isOfHive = "hive".equalsIgnoreCase(Reflect.text(Reflect.get(table, "provider")));
        if (table.tracksPartitionsInCatalog() && !isOfHive) {
            catalog.alterTable((CatalogTable) SparkObjects.copy(table,
                new Object[] {"tracksPartitionsInCatalog", Boolean.FALSE}));
            catalog.refreshTable(table.identifier());
        }
    }

    /** Returns whether readers ask the catalog for partitions, which has none, of a table that owns its files. */
    public boolean lacksPartitions(String database, String name) throws Throwable {
        CatalogTable table = catalog.getTableMetadata(identifier(database, name));
        return table.tracksPartitionsInCatalog() && "MANAGED".equals(Reflect.path(table, "tableType.name"))
            && !Reflect.list(table.partitionColumnNames()).isEmpty()
            && Reflect.list(catalog.listPartitionNames(table.identifier(), scala.Option.empty())).isEmpty();
    }

    /** Lets the catalog know the partitions that have folders, as a step of something else and no statement. */
    public void addPartitions(String table) throws Throwable {
        Object plan = SparkObjects.parsed(session, "MSCK REPAIR TABLE " + table);
        Calls.call(SparkObjects.execution(session, plan, CommandExecutionMode.SKIP()), "toRdd");
    }

    /** Removes a table; of one that does not own its folder the files stay. */
    public void drop(String database, String name) throws Throwable {
        catalog.dropTable(identifier(database, name), true, false);
    }

    /** Updates the table's statistics, where Spark is told to keep them. */
    public void updateStatistics(String database, String name) throws Throwable {
        CatalogTable table = catalog.getTableMetadata(identifier(database, name));
        Object utils = SparkObjects.module("org.apache.spark.sql.execution.command.CommandUtils");
        Calls.call(utils, "updateTableStats", new Object[] {session, table});
    }

    public void refresh(String database, String name) {
        catalog.refreshTable(identifier(database, name));
    }

    static TableIdentifier identifier(String database, String table) {
        return new TableIdentifier(table, Calls.option(database));
    }

    private static CatalogTable table(Map from, String name, String location, boolean managed) throws Throwable {
        TableIdentifier identifier = identifier((String) from.get("database"), name);
        Object storage = Products.create(CatalogStorageFormat.class, new Object[] {
            Calls.option(new Path(location).toUri()), Calls.option(from.get("input_format")),
            Calls.option(from.get("output_format")), Calls.option(from.get("serde")), Boolean.FALSE,
            Calls.map((Map) from.get("options"))});
        Object buckets = from.get("buckets") == null ? null : Products.create(BucketSpec.class, new Object[] {
            from.get("buckets"), Calls.seq((List) from.get("bucket_by")), Calls.seq((List) from.get("sort_by"))});
        Object table = Products.create(CatalogTable.class, new Object[] {identifier,
            managed ? CatalogTableType.MANAGED() : CatalogTableType.EXTERNAL(), storage,
            (StructType) DataType.fromJson((String) from.get("schema")), Calls.option(from.get("provider")),
            Calls.seq((List) from.get("partition_by")), Calls.option(buckets)});
        return (CatalogTable) SparkObjects.copy(table, new Object[] {
            "properties", Calls.map((Map) from.get("properties")), "comment", Calls.option(from.get("comment"))});
    }
}
