package io.sparkevents.ctas;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Products;
import io.sparkevents.jvm.Reflect;
import io.sparkevents.jvm.Written;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A CREATE TABLE AS SELECT as Spark understands it, and the ways of writing its rows elsewhere first. */
public class CreateStatement {
    private static final String PLANS = "org.apache.spark.sql.catalyst.plans.logical.";
    private static final String DATA_SOURCE = "org.apache.spark.sql.execution.datasources.DataSource";
    private static final int QUERY = 2;
    private static final int SPEC = 3;
    private final Object session;
    private final Object state;
    private final LogicalPlan parsed;
    private final String purpose;
    private final QueryExecution execution;
    private final LogicalPlan command;

    private CreateStatement(Object session, LogicalPlan parsed, String purpose) throws Throwable {
        this.session = session;
        this.state = Reflect.get(session, "sessionState");
        this.parsed = parsed;
        this.purpose = purpose;
        // Spark knows REPLACE for few catalogs; what it would create is the same without it.
        QueryExecution created = analyse(asCreate(parsed));
        boolean native2 = Reflect.simpleName(created.analyzed().getClass()).equals("CreateTableAsSelect");
        this.execution = native2 ? analyse(parsed) : created;
        this.command = execution.analyzed();
    }

    /** Returns the statement, with another query where one is given; null where the text is none. */
    public static CreateStatement parse(Object session, String sql, Object query) throws Throwable {
        Object parser = Calls.call(Reflect.get(session, "sessionState"), "sqlParser");
        LogicalPlan parsed = (LogicalPlan) Calls.call(parser, "parsePlan", new Object[] {sql});
        if (query != null) {
            Object[] fields = fields(parsed);
            fields[QUERY] = query;
            parsed = (LogicalPlan) Products.create(parsed.getClass(), fields);
        }
        String name = Reflect.simpleName(parsed.getClass());
        boolean last = name.endsWith("TableAsSelect")
            && ((Boolean) ((scala.Product) parsed).productElement(5)).booleanValue();
        if (name.equals("CreateTableAsSelect")) {
            return new CreateStatement(session, parsed, last ? "CREATE_IF_NOT_EXISTS" : "CREATE");
        }
        if (name.equals("ReplaceTableAsSelect")) {
            return new CreateStatement(session, parsed, last ? "CREATE_OR_REPLACE" : "REPLACE");
        }
        return null;
    }

    public QueryExecution execution() {
        return execution;
    }

    /** Returns what it makes, as JSON. */
    public String describe() throws Throwable {
        LinkedHashMap found = new LinkedHashMap();
        found.put("purpose", purpose);
        String name = Reflect.simpleName(command.getClass());
        if (name.equals("CreateDataSourceTableAsSelectCommand")) {
            found.put("kind", "files");
            describeTable(found, Reflect.get(command, "table"));
            found.put("is_files", Boolean.valueOf(isFiles((String) found.get("provider"))));
        } else if (name.equals("CreateHiveTableAsSelectCommand")) {
            found.put("kind", "hive");
            describeTable(found, Reflect.get(command, "tableDesc"));
        } else if (name.endsWith("TableAsSelect")) {
            found.put("kind", "v2");
            Object catalog = Reflect.path(command, "name.catalog");
            Object identifier = Reflect.path(command, "name.identifier");
            found.put("catalog", Reflect.get(catalog, "name"));
            found.put("database", String.join(".", (String[]) Calls.call(identifier, "namespace")));
            found.put("table", Reflect.get(identifier, "name"));
            found.put("provider", Reflect.path(command, "tableSpec.provider"));
            found.put("location", Reflect.path(command, "tableSpec.location"));
            found.put("partition_by", texts(Reflect.get(command, "partitioning")));
            found.put("staging", Boolean.valueOf(Reflect.isA(catalog, "StagingTableCatalog")));
            found.put("catalog_class", catalog.getClass().getName());
        } else {
            found.put("kind", name);
        }
        found.put("is_streaming", Reflect.path(command, "query.isStreaming"));
        return Calls.json(found);
    }

