package io.sparkevents.ctas;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Products;
import io.sparkevents.jvm.Reflect;
import io.sparkevents.jvm.Written;
import java.util.ArrayList;
import java.util.HashMap;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.QueryExecution;

/** A CREATE TABLE AS SELECT as Spark understands it, and the ways of writing its rows elsewhere first. */
public class CreateStatement {
    private static final String CREATE = "org.apache.spark.sql.catalyst.plans.logical.CreateTableAsSelect";
    private static final String DATA_SOURCE = "org.apache.spark.sql.execution.datasources.DataSource";
    // Where the parts of a parsed statement are; the flag is IF NOT EXISTS, and OR CREATE of a REPLACE.
    private static final int NAME = 0;
    private static final int QUERY = 2;
    private static final int SPEC = 3;
    private static final int FLAG = 5;
    private static final int PARTS = 7;
    private final Object session;
    private final LogicalPlan parsed;
    private final String purpose;
    private final QueryExecution execution;
    private final LogicalPlan command;

    private CreateStatement(Object session, LogicalPlan parsed, String purpose) throws Throwable {
        this.session = session;
        this.parsed = parsed;
        this.purpose = purpose;
        // Spark knows REPLACE for few catalogs; what it would create is the same without it.
        QueryExecution created = analyze(purpose.endsWith("REPLACE") ? create(parts(parsed)) : parsed);
        boolean isOfConnector = Reflect.simpleName(created.analyzed().getClass()).equals("CreateTableAsSelect");
        this.execution = isOfConnector ? analyze(parsed) : created;
        this.command = execution.analyzed();
    }

    /** Returns the statement, with another query where one is given; null where the text is none. */
    public static CreateStatement parse(Object session, String sql, Object query) throws Throwable {
        LogicalPlan parsed = (LogicalPlan) SparkObjects.parsed(session, sql);
        String name = Reflect.simpleName(parsed.getClass());
        boolean isReplace = name.equals("ReplaceTableAsSelect");
        if (!isReplace && !name.equals("CreateTableAsSelect")) {
            return null;
        }
        Object[] parts = parts(parsed);
        if (query != null) {
            parts[QUERY] = query;
            parsed = (LogicalPlan) Products.create(parsed.getClass(), parts);
        }
        boolean flag = ((Boolean) parts[FLAG]).booleanValue();
        if (isReplace) {
            return new CreateStatement(session, parsed, flag ? "CREATE_OR_REPLACE" : "REPLACE");
        }
        return new CreateStatement(session, parsed, flag ? "CREATE_IF_NOT_EXISTS" : "CREATE");
    }

    public QueryExecution execution() {
        return execution;
    }

    /** Returns what it makes, as JSON. */
    public String describe() throws Throwable {
        return Calls.json(new StatementDescription(session, command).describe(purpose));
    }

    /**
     * Returns whether the rows come from a table of the session catalog, such as the one that they replace, by its
     * name or by its folder.
     */
    public boolean reads(String database, String table, String location) throws Throwable {
        return !new TableReads(session, database, table, location).in(query()).isEmpty();
    }

    /** Lets the query find the files of such a table anew: Spark remembers those of tables that it has read. */
    public void refresh(String database, String table, String location) throws Throwable {
        new TableReads(session, database, table, location).refresh(query());
    }

    private LogicalPlan query() {
        return (LogicalPlan) Reflect.get(command, "query");
    }

    /** Writes the rows as files into a folder of their own; returns how many, as JSON. */
    public String writeFiles(String folder) throws Throwable {
        Object table = Reflect.get(command, "table");
        HashMap options = new HashMap(Reflect.map(Reflect.path(table, "storage.properties")));
        options.put("path", folder);
        Object source = Products.create(SparkObjects.load(DATA_SOURCE), new Object[] {
            session, Reflect.get(table, "provider"), Calls.seq(null), scala.Option.empty(),
            Calls.call(table, "partitionColumnNames"), Calls.call(table, "bucketSpec"), Calls.map(options),
            scala.Option.empty()});
        return run(Calls.call(source, "planForWriting",
            new Object[] {SaveMode.ErrorIfExists, Reflect.get(command, "query")}));
    }

    /** Writes the rows into a table of Hive of another name, which does not own its folder. */
    public String writeHive(String name, String folder, String txid) throws Throwable {
        Object table = Reflect.get(command, "tableDesc");
        Object identifier = SparkObjects.copy(Reflect.get(table, "identifier"), new Object[] {"table", name});
        Object storage = SparkObjects.copy(Reflect.get(table, "storage"),
            new Object[] {"locationUri", Calls.option(new Path(folder).toUri())});
        Object hidden = SparkObjects.copy(table, new Object[] {"identifier", identifier, "storage", storage,
            "tableType", CatalogTableType.EXTERNAL(), "properties", properties(table, txid)});
        return run(SparkObjects.copy(command, new Object[] {"tableDesc", hidden}));
    }

    /** Lets Spark create and write the table by itself; the name, and the id as a property, may be null. */
    public String writeTable(String name, String txid) throws Throwable {
        Object[] parts = parts(parsed);
        parts[SPEC] = SparkObjects.copy(parts[SPEC], new Object[] {"properties", properties(parts[SPEC], txid)});
        parts[QUERY] = Reflect.get(command, "query");
        if (name == null) {
            return run(Products.create(parsed.getClass(), parts));
        }
        ArrayList names = Reflect.list(Reflect.get(parts[NAME], "nameParts"));
        names.set(names.size() - 1, name);
        parts[NAME] = SparkObjects.copy(parts[NAME], new Object[] {"nameParts", Calls.seq(names)});
        return run(create(parts));
    }

    private static Object properties(Object table, String txid) {
        HashMap properties = new HashMap(Reflect.map(Reflect.get(table, "properties")));
        if (txid != null) {
            properties.put(SessionTables.TXID, txid);
        }
        return Calls.map(properties);
    }

    private String run(Object write) throws Throwable {
        QueryExecution execution = SparkObjects.execution(session, write, CommandExecutionMode.ALL());
        execution.commandExecuted();
        return Calls.json(Written.by(execution));
    }

    private QueryExecution analyze(LogicalPlan plan) throws Throwable {
        QueryExecution execution = SparkObjects.execution(session, plan, CommandExecutionMode.SKIP());
        execution.assertAnalyzed();
        return execution;
    }

    /** Returns a plain CREATE TABLE AS SELECT of the parts of a statement. */
    private static LogicalPlan create(Object[] parts) throws Throwable {
        parts[FLAG] = Boolean.FALSE;
        return (LogicalPlan) Products.create(SparkObjects.load(CREATE), parts);
    }

    private static Object[] parts(LogicalPlan statement) {
        Object[] parts = new Object[PARTS];
        for (int i = 0; i < parts.length; i++) {
            parts[i] = ((scala.Product) statement).productElement(i);
        }
        return parts;
    }
}
