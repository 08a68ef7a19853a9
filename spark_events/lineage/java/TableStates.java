package io.sparkevents.lineage;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.IcebergTables;
import io.sparkevents.jvm.Identities;
import io.sparkevents.jvm.Reflect;
import io.sparkevents.jvm.TableProperties;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.CatalogV2Util$;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.types.StructType;

/**
 * Looks tables up by what a plan names. Spark's own catalog is asked for its entry alone: Delta would run a Spark job
 * to say more.
 */
final class TableStates {
    private static final String SESSION_CATALOG = "spark_catalog";
    private final Identities identities;

    TableStates(Identities identities) {
        this.identities = identities;
    }

    /** Returns the table that a plan names; null where there is none. */
    TableState of(Object target) {
        if (Reflect.isA(target, "CatalogTable")) {
            return ofEntry(entry((TableIdentifier) Reflect.get(target, "identifier")));
        }
        if (target instanceof TableIdentifier) {
            return ofEntry(entry((TableIdentifier) target));
        }
        if (Reflect.isA(target, "ResolvedTable")) {
            return ofResolved(target, Reflect.get(target, "table"));
        }
        Object[] place = place(target);
        if (SESSION_CATALOG.equals(Reflect.get(place[0], "name"))) {
            return ofEntry(entry(identifier((Identifier) place[1])));
        }
        Object table = Identities.load(place[0], place[1]);
        return table == null ? null : ofTable(table, place[0], place[1]);
    }

    /** Returns a table as its catalog has it now, rather than as the plan has it. */
    TableState reloaded(Object resolved) {
        Object catalog = Reflect.get(resolved, "catalog");
        Identifier identifier = (Identifier) Reflect.get(resolved, "identifier");
        if (SESSION_CATALOG.equals(Reflect.get(catalog, "name"))) {
            return of(identifier(identifier));
        }
        Object table = Identities.load(catalog, identifier);
        return table == null ? null : ofTable(table, catalog, identifier);
    }

    private TableState ofResolved(Object resolved, Object table) {
        if (Reflect.isA(table, "V1Table")) {
            return ofEntry(Reflect.get(table, "v1Table"));
        }
        return ofTable(table, Reflect.get(resolved, "catalog"), Reflect.get(resolved, "identifier"));
    }

    private TableState ofTable(Object table, Object catalog, Object identifier) {
        LinkedHashMap identity = identities.ofV2Table(table);
        identities.addIdentifier(identity, catalog, identifier);
        return new TableState(identity, IcebergTables.schema(table));
    }

    private TableState ofEntry(Object entry) {
        if (entry == null) {
            return null;
        }
        return new TableState(identities.ofCatalogTable(entry), (StructType) Reflect.get(entry, "schema"));
    }

    private Object entry(TableIdentifier identifier) {
        return Reflect.call(Reflect.path(identities.session(), "sessionState.catalog"), "getTableMetadata", identifier);
    }

    private static TableIdentifier identifier(Identifier identifier) {
        String[] namespace = identifier.namespace();
        Object database = namespace.length == 0 ? null : namespace[namespace.length - 1];
        return new TableIdentifier(identifier.name(), scala.Option.apply(database));
    }

    /** Returns the catalog and the identifier of a name that Spark, or Iceberg's extension, has resolved. */
    private Object[] place(Object target) {
        List parts = Reflect.list(target);
        if (parts.isEmpty()) {
            return new Object[] {Reflect.get(target, "catalog"), Reflect.get(target, "identifier")};
        }
        Object manager = Reflect.path(identities.session(), "sessionState.catalogManager");
        Object catalog = parts.size() > 1 ? Reflect.call(manager, "catalog", parts.get(0)) : null;
        List names = catalog == null ? parts : parts.subList(1, parts.size());
        catalog = catalog == null ? Reflect.get(manager, "currentCatalog") : catalog;
        return new Object[] {catalog, identifier(names)};
    }