    private void describeTable(LinkedHashMap found, Object table) throws Throwable {
        Object catalog = Reflect.get(state, "catalog");
        Object database = Reflect.path(table, "identifier.database");
        Object storage = Reflect.get(table, "storage");
        found.put("catalog", "spark_catalog");
        found.put("database", database == null ? Calls.call(catalog, "getCurrentDatabase") : database);
        found.put("table", Reflect.path(table, "identifier.table"));
        found.put("provider", Reflect.get(table, "provider"));
        found.put("managed", Boolean.valueOf("MANAGED".equals(Reflect.path(table, "tableType.name"))));
        found.put("location", Reflect.location(Reflect.get(storage, "locationUri")));
        found.put("options", Reflect.map(Reflect.get(storage, "properties")));
        found.put("input_format", Reflect.get(storage, "inputFormat"));
        found.put("output_format", Reflect.get(storage, "outputFormat"));
        found.put("serde", Reflect.get(storage, "serde"));
        found.put("properties", Reflect.map(Reflect.get(table, "properties")));
        found.put("comment", Reflect.get(table, "comment"));
        found.put("partition_by", texts(Reflect.get(table, "partitionColumnNames")));
        Object bucket = Reflect.get(table, "bucketSpec");
        if (bucket != null) {
            found.put("buckets", Reflect.get(bucket, "numBuckets"));
            found.put("bucket_by", texts(Reflect.get(bucket, "bucketColumnNames")));
            found.put("sort_by", texts(Reflect.get(bucket, "sortColumnNames")));
        }
        ArrayList partitions = texts(Reflect.get(table, "partitionColumnNames"));
        StructType schema = schema(partitions);
        found.put("schema", schema.json());
        int columns = schema.fields().length;
        ArrayList types = SessionTables.types(schema);
        found.put("data_types", types.subList(0, columns - partitions.size()));
        found.put("partition_types", types.subList(columns - partitions.size(), columns));
    }

    private static ArrayList texts(Object values) {
        ArrayList texts = Reflect.list(values);
        for (int i = 0; i < texts.size(); i++) {
            texts.set(i, String.valueOf(texts.get(i)));
        }
        return texts;
    }

    /** Returns the schema that the table will have: all columns may be null, those of partitions are last. */
    private StructType schema(ArrayList partitions) throws Throwable {
        Object query = Reflect.get(command, "query");
        StructType schema = (StructType) Reflect.path(query, "schema.asNullable");
        Object utils = getClass().getClassLoader()
            .loadClass("org.apache.spark.sql.catalyst.util.CharVarcharUtils$").getField("MODULE$").get(null);
        schema = (StructType) Calls.call(utils, "getRawSchema", new Object[] {schema});
        StructType data = new StructType();
        StructField[] fields = schema.fields();
        for (int i = 0; i < fields.length; i++) {
            if (place(partitions, fields[i].name()) < 0) {
                data = data.add(fields[i]);
            }
        }
        for (int p = 0; p < partitions.size(); p++) {
            for (int i = 0; i < fields.length; i++) {
                if (place(partitions, fields[i].name()) == p) {
                    data = data.add(fields[i]);
                }
            }
        }
        return data;
    }

    private static int place(ArrayList names, String name) {
        for (int i = 0; i < names.size(); i++) {
            if (name.equalsIgnoreCase((String) names.get(i))) {
                return i;
            }
        }
        return -1;
    }

    private boolean isFiles(String provider) throws Throwable {
        Class companion = getClass().getClassLoader().loadClass(DATA_SOURCE + "$");
        Object conf = Reflect.get(state, "conf");
        Class found = (Class) Calls.call(companion.getField("MODULE$").get(null), "lookupDataSource",
            new Object[] {provider, conf});
        return org.apache.spark.sql.execution.datasources.FileFormat.class.isAssignableFrom(found)
            || Reflect.isA(found.getDeclaredConstructor(new Class[0]).newInstance(new Object[0]), "FileDataSourceV2");
    }

    // -- writing -----------------------------------------------------------------------------------------------

