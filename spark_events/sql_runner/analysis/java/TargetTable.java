package io.sparkevents.sqlrunner;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Reflect;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.DataType;

/** Looks up a table that takes rows, and whether rows fit it. */
public final class TargetTable {
    /** Returns the parts of the name of the table that a parsed statement makes; none for another statement. */
    public static List created(Object parsed) {
        Object name = Reflect.isA(parsed, "CreateTable") ? Reflect.path(parsed, "name.nameParts") : null;
        return Reflect.list(name);
    }

    /** Returns the properties of a table by their names; of one of another catalog, no property has a value. */
    public static Map find(Object session, String name) throws Throwable {
        Object dataset = Calls.call(session, "table", new Object[] {name});
        LogicalPlan plan = (LogicalPlan) Reflect.path(dataset, "queryExecution.analyzed");
        Map properties = new HashMap();
        Object table = catalogTable(plan);
        properties.put("provider", Reflect.get(table, "provider"));
        properties.put("location", Reflect.location(Reflect.get(table, "location")));
        properties.put("options", Reflect.map(Reflect.path(table, "storage.properties")));
        properties.put("properties", Reflect.map(Reflect.get(table, "properties")));
        properties.put("partitions", Reflect.list(Reflect.get(table, "partitionColumnNames")));
        return properties;
    }

    public static boolean fits(String given, String wanted) throws Throwable {
        return Cast.canANSIStoreAssign(DataType.fromJson(given), DataType.fromDDL(wanted));
    }

    /** Above the relation there may be a projection, as for columns of type CHAR. */
    private static Object catalogTable(LogicalPlan plan) {
        Object leaf = Reflect.list(plan.collectLeaves()).get(0);
        Object table = Reflect.get(leaf, "catalogTable");
        return table == null ? Reflect.get(leaf, "tableMeta") : table;
    }
}
