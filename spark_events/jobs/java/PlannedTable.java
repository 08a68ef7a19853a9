package io.sparkevents.planned;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table that statements are analyzed over: it has columns, no rows, and no place. */
public final class PlannedTable implements SupportsRead, SupportsWrite {
    private final String name;
    final StructType schema;
    final Transform[] partitions;
    final Map properties;

    PlannedTable(String name, StructType schema, Transform[] partitions, Map properties) {
        this.name = name;
        this.schema = schema;
        this.partitions = partitions;
        this.properties = properties;
    }

    public String name() {
        return name;
    }

    public StructType schema() {
        return schema;
    }

    public Transform[] partitioning() {
        return partitions;
    }

    public Map properties() {
        return properties;
    }

    public Set capabilities() {
        return new HashSet(Arrays.asList(new TableCapability[] {
            TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ, TableCapability.BATCH_WRITE,
            TableCapability.STREAMING_WRITE, TableCapability.TRUNCATE, TableCapability.OVERWRITE_BY_FILTER,
            TableCapability.OVERWRITE_DYNAMIC
        }));
    }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        throw new UnsupportedOperationException(name + " has no rows: statements are analyzed, not run");
    }

    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        throw new UnsupportedOperationException(name + " takes no rows: statements are analyzed, not run");
    }
}
