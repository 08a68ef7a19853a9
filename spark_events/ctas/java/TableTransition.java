package io.sparkevents.ctas;

import java.util.Map;
import org.apache.spark.scheduler.SparkListenerEvent;

/** Tells Spark's listeners, and so its event log too, that a transaction of a table has come to another state. */
public class TableTransition implements SparkListenerEvent {
    private final Map transaction;

    public TableTransition(Map transaction) {
        this.transaction = transaction;
    }

    public Map getTransaction() {
        return transaction;
    }

    public long getTime() {
        return ((Number) transaction.get("timeMs")).longValue();
    }
}
