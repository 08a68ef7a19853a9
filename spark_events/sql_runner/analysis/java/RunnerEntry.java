package io.sparkevents.sqlrunner;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Reflect;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.types.DataType;

/** The methods of the runner that Python calls. */
public final class RunnerEntry {
    private final Object session;

    public RunnerEntry(Object session) {
        this.session = session;
    }

    /** Returns the plan of a statement as it is parsed. */
    public Object parse(String sql) throws Throwable {
        return Calls.call(Reflect.path(session, "sessionState.sqlParser"), "parsePlan", new Object[] {sql});
    }

    /** Tells whether a parsed statement does something; Spark would do it as soon as it is asked for its rows. */
    public boolean isCommand(Object plan) {
        return Reflect.isA(plan, "Command") || Reflect.isA(plan, "ParsedStatement")
            // Spark runs what is in these as soon as it analyzes them.
            || Reflect.isA(plan, "CompoundBody") || Reflect.isA(plan, "Call") || plan.getClass().getName().contains("ExecuteImmediate");
    }

    /** Returns the relations that a parsed query names. */
    public Relations relations(Object plan) {
        Relations relations = new Relations(new HashMap());
        relations.apply(plan);
        return relations;
    }

    /** Returns the data of a parsed query that reads some relations as streams: see Relations. */
    public Object read(Object plan, Map streams) throws Throwable {
        Object changed = new Relations(streams).apply(plan);
        Class datasets = classOf("org.apache.spark.sql.classic.Dataset$", "org.apache.spark.sql.Dataset$");
        return Calls.call(datasets.getField("MODULE$").get(null), "ofRows", new Object[] {session, changed});
    }

    /** Returns the parts of a table's name. */
    public List nameParts(String name) throws Throwable {
        return Reflect.list(Calls.call(
            Reflect.path(session, "sessionState.sqlParser"), "parseMultipartIdentifier", new Object[] {name}));
    }

    /** Returns the parts of the name of the table that a statement makes; none for another statement. */
    public List createdTable(String sql) throws Throwable {
        Object plan = parse(sql);
        return Reflect.list(Reflect.isA(plan, "CreateTable") ? Reflect.path(plan, "name.nameParts") : null);
    }

    /** Returns the properties of a table by their names; of one of another catalog, no property has a value. */
    public Map table(String name) throws Throwable {
        return properties(relation(name));
    }

    /** Returns those of a table that is read as a stream, and that Spark maybe cannot read otherwise. */
    public Map source(String name) throws Throwable {
        Object table;
        try {
            table = relation(name);
        } catch (Throwable error) {
            table = ofSessionCatalog(nameParts(name));
            if (table == null) {
                throw error;
            }
        }
        return properties(table);
    }

    private static Map properties(Object table) throws Throwable {
        HashMap properties = new HashMap();
        properties.put("provider", Reflect.get(table, "provider"));
        properties.put("location", Reflect.location(Reflect.get(table, "location")));
        properties.put("options", Reflect.map(Reflect.path(table, "storage.properties")));
        properties.put("properties", Reflect.map(Reflect.get(table, "properties")));
        properties.put("partitions", Reflect.list(Reflect.get(table, "partitionColumnNames")));
        return properties;
    }

    private Object relation(String name) throws Throwable {
        Object dataset = Calls.call(session, "table", new Object[] {name});
        LogicalPlan plan = (LogicalPlan) Reflect.path(dataset, "queryExecution.analyzed");
        // Above the relation there may be a projection, as for columns of type CHAR.
        return Reflect.first(Reflect.list(plan.collectLeaves()).get(0), "catalogTable|tableMeta");
    }

    /** Returns a table of the session catalog; null for any other. */
    private Object ofSessionCatalog(List parts) throws Throwable {
        Object catalogs = Reflect.path(session, "sessionState.catalogManager");
        boolean isNamed = parts.size() > 2;
        Object catalog = isNamed ? parts.get(0) : Calls.call(Calls.call(catalogs, "currentCatalog"), "name");
        if (parts.size() > 3 || !"spark_catalog".equals(catalog)) {
            return null;
        }
        SessionCatalog tables = (SessionCatalog) Reflect.path(session, "sessionState.catalog");
        Object database = parts.size() > 1 ? parts.get(parts.size() - 2) : null;
        TableIdentifier identifier = new TableIdentifier((String) parts.get(parts.size() - 1), Calls.option(database));
        return tables.tableExists(identifier) ? tables.getTableMetadata(identifier) : null;
    }

    /** Tells whether Spark would store a value of one type in a column of another one, without losing any. */
    public boolean fits(String given, String wanted) throws Throwable {
        return Cast.canANSIStoreAssign(DataType.fromJson(given), DataType.fromDDL(wanted));
    }

    /** Throws where Spark cannot run a query as a stream in that output mode. */
    public void checkStreaming(LogicalPlan analyzed, String mode) {
        OutputMode outputMode = mode.equals("append") ? OutputMode.Append()
            : mode.equals("update") ? OutputMode.Update() : OutputMode.Complete();
        UnsupportedOperationChecker.checkForStreaming(analyzed, outputMode);
    }

    /** Returns an analyzed plan as JSON: see NormalForm. */
    public String normalForm(LogicalPlan analyzed) throws Throwable {
        return Calls.json(new NormalForm(session).of(analyzed));
    }

    /**
     * Lets a streaming query end after the micro-batch that it is in; Spark's own stop() breaks it off. Does nothing
     * where this Spark has no such way: what stops the query waits until it is idle all the same.
     */
    public void stopAfterBatch(Object query) throws Exception {
        Object stream = Reflect.get(query, "streamingQuery");
        Object state = Reflect.get(stream == null ? query : stream, "state");
        if (!(state instanceof AtomicReference)) {
            return;
        }
        Class now = ((AtomicReference) state).get().getClass();
        String name = now.getName().substring(0, now.getName().lastIndexOf('.')) + ".TERMINATED$";
        ((AtomicReference) state).set(now.getClassLoader().loadClass(name).getField("MODULE$").get(null));
    }

    /** Returns a writer of micro-batches for foreachBatch: see LaterFileSink. */
    public LaterFileSink laterFileSink(String path, String provider, List partitions, Map options, long batchesBefore)
        throws Throwable {
        return new LaterFileSink(session, path, provider, partitions, options, batchesBefore);
    }

    /**
     * Returns the last micro-batch of a query that a table's own log has; -1 for none, null where the table has no
     * such log: see WrittenEpochs.
     */
    public Long lastWritten(String table, String provider, String location, String queryId) throws Throwable {
        return provider.equals("delta") ? WrittenEpochs.inDelta(session, location, queryId)
            : provider.equals("kafka") ? null : WrittenEpochs.inIceberg(session, table, queryId);
    }

    /** Returns a class of Spark by its name, or by the one that it has in older versions. */
    static Class classOf(String name, String olderName) throws ClassNotFoundException {
        ClassLoader loader = Thread.currentThread().getContextClassLoader();
        try {
            return loader.loadClass(name);
        } catch (ClassNotFoundException error) {
            return loader.loadClass(olderName);
        }
    }
}
