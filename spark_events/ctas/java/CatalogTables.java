package io.sparkevents.ctas;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Reflect;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;

/** Tables of any catalog of Spark's connectors. */
public class CatalogTables {
    private final Object manager;

    public CatalogTables(Object session) {
        this.manager = Reflect.path(session, "sessionState.catalogManager");
    }

    public boolean has(String catalog) {
        return Boolean.TRUE.equals(Reflect.call(manager, "isCatalogRegistered", catalog));
    }

    /** Returns what is known of a table, as JSON; JSON's null where there is none. */
    public String state(String catalog, String database, String name) throws Throwable {
        TableCatalog tables = catalog(catalog);
        Identifier identifier = identifier(database, name);
        if (!tables.tableExists(identifier)) {
            return "null";
        }
        Map properties = tables.loadTable(identifier).properties();
        LinkedHashMap state = new LinkedHashMap();
        state.put("type", "TABLE");
        state.put("location", properties.get("location"));
        state.put("txid", properties.get(SessionTables.TXID));
        state.put("provider", properties.get("provider"));
        return Calls.json(state);
    }

    public void drop(String catalog, String database, String name) throws Throwable {
        catalog(catalog).dropTable(identifier(database, name));
    }

    TableCatalog catalog(String name) throws Throwable {
        return (TableCatalog) Calls.call(manager, "catalog", new Object[] {name});
    }

    /** Janino cannot call an interface's static method. */
    static Identifier identifier(String database, String name) throws Throwable {
        String[] namespace = database.isEmpty() ? new String[0] : database.split("\\.");
        return (Identifier) Identifier.class.getMethod("of", new Class[] {String[].class, String.class})
            .invoke(null, new Object[] {namespace, name});
    }
}
