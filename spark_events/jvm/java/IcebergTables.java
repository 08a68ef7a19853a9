package io.sparkevents.jvm;

import java.util.LinkedHashMap;
import org.apache.spark.sql.types.StructType;

/**
 * Reads tables of Iceberg without a call that may refresh them. Spark's catalog hands the same table to all, and one
 * that is refreshed on another thread while a statement changes it has other metadata than the statement began with:
 * Iceberg refuses to commit that.
 */
public final class IcebergTables {
    private static final String[] LOADED = {"currentMetadata", "current"};

    private IcebergTables() {
    }

    /** Returns what a table of Iceberg has loaded last; null for another table. */
    public static Object metadata(Object table) {
        Object own = Reflect.isA(table, "SparkTable") ? Reflect.get(table, "table") : table;
        Object operations = Reflect.get(own, "operations");
        Object metadata = null;
        for (int i = 0; i < LOADED.length && metadata == null; i++) {
            metadata = Reflect.field(operations, LOADED[i]);
        }
        return Reflect.isA(metadata, "TableMetadata") ? metadata : null;
    }

    /** Returns a table's properties, with its location and its format among them. */
    static LinkedHashMap properties(Object metadata) {
        LinkedHashMap properties = Reflect.map(Reflect.get(metadata, "properties"));
        properties.put("provider", "iceberg");
        properties.put("location", Reflect.text(Reflect.get(metadata, "location")));
        return properties;
    }

    /** Returns the columns of a table; for one of Iceberg in a plan, as it was when the plan was analyzed. */
    public static StructType schema(Object table) {
        Object analyzed = Reflect.field(table, "lazyTableSchema");
        if (analyzed instanceof StructType) {
            return (StructType) analyzed;
        }
        Object metadata = metadata(table);
        if (metadata == null) {
            return (StructType) Reflect.get(table, "schema");
        }
        Object schema = Reflect.get(metadata, "schema");
        return (StructType) callStatic(schema, "org.apache.iceberg.spark.SparkSchemaUtil", "convert", schema);
    }

    /** Tells whether a catalog of Spark keeps tables of Iceberg, and hands the same ones to all. */
    static boolean isShared(Object catalog) {
        return Reflect.isA(cache(catalog), "CachingCatalog");
    }

    /** Asks such a catalog for a table that nobody else has; null where it has none. */
    static Object load(Object catalog, Object identifier) {
        Object name = callStatic(
            cache(catalog), "org.apache.iceberg.spark.Spark3Util", "identifierToTableIdentifier", identifier);
        return name == null ? null : Reflect.call(Reflect.field(cache(catalog), "catalog"), "loadTable", name);
    }

    private static Object cache(Object catalog) {
        return Reflect.field(catalog, "icebergCatalog");
    }

    /** Calls a static method of a class of Iceberg; null where there is none, or where it throws. */
    private static Object callStatic(Object near, String owner, String name, Object argument) {
        try {
            java.lang.reflect.Method[] methods = near.getClass().getClassLoader().loadClass(owner).getMethods();
            for (int i = 0; i < methods.length; i++) {
                Class[] types = methods[i].getParameterTypes();
                if (methods[i].getName().equals(name) && types.length == 1 && types[0].isInstance(argument)) {
                    return methods[i].invoke(null, new Object[] {argument});
                }
            }
        } catch (Throwable missing) {
            return null;
        }
        return null;
    }
}
