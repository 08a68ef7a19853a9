package io.sparkevents.ctas;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Products;
import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
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

    /** Returns the folder of a database. */
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

    /** Returns what is known of a table, as JSON; null where there is none. */
    public String state(String database, String table) throws Throwable {
        TableIdentifier identifier = identifier(database, table);
        return catalog.tableExists(identifier) ? Calls.json(state(catalog.getTableMetadata(identifier))) : null;
    }

    private static Map state(CatalogTable table) {
        LinkedHashMap found = new LinkedHashMap();
        found.put("type", Reflect.path(table, "tableType.name"));
        found.put("location", Reflect.location(Reflect.path(table, "storage.locationUri")));
        found.put("txid", Reflect.map(Reflect.get(table, "properties")).get(TXID));
        found.put("provider", Reflect.get(table, "provider"));
        found.put("partition_by", Reflect.list(Reflect.get(table, "partitionColumnNames")));
        found.put("partition_types", types((StructType) Reflect.get(table, "partitionSchema")));
        return found;
    }

    static ArrayList types(StructType schema) {
        ArrayList types = new ArrayList();
        StructField[] fields = schema.fields();
        for (int i = 0; i < fields.length; i++) {
            types.add(fields[i].dataType().catalogString());
        }
        return types;
    }

    /** Returns the name of the table of a database that a transaction has made, but for one; null where none is. */
    public String find(String database, String txid, String except) throws Throwable {
        List all = Reflect.list(catalog.listTables(database));
        for (int i = 0; i < all.size(); i++) {
            TableIdentifier each = (TableIdentifier) all.get(i);
            boolean temporary = Reflect.get(each, "database") == null;
            if (!temporary && !each.table().equalsIgnoreCase(except) && catalog.tableExists(each)
                && txid.equals(state(catalog.getTableMetadata(each)).get("txid"))) {
                return each.table();
            }
        }
        return null;
    }

    /** Creates a table over files that are there; throws where the name is taken. */
    public void create(String described, String name, String location, boolean managed) throws Throwable {
        CatalogTable table = table(Calls.parse(described), name, location, managed);
        catalog.createTable(table, false, false);
    }

    /** Points a table of the catalog in memory at other files. */
    public void replace(String described, String name, String location, boolean managed) throws Throwable {
        CatalogTable table = table(Calls.parse(described), name, location, managed);
        catalog.alterTable(table);
        catalog.refreshTable(table.identifier());
    }

    /**
     * Gives a table of Hive the whole definition of another one, by one call to the metastore: through Spark's
     * catalog it would keep its columns.
     */
    public void replaceByRaw(String database, String name, String from) throws Throwable {
        Object client = client();
        HashMap changes = new HashMap();
        changes.put("identifier", identifier(database, name));
        changes.put("tableType", CatalogTableType.EXTERNAL());
        Object raw = Products.copy(Calls.call(client, "getTable", new Object[] {database, from}), changes);
        Calls.call(client, "alterTable", new Object[] {database, name, raw});
        altered(database, name);
    }

    /** Returns the types of a table's columns, those of partitions left out, as the metastore has them. */
    public String metastoreTypes(String database, String name) throws Throwable {
        Object raw = Calls.call(client(), "getTable", new Object[] {database, name});
        ArrayList types = types((StructType) Reflect.get(raw, "schema"));
        int partitions = Reflect.list(Reflect.get(raw, "partitionColumnNames")).size();
        return Calls.json(types.subList(0, types.size() - partitions));
    }

    /** Tells whether a metastore is told the columns of a format; of others it is told one that stands for all. */
    public boolean isOfHive(String provider) throws Throwable {
        Object serdes = getClass().getClassLoader().loadClass("org.apache.spark.sql.internal.HiveSerDe$")
            .getField("MODULE$").get(null);
        return ((scala.Option) Calls.call(serdes, "sourceToSerDe", new Object[] {provider})).isDefined();
    }

    /** Renames a table of Hive that does not own its folder, by one call; throws where the name is taken. */
    public void rename(String database, String from, String to) throws Throwable {
        Object client = client();
        if (catalog.tableExists(identifier(database, to))) {
            throw new org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException(database, to);
        }
        HashMap changes = new HashMap();
        changes.put("identifier", identifier(database, to));
        Object raw = Products.copy(Calls.call(client, "getTable", new Object[] {database, from}), changes);
        Calls.call(client, "alterTable", new Object[] {database, from, raw});
        altered(database, from);
        altered(database, to);
    }

    /**
     * Says whether a table of Hive owns its folder. For a format that Hive does not know, Spark tells the metastore
     * a folder that does not exist, so it is told the true one too: it would drop the wrong one.
     */
    public void setManaged(String database, String name, boolean managed) throws Throwable {
        CatalogTable table = catalog.getTableMetadata(identifier(database, name));
        Object client = client();
        Object raw = Calls.call(client, "getTable", new Object[] {database, name});
        HashMap storage = new HashMap();
        storage.put("locationUri", table.storage().locationUri());
        HashMap changes = new HashMap();
        changes.put("tableType", managed ? CatalogTableType.MANAGED() : CatalogTableType.EXTERNAL());
        changes.put("storage", Products.copy(Reflect.get(raw, "storage"), storage));
        Calls.call(client, "alterTable", new Object[] {database, name, Products.copy(raw, changes)});
        altered(database, name);
    }

    /** Points a table at another folder that has the same files. */
    public void relocate(String database, String name, String location) throws Throwable {
        CatalogTable table = catalog.getTableMetadata(identifier(database, name));
        HashMap storage = new HashMap();
        storage.put("locationUri", Calls.option(new Path(location).toUri()));
        HashMap changes = new HashMap();
        changes.put("storage", Products.copy(table.storage(), storage));
        catalog.alterTable((CatalogTable) Products.copy(table, changes));
        altered(database, name);
    }

    /** Forgets the partitions that the catalog knows, and leaves their files. */
    public void dropPartitions(String database, String name) throws Throwable {
        dropPartitions(identifier(database, name));
    }

    /** Lets the catalog know the partitions that have folders, as a step of something else and no statement. */
    public void addPartitions(String table) throws Throwable {
        Object state = Reflect.get(session, "sessionState");
        Object plan = Calls.call(Calls.call(state, "sqlParser"), "parsePlan",
            new Object[] {"MSCK REPAIR TABLE " + table});
        Object execution = Calls.call(state, "executePlan", new Object[] {plan, CommandExecutionMode.SKIP()});
        Calls.call(execution, "toRdd");
    }

    /** Removes a table; of one that does not own its folder the files stay. */
    public void drop(String database, String name) throws Throwable {
        catalog.dropTable(identifier(database, name), true, false);
    }

    /** Updates the table's statistics, where Spark is told to keep them. */
    public void updateStatistics(String database, String name) throws Throwable {
        CatalogTable table = catalog.getTableMetadata(identifier(database, name));
        Object utils = getClass().getClassLoader()
            .loadClass("org.apache.spark.sql.execution.command.CommandUtils$").getField("MODULE$").get(null);
        Calls.call(utils, "updateTableStats", new Object[] {session, table});
    }

    public void refresh(String database, String name) {
        catalog.refreshTable(identifier(database, name));
    }

    private void dropPartitions(TableIdentifier identifier) throws Throwable {
        if (Reflect.list(catalog.getTableMetadata(identifier).partitionColumnNames()).isEmpty()) {
            return;
        }
        ArrayList specs = new ArrayList();
        for (Iterator each = Reflect.list(catalog.listPartitions(identifier, scala.Option.empty())).iterator();
            each.hasNext();) {
            specs.add(Calls.call(each.next(), "spec"));
        }
        if (!specs.isEmpty()) {
            Calls.call(catalog, "dropPartitions", new Object[] {identifier, Calls.seq(specs), Boolean.TRUE,
                Boolean.FALSE, Boolean.TRUE});
        }
    }

    private Object client() throws Throwable {
        return Calls.call(Reflect.path(catalog, "externalCatalog.unwrapped"), "client");
    }

    /** Tells Spark's listeners what a call past its catalog has done. */
    private void altered(String database, String name) throws Throwable {
        catalog.refreshTable(identifier(database, name));
        Object bus = Reflect.path(session, "sparkContext.listenerBus");
        Calls.call(bus, "post", new Object[] {
            new org.apache.spark.sql.catalyst.catalog.AlterTableEvent(database, name, "table")});
    }

    private static TableIdentifier identifier(String database, String table) {
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
        HashMap changes = new HashMap();
        changes.put("properties", Calls.map((Map) from.get("properties")));
        changes.put("comment", Calls.option(from.get("comment")));
        return (CatalogTable) Products.copy(table, changes);
    }
}
