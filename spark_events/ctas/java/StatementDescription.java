package io.sparkevents.ctas;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What a CREATE TABLE AS SELECT makes: Python decides by it how, and the journal keeps it. */
class StatementDescription {
    private static final int NONE = -1;
    private final Object state;
    private final Object command;
    private final LinkedHashMap fields = new LinkedHashMap();

    /** The command is what Spark's analyzer has made of the statement. */
    StatementDescription(Object session, Object command) {
        this.state = Reflect.get(session, "sessionState");
        this.command = command;
    }

    Map describe(String purpose) throws Throwable {
        fields.put("purpose", purpose);
        String name = Reflect.simpleName(command.getClass());
        if (name.equals("CreateDataSourceTableAsSelectCommand")) {
            fields.put("kind", "files");
            addSessionTable(Reflect.get(command, "table"));
            fields.put("is_files", Boolean.valueOf(isFiles((String) fields.get("provider"))));
        } else if (name.equals("CreateHiveTableAsSelectCommand")) {
            fields.put("kind", "hive");
            addSessionTable(Reflect.get(command, "tableDesc"));
        } else if (name.endsWith("TableAsSelect")) {
            fields.put("kind", "v2");
            addConnectorTable();
        } else {
            fields.put("kind", name);
        }
        fields.put("is_streaming", Reflect.path(command, "query.isStreaming"));
        return fields;
    }

    private void addConnectorTable() throws Throwable {
        Object catalog = Reflect.path(command, "name.catalog");
        Object identifier = Reflect.path(command, "name.identifier");
        fields.put("catalog", Reflect.get(catalog, "name"));
        fields.put("database", String.join(".", (String[]) Calls.call(identifier, "namespace")));
        fields.put("table", Reflect.get(identifier, "name"));
        fields.put("provider", Reflect.path(command, "tableSpec.provider"));
        fields.put("location", Reflect.path(command, "tableSpec.location"));
        ArrayList partitions = Reflect.list(Reflect.get(command, "partitioning"));
        for (int i = 0; i < partitions.size(); i++) {
            partitions.set(i, String.valueOf(partitions.get(i)));
        }
        fields.put("partition_by", partitions);
        fields.put("staging", Boolean.valueOf(Reflect.isA(catalog, "StagingTableCatalog")));
        fields.put("catalog_class", catalog.getClass().getName());
    }

    private void addSessionTable(Object table) throws Throwable {
        Object database = Reflect.path(table, "identifier.database");
        Object storage = Reflect.get(table, "storage");
        fields.put("catalog", "spark_catalog");
        fields.put("database",
            database == null ? Calls.call(Reflect.get(state, "catalog"), "getCurrentDatabase") : database);
        fields.put("table", Reflect.path(table, "identifier.table"));
        fields.put("provider", Reflect.get(table, "provider"));
        fields.put("managed", Boolean.valueOf("MANAGED".equals(Reflect.path(table, "tableType.name"))));
        fields.put("location", Reflect.location(Reflect.get(storage, "locationUri")));
        fields.put("options", Reflect.map(Reflect.get(storage, "properties")));
        fields.put("input_format", Reflect.get(storage, "inputFormat"));
        fields.put("output_format", Reflect.get(storage, "outputFormat"));
        fields.put("serde", Reflect.get(storage, "serde"));
        fields.put("properties", Reflect.map(Reflect.get(table, "properties")));
        fields.put("comment", Reflect.get(table, "comment"));
        Object buckets = Reflect.get(table, "bucketSpec");
        if (buckets != null) {
            fields.put("buckets", Reflect.get(buckets, "numBuckets"));
            fields.put("bucket_by", Reflect.list(Reflect.get(buckets, "bucketColumnNames")));
            fields.put("sort_by", Reflect.list(Reflect.get(buckets, "sortColumnNames")));
        }
        addColumns(Reflect.list(Reflect.get(table, "partitionColumnNames")));
    }

    private void addColumns(ArrayList partitions) throws Throwable {
        StructType schema = schema(partitions);
        ArrayList types = SessionTables.types(schema);
        int dataColumns = types.size() - partitions.size();
        fields.put("partition_by", partitions);
        fields.put("schema", schema.json());
        fields.put("data_types", types.subList(0, dataColumns));
        fields.put("partition_types", types.subList(dataColumns, types.size()));
    }

    /** Returns the schema that the table will have: all columns may be null, those of partitions are last. */
    private StructType schema(ArrayList partitions) throws Throwable {
        Object nullable = Reflect.path(command, "query.schema.asNullable");
        Object utils = SparkObjects.module("org.apache.spark.sql.catalyst.util.CharVarcharUtils");
        StructField[] columns = ((StructType) Calls.call(utils, "getRawSchema", new Object[] {nullable})).fields();
        StructType schema = new StructType();
        for (int place = NONE; place < partitions.size(); place++) {
            for (int i = 0; i < columns.length; i++) {
                if (place(columns[i].name(), partitions) == place) {
                    schema = schema.add(columns[i]);
                }
            }
        }
        return schema;
    }

    /** Returns the place of a column among those of partitions; NONE where it is not one of them. */
    private static int place(String column, ArrayList partitions) {
        for (int i = 0; i < partitions.size(); i++) {
            if (column.equalsIgnoreCase((String) partitions.get(i))) {
                return i;
            }
        }
        return NONE;
    }

    private boolean isFiles(String provider) throws Throwable {
        Object sources = SparkObjects.module("org.apache.spark.sql.execution.datasources.DataSource");
        Class format = (Class) Calls.call(sources, "lookupDataSource",
            new Object[] {provider, Reflect.get(state, "conf")});
        return FileFormat.class.isAssignableFrom(format)
            || Reflect.isA(format.getDeclaredConstructor(new Class[0]).newInstance(new Object[0]), "FileDataSourceV2");
    }
}