    /** Writes the rows as files into a folder of their own; returns how many, as JSON. */
    public String writeFiles(String folder) throws Throwable {
        Object table = Reflect.get(command, "table");
        HashMap options = new HashMap(Reflect.map(Reflect.path(table, "storage.properties")));
        options.put("path", folder);
        Object source = Products.create(getClass().getClassLoader().loadClass(DATA_SOURCE), new Object[] {
            session, Reflect.get(table, "provider"), Calls.seq(null), scala.Option.empty(),
            Calls.call(table, "partitionColumnNames"), Calls.call(table, "bucketSpec"), Calls.map(options),
            scala.Option.empty()});
        LogicalPlan write = (LogicalPlan) Calls.call(source, "planForWriting",
            new Object[] {SaveMode.ErrorIfExists, Reflect.get(command, "query")});
        return run(write);
    }

    /** Writes the rows into a table of Hive of another name, which does not own its folder. */
    public String writeHive(String name, String folder, String properties) throws Throwable {
        Object table = Reflect.get(command, "tableDesc");
        HashMap identifier = new HashMap();
        identifier.put("table", name);
        HashMap storage = new HashMap();
        storage.put("locationUri", Calls.option(new org.apache.hadoop.fs.Path(folder).toUri()));
        HashMap changes = new HashMap();
        changes.put("identifier", Products.copy(Reflect.get(table, "identifier"), identifier));
        changes.put("storage", Products.copy(Reflect.get(table, "storage"), storage));
        changes.put("tableType", org.apache.spark.sql.catalyst.catalog.CatalogTableType.EXTERNAL());
        HashMap all = new HashMap(Reflect.map(Reflect.get(table, "properties")));
        all.putAll(Calls.parse(properties));
        changes.put("properties", Calls.map(all));
        HashMap command = new HashMap();
        command.put("tableDesc", Products.copy(table, changes));
        return run((LogicalPlan) Products.copy(this.command, command));
    }

    /** Lets Spark create and write the table by itself, under another name where one is given. */
    public String writeTable(String name, String properties) throws Throwable {
        LogicalPlan plan = parsed;
        Object spec = ((scala.Product) parsed).productElement(SPEC);
        HashMap all = new HashMap(Reflect.map(Reflect.get(spec, "properties")));
        all.putAll(Calls.parse(properties));
        HashMap changes = new HashMap();
        changes.put("properties", Calls.map(all));
        Object[] fields = fields(plan);
        fields[SPEC] = Products.copy(spec, changes);
        fields[QUERY] = Reflect.get(command, "query");
        if (name != null) {
            fields[0] = renamed(fields[0], name);
            fields[5] = Boolean.FALSE;
            return run((LogicalPlan) Products.create(type("CreateTableAsSelect"), fields));
        }
        return run((LogicalPlan) Products.create(plan.getClass(), fields));
    }

    private static Object renamed(Object name, String table) throws Throwable {
        ArrayList parts = Reflect.list(Reflect.get(name, "nameParts"));
        parts.set(parts.size() - 1, table);
        HashMap changes = new HashMap();
        changes.put("nameParts", Calls.seq(parts));
        return Products.copy(name, changes);
    }

    private String run(LogicalPlan write) throws Throwable {
        QueryExecution execution = (QueryExecution) Calls.call(state, "executePlan",
            new Object[] {write, CommandExecutionMode.ALL()});
        execution.commandExecuted();
        return Calls.json(Written.by(execution));
    }

    // -- plans -------------------------------------------------------------------------------------------------

    private QueryExecution analyse(LogicalPlan plan) throws Throwable {
        QueryExecution execution = (QueryExecution) Calls.call(state, "executePlan",
            new Object[] {plan, CommandExecutionMode.SKIP()});
        execution.assertAnalyzed();
        return execution;
    }

    private LogicalPlan asCreate(LogicalPlan plan) throws Throwable {
        if (!purpose.endsWith("REPLACE")) {
            return plan;
        }
        Object[] fields = fields(plan);
        fields[5] = Boolean.FALSE;
        return (LogicalPlan) Products.create(type("CreateTableAsSelect"), fields);
    }

    private static Object[] fields(LogicalPlan plan) {
        Object[] fields = new Object[7];
        for (int i = 0; i < fields.length; i++) {
            fields[i] = ((scala.Product) plan).productElement(i);
        }
        return fields;
    }

    private Class type(String name) throws ClassNotFoundException {
        return getClass().getClassLoader().loadClass(PLANS + name);
    }
}
