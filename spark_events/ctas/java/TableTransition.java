package io.sparkevents.ctas;

import org.apache.spark.scheduler.SparkListenerEvent;

/** Tells Spark's listeners, and so its event log too, that a transaction of a table has come to another state. */
public class TableTransition implements SparkListenerEvent {
    private final java.util.Map fields;

    public TableTransition(java.util.Map fields) {
        this.fields = fields;
    }

    public java.util.Map getTransaction() {
        return fields;
    }
}
