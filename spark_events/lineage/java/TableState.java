package io.sparkevents.lineage;

import java.util.LinkedHashMap;
import org.apache.spark.sql.types.StructType;

/** Where a table is, and which columns it has, at some time. */
final class TableState {
    final LinkedHashMap identity;
    final StructType schema;

    /** @param schema null where it is not known */
    TableState(LinkedHashMap identity, StructType schema) {
        this.identity = identity;
        this.schema = schema == null ? new StructType() : schema;
    }
}
