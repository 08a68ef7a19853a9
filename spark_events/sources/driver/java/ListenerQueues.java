package io.sparkevents;

import com.codahale.metrics.Counter;
import com.codahale.metrics.Gauge;
import com.codahale.metrics.MetricRegistry;
import com.codahale.metrics.Timer;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.SparkContext;

/** How long listeners have taken to handle Spark's events, how many of these wait, and how many were dropped. */
public class ListenerQueues {
    private static final String QUEUE = "queue.";
    private static final String DROPPED = ".numDroppedEvents";
    private static final String WAITING = ".size";
    private static final String LISTENER = "listenerProcessingTime.";
    private static final double NS_IN_MS = 1e6;

    private final SparkContext context;
    private final ObjectMapper mapper = new ObjectMapper();
    private final HashMap handled = new HashMap(); // String, a listener's class -> double[] {events, ms}

    public ListenerQueues(SparkContext context) {
        this.context = context;
    }

    /** Returns a record as JSON; null if Spark stops. */
    public synchronized String read() throws Exception {
        if (context.isStopped()) {
            return null;
        }
        MetricRegistry registry = context.listenerBus().metrics().metricRegistry();
        LinkedHashMap record = new LinkedHashMap();
        record.put("Event", "SparkEventsListenerQueues");
        record.put("Time", Long.valueOf(System.currentTimeMillis()));
        record.put("Dropped", queues(registry.getCounters(), DROPPED));
        record.put("Waiting", queues(registry.getGauges(), WAITING));
        record.put("Listeners", listeners(registry));
        return mapper.writeValueAsString(record);
    }

    /** Returns the figures of queues whose names end so, by the names of the queues. */
    private static LinkedHashMap queues(Map metrics, String end) {
        LinkedHashMap queues = new LinkedHashMap();
        for (Iterator each = metrics.entrySet().iterator(); each.hasNext();) {
            Map.Entry metric = (Map.Entry) each.next();
            String name = (String) metric.getKey();
            if (name.startsWith(QUEUE) && name.endsWith(end)) {
                Object value = metric.getValue();
                queues.put(
                    name.substring(QUEUE.length(), name.length() - end.length()),
                    value instanceof Counter ? Long.valueOf(((Counter) value).getCount()) : ((Gauge) value).getValue());
            }
        }
        return queues;
    }

    /** Returns the time of each listener in ms: a timer has no sum, but the mean of the latest, for those since. */
    private LinkedHashMap listeners(MetricRegistry registry) {
        LinkedHashMap listeners = new LinkedHashMap();
        for (Iterator each = registry.getTimers().entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            String name = (String) entry.getKey();
            if (name.startsWith(LISTENER)) {
                Timer timer = (Timer) entry.getValue();
                double[] before = (double[]) handled.get(name);
                if (before == null) {
                    before = new double[2];
                    handled.put(name, before);
                }
                long events = timer.getCount();
                before[1] += (events - before[0]) * timer.getSnapshot().getMean() / NS_IN_MS;
                before[0] = events;
                listeners.put(name.substring(LISTENER.length()), Long.valueOf(Math.round(before[1])));
            }
        }
        return listeners;
    }
}