    /** Janino cannot call an interface's static methods itself. */
    private static Identifier identifier(List parts) {
        String[] namespace = (String[]) parts.subList(0, parts.size() - 1).toArray(new String[0]);
        Object[] arguments = {namespace, String.valueOf(parts.get(parts.size() - 1))};
        try {
            Class[] types = {String[].class, String.class};
            return (Identifier) Identifier.class.getMethod("of", types).invoke(null, arguments);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    /** Returns a table under its new name: in the old one's database if the new name has none. */
    TableState renamed(Object target, Object newName) {
        if (newName instanceof TableIdentifier) {
            TableIdentifier renamed = (TableIdentifier) newName;
            scala.Option database = ((TableIdentifier) target).database();
            boolean isWhole = renamed.database().isDefined();
            return of(isWhole ? renamed : new TableIdentifier(renamed.table(), database));
        }
        Object catalog = Reflect.get(target, "catalog");
        ArrayList names = Reflect.list(newName);
        if (names.size() == 1) {
            names.addAll(0, Reflect.list(Reflect.path(target, "identifier.namespace")));
        }
        Object catalogName = Reflect.get(catalog, "name");
        Identifier identifier = identifier(names);
        if (SESSION_CATALOG.equals(catalogName)) {
            return of(identifier(identifier));
        }
        Object table = Identities.load(catalog, identifier);
        if (table == null && names.size() > 2 && names.get(0).equals(catalogName)) {
            // Spark hands all of the name to the catalog, and Iceberg's of Hive takes its own name off.
            identifier = identifier(names.subList(1, names.size()));
            table = Identities.load(catalog, identifier);
        }
        return table == null ? null : ofTable(table, catalog, identifier);
    }

    /** Returns the table that CREATE or REPLACE makes, as the plan has it. */
    TableState planned(LogicalPlan node, Object target, TableState before) {
        if (Reflect.isA(target, "CatalogTable")) {
            return ofEntry(target);
        }
        if (target instanceof TableIdentifier) {
            return assumed(target);
        }
        StructType schema = (StructType) Reflect.get(node, "tableSchema");
        Object[] place = place(target);
        Object spec = Reflect.get(node, "tableSpec");
        LinkedHashMap identity = before == null ? identities.ofIdentifier(place[0], place[1], null, spec)
            : TableProperties.replaced(before.identity, Reflect.get(spec, "properties"));
        return new TableState(identity, schema);
    }

    /** Returns a table of which only the name is known. */
    TableState assumed(Object target) {
        if (Reflect.isA(target, "CatalogTable")) {
            return assumed(Reflect.get(target, "identifier"));
        }
        if (target instanceof TableIdentifier) {
            return new TableState(identities.ofTableName(target), null);
        }
        Object[] place = place(target);
        if (SESSION_CATALOG.equals(Reflect.get(place[0], "name"))) {
            return assumed(identifier((Identifier) place[1]));
        }
        LinkedHashMap identity = new LinkedHashMap();
        identities.addIdentifier(identity, place[0], place[1]);
        return new TableState(identity, null);
    }

    /** Returns the names of a table, as an identity has them. */
    Object names(Object target) {
        return assumed(target).identity.get("table");
    }

    /** Tells whether the table that is there is the one that a plan makes, and no older one. */
    boolean isNew(Object planned) {
        Object entry = entry((TableIdentifier) Reflect.get(planned, "identifier"));
        Long since = (Long) Reflect.get(entry, "createTime");
        Long made = (Long) Reflect.get(planned, "createTime");
        if (since == null || made == null || !columns(entry).equals(columns(planned))) {
            return false;
        }
        boolean isInSeconds = since % 1000 == 0; // as Hive keeps it
        return isInSeconds ? since / 1000 >= made / 1000 : since >= made;
    }

    private static String columns(Object entry) {
        return Arrays.toString(((StructType) Reflect.get(entry, "schema")).fieldNames()).toLowerCase();
    }

    /** Spark makes a relative location a folder of the database. */
    private static boolean isAbsolute(String location) {
        return location.startsWith("/") || location.indexOf(':') >= 0;
    }

    private static boolean hasColumnTwice(StructType schema) {
        String[] names = schema.fieldNames();
        HashSet known = new HashSet();
        for (int i = 0; i < names.length; i++) {
            if (!known.add(names[i].toLowerCase())) {
                return true;
            }
        }
        return false;
    }

    /** Returns a table with the changes of its columns, its properties, or its place that a plan has. */
    TableState altered(TableState state, LogicalPlan node) {
        String location = Reflect.text(Reflect.get(node, "location"));
        if (location != null && isAbsolute(location) && Reflect.get(node, "partitionSpec") == null) {
            LinkedHashMap identity = new LinkedHashMap(state.identity);
            identity.put("paths", Identities.paths(new Object[] {location}));
            return new TableState(identity, state.schema);
        }
        if (Reflect.isA(node, "SetTableProperties") || Reflect.isA(node, "UnsetTableProperties")) {
            Object set = Reflect.get(node, "properties");
            List removed = Reflect.list(Reflect.get(node, "propertyKeys"));
            return new TableState(TableProperties.altered(state.identity, set, removed), state.schema);
        }
        Object changes = Reflect.get(node, "changes");
        if (changes == null) {
            return state;
        }
        try {
            Object[] arguments = {state.schema, changes, scala.Option.apply(null), "ALTER TABLE"};
            StructType schema = (StructType) Calls.call(CatalogV2Util$.MODULE$, "applySchemaChanges", arguments);
            // A table that was read late has the columns already that the statement adds.
            return hasColumnTwice(schema) ? state : new TableState(state.identity, schema);
        } catch (Throwable error) {
            return state;
        }
    }
}
