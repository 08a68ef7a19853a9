package io.sparkevents.planned;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.CatalogV2Util$;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A catalog in memory, in the place of one that statements name: it reaches no server and no file. */
public final class PlannedTables implements TableCatalog, SupportsNamespaces {
    private static final String STATEMENT = "ALTER TABLE";
    private final String name;
    private final LinkedHashMap tables = new LinkedHashMap();
    private final LinkedHashMap namespaces = new LinkedHashMap();

    public PlannedTables(String name) {
        this.name = name;
    }

    /** Makes a session find this catalog by its name. */
    public void register(Object session) throws Throwable {
        Object catalogs = Reflect.field(Reflect.path(session, "sessionState.catalogManager"), "catalogs");
        if (catalogs == null) {
            throw new IllegalStateException("this Spark keeps its catalogs in another way: " + name + " is unknown");
        }
        Calls.call(catalogs, "put", new Object[] {name, this});
    }

    public void initialize(String given, CaseInsensitiveStringMap options) {
        throw new IllegalStateException(name + " is registered, and not made by Spark");
    }

    public String name() {
        return name;
    }

    // -- tables ------------------------------------------------------------------------------------------------

    public Identifier[] listTables(String[] namespace) {
        ArrayList listed = new ArrayList();
        for (Iterator keys = tables.keySet().iterator(); keys.hasNext();) {
            Identifier identifier = (Identifier) keys.next();
            if (Arrays.equals(identifier.namespace(), namespace)) {
                listed.add(identifier);
            }
        }
        return (Identifier[]) listed.toArray(new Identifier[0]);
    }

    public Table loadTable(Identifier identifier) throws NoSuchTableException {
        Table table = (Table) tables.get(identifier);
        if (table == null) {
            throw new NoSuchTableException(identifier);
        }
        return table;
    }

    /** A namespace need not be created first: others may have done so. */
    public Table createTable(Identifier identifier, StructType schema, Transform[] partitions, Map properties)
        throws TableAlreadyExistsException {
        if (tables.containsKey(identifier)) {
            throw new TableAlreadyExistsException(identifier);
        }
        put(identifier, schema, partitions, properties);
        return (Table) tables.get(identifier);
    }

    private void put(Identifier identifier, StructType schema, Transform[] partitions, Map properties) {
        tables.put(identifier, new PlannedTable(name + "." + identifier, schema, partitions, properties));
        if (identifier.namespace().length > 0 && !namespaceExists(identifier.namespace())) {
            createNamespace(identifier.namespace(), new HashMap());
        }
    }

    public Table alterTable(Identifier identifier, TableChange[] changes) throws NoSuchTableException {
        PlannedTable table = (PlannedTable) loadTable(identifier);
        Object util = CatalogV2Util$.MODULE$;
        List given = Arrays.asList(changes);
        try {
            StructType schema = (StructType) Calls.call(util, "applySchemaChanges",
                new Object[] {table.schema, Calls.seq(given), Calls.option(null), STATEMENT});
            Map properties = new HashMap(Reflect.map(
                Calls.call(util, "applyPropertiesChanges", new Object[] {table.properties, Calls.seq(given)})));
            put(identifier, schema, table.partitions, properties);
        } catch (RuntimeException error) {
            throw error;
        } catch (Throwable error) {
            throw new IllegalStateException(error);
        }
        return (Table) tables.get(identifier);
    }

    public boolean dropTable(Identifier identifier) {
        return tables.remove(identifier) != null;
    }

    public boolean purgeTable(Identifier identifier) {
        return dropTable(identifier);
    }

    public void renameTable(Identifier before, Identifier after)
        throws NoSuchTableException, TableAlreadyExistsException {
        PlannedTable table = (PlannedTable) loadTable(before);
        createTable(withoutCatalog(after), table.schema, table.partitions, table.properties);
        tables.remove(before);
    }

    /** Spark does not take the catalog off a new name; Iceberg does, where it keeps its tables in Hive. */
    private Identifier withoutCatalog(Identifier identifier) {
        String[] names = identifier.namespace();
        if (names.length < 2 || !names[0].equals(name)) {
            return identifier;
        }
        Object[] arguments = {Arrays.copyOfRange(names, 1, names.length), identifier.name()};
        try {
            // Janino cannot call an interface's static methods itself.
            Class[] types = {String[].class, String.class};
            return (Identifier) Identifier.class.getMethod("of", types).invoke(null, arguments);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    // -- namespaces --------------------------------------------------------------------------------------------

    public String[][] listNamespaces() {
        ArrayList listed = new ArrayList();
        for (Iterator keys = namespaces.keySet().iterator(); keys.hasNext();) {
            listed.add(((List) keys.next()).toArray(new String[0]));
        }
        return (String[][]) listed.toArray(new String[0][]);
    }

    public String[][] listNamespaces(String[] parent) {
        return new String[0][];
    }

    public boolean namespaceExists(String[] namespace) {
        return namespace.length == 0 || namespaces.containsKey(Arrays.asList(namespace));
    }

    public Map loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
        if (!namespaceExists(namespace)) {
            throw new NoSuchNamespaceException(namespace);
        }
        return new HashMap();
    }

    public void createNamespace(String[] namespace, Map metadata) {
        namespaces.put(Arrays.asList(namespace), metadata);
    }

    public void alterNamespace(String[] namespace, NamespaceChange[] changes) throws NoSuchNamespaceException {
        loadNamespaceMetadata(namespace);
    }

    public boolean dropNamespace(String[] namespace, boolean cascade) {
        Identifier[] inside = listTables(namespace);
        for (int i = 0; cascade && i < inside.length; i++) {
            dropTable(inside[i]);
        }
        return namespaces.remove(Arrays.asList(namespace)) != null;
    }
}
