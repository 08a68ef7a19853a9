package io.sparkevents.ctas;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.catalog.AlterTableEvent;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.types.StructType;

/**
 * Single changes of tables in a Hive metastore. Most bypass Spark's catalog and use its metastore client directly: the
 * catalog would make several calls, or preserve what is to be changed.
 */
public class HiveTables {
    private final Object session;
    private final SessionCatalog catalog;

    public HiveTables(Object session) throws Throwable {
        this.session = session;
        this.catalog = (SessionCatalog) Reflect.path(session, "sessionState.catalog");
    }

    /** Gives a table the whole definition of another one: through Spark's catalog it would keep its columns. */
    public void replace(String database, String name, String from) throws Throwable {
        alter(database, name, SparkObjects.copy(raw(database, from), new Object[] {
            "identifier", SessionTables.identifier(database, name), "tableType", CatalogTableType.EXTERNAL()}));
    }

    /** Renames a table that does not own its folder, by one call; throws where the name is taken. */
    public void rename(String database, String from, String to) throws Throwable {
        if (catalog.tableExists(SessionTables.identifier(database, to))) {
            throw new TableAlreadyExistsException(database, to);
        }
        alter(database, from, SparkObjects.copy(raw(database, from),
            new Object[] {"identifier", SessionTables.identifier(database, to)}));
        altered(database, to);
    }

    /**
     * Sets whether a table owns its folder. For a format unknown to Hive, Spark gives the metastore a folder that does
     * not exist, so this sets the true one, too: otherwise the metastore would drop the wrong one.
     */
    public void setManaged(String database, String name, boolean managed) throws Throwable {
        CatalogTable table = catalog.getTableMetadata(SessionTables.identifier(database, name));
        Object raw = raw(database, name);
        Object storage = SparkObjects.copy(Reflect.get(raw, "storage"),
            new Object[] {"locationUri", table.storage().locationUri()});
        alter(database, name, SparkObjects.copy(raw, new Object[] {
            "tableType", managed ? CatalogTableType.MANAGED() : CatalogTableType.EXTERNAL(), "storage", storage}));
    }

    /** Points a table at another folder that has the same files. */
    public void relocate(String database, String name, String location) throws Throwable {
        CatalogTable table = catalog.getTableMetadata(SessionTables.identifier(database, name));
        Object storage = SparkObjects.copy(table.storage(),
            new Object[] {"locationUri", Calls.option(new Path(location).toUri())});
        catalog.alterTable((CatalogTable) SparkObjects.copy(table, new Object[] {"storage", storage}));
        altered(database, name);
    }

    /** Returns the types of a table's columns, those of partitions left out, as the metastore has them. */
    public String columnTypes(String database, String name) throws Throwable {
        Object raw = raw(database, name);
        ArrayList types = SessionTables.types((StructType) Reflect.get(raw, "schema"));
        int partitions = Reflect.list(Reflect.get(raw, "partitionColumnNames")).size();
        return Calls.json(types.subList(0, types.size() - partitions));
    }

    /** Returns whether the metastore gets the columns of a format; for others, it gets a single placeholder column. */
    public boolean knowsColumns(String provider) throws Throwable {
        Object serdes = SparkObjects.module("org.apache.spark.sql.internal.HiveSerDe");
        return ((scala.Option) Calls.call(serdes, "sourceToSerDe", new Object[] {provider})).isDefined();
    }

    private Object client() throws Throwable {
        return Calls.call(Reflect.path(catalog, "externalCatalog.unwrapped"), "client");
    }

    /** Returns a table as the metastore has it, and not as Spark reads it. */
    private Object raw(String database, String name) throws Throwable {
        return Calls.call(client(), "getTable", new Object[] {database, name});
    }

    private void alter(String database, String name, Object raw) throws Throwable {
        Calls.call(client(), "alterTable", new Object[] {database, name, raw});
        altered(database, name);
    }

    /** Tells Spark's listeners what a call past its catalog has done. */
    private void altered(String database, String name) throws Throwable {
        catalog.refreshTable(SessionTables.identifier(database, name));
        Object bus = Reflect.path(session, "sparkContext.listenerBus");
        Calls.call(bus, "post", new Object[] {new AlterTableEvent(database, name, "table")});
    }
}
