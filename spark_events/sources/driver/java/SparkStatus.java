package io.sparkevents;

import com.codahale.metrics.Counter;
import com.codahale.metrics.Gauge;
import com.codahale.metrics.Histogram;
import com.codahale.metrics.Metric;
import com.codahale.metrics.MetricRegistry;
import com.codahale.metrics.Timer;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.NoSuchElementException;
import org.apache.spark.JobExecutionStatus;
import org.apache.spark.SparkContext;
import org.apache.spark.metrics.MetricsSystem;
import org.apache.spark.metrics.source.Source;
import org.apache.spark.status.AppStatusStore;
import org.apache.spark.status.StageDataWrapper;
import org.apache.spark.status.api.v1.ExecutorSummary;
import org.apache.spark.status.api.v1.JobData;
import org.apache.spark.status.api.v1.StageData;

/**
 * What Spark's status store, from which its REST API answers, and the driver's metrics system know now. Only what runs
 * is read, and once more what has ended since: a reading does not grow with tasks, nor with what ran long ago.
 */
public class SparkStatus {
    private static final double NS_IN_MS = 1e6;

    private final SparkContext context;
    private final String[] names;
    private final String[] driverMetrics;
    private final ObjectMapper mapper = new ObjectMapper();
    private final HashMap getters = new HashMap(); // Class -> ArrayList of its Methods that are named
    private HashMap stages = new HashMap(); // String -> int[] {stage, attempt}, of those in the last reading
    private HashSet jobs = new HashSet(); // Integer, of those in the last reading

    /** Takes the names of the REST API's figures, and of the driver's metrics as source.name. */
    public SparkStatus(SparkContext context, String[] names, String[] driverMetrics) {
        this.context = context;
        this.names = names;
        this.driverMetrics = driverMetrics;
    }

    /** Returns a record as JSON; null if Spark stops, which takes it all away. */
    public synchronized String read() throws Exception {
        try {
            return context.isStopped() ? null : readAll();
        } catch (Exception error) {
            if (context.isStopped()) {
                return null;
            }
            throw error;
        }
    }

    private String readAll() throws Exception {
        AppStatusStore store = context.statusStore();
        LinkedHashMap record = new LinkedHashMap();
        record.put("Event", "SparkEventsStatus");
        record.put("Time", Long.valueOf(System.currentTimeMillis()));
        record.put("Executors", executors(store));
        record.put("Stages", stages(store));
        record.put("Jobs", jobs(store));
        record.put("Driver", driver());
        return mapper.writeValueAsString(record);
    }

    private LinkedHashMap executors(AppStatusStore store) throws Exception {
        LinkedHashMap all = new LinkedHashMap();
        scala.collection.Iterator executors = store.executorList(true).iterator();
        while (executors.hasNext()) {
            ExecutorSummary executor = (ExecutorSummary) executors.next();
            LinkedHashMap figures = figures(executor);
            if (executor.memoryMetrics().isDefined()) {
                figures.putAll(figures(executor.memoryMetrics().get()));
            }
            figures.put("hostPort", executor.hostPort());
            all.put(executor.id(), figures);
        }
        return all;
    }

    private ArrayList stages(AppStatusStore store) throws Exception {
        ArrayList all = new ArrayList();
        HashMap active = new HashMap();
        scala.collection.Iterator running = store.activeStages().iterator();
        while (running.hasNext()) {
            StageData stage = (StageData) running.next();
            active.put(stage.stageId() + "." + stage.attemptId(), new int[] {stage.stageId(), stage.attemptId()});
            all.add(ofStage(stage));
        }
        for (Iterator before = stages.entrySet().iterator(); before.hasNext();) {
            Map.Entry ended = (Map.Entry) before.next();
            if (!active.containsKey(ended.getKey())) {
                try {
                    Object stored = store.store().read(StageDataWrapper.class, ended.getValue());
                    all.add(ofStage(((StageDataWrapper) stored).info()));
                } catch (NoSuchElementException forgotten) {
                    // Spark keeps a limited number of stages; its last figures stay.
                }
            }
        }
        stages = active;
        return all;
    }

    private ArrayList jobs(AppStatusStore store) throws Exception {
        ArrayList all = new ArrayList();
        HashSet active = new HashSet();
        ArrayList statuses = new ArrayList();
        statuses.add(JobExecutionStatus.RUNNING);
        scala.collection.Iterator running = store.jobsList(statuses).iterator();
        while (running.hasNext()) {
            JobData job = (JobData) running.next();
            active.add(Integer.valueOf(job.jobId()));
            all.add(ofJob(job));
        }
        for (Iterator before = jobs.iterator(); before.hasNext();) {
            Integer ended = (Integer) before.next();
            if (!active.contains(ended)) {
                try {
                    all.add(ofJob(store.job(ended.intValue())));
                } catch (NoSuchElementException forgotten) {
                    // as with stages
                }
            }
        }
        jobs = active;
        return all;
    }

    private LinkedHashMap ofStage(StageData stage) throws Exception {
        LinkedHashMap figures = figures(stage);
        figures.put("stageId", Integer.valueOf(stage.stageId()));
        figures.put("attemptId", Integer.valueOf(stage.attemptId()));
        figures.put("status", stage.status().toString());
        putTime(figures, stage.submissionTime());
        return figures;
    }

    private LinkedHashMap ofJob(JobData job) throws Exception {
        LinkedHashMap figures = figures(job);
        figures.put("jobId", Integer.valueOf(job.jobId()));
        figures.put("status", job.status().toString());
        putTime(figures, job.submissionTime());
        return figures;
    }

    private static void putTime(LinkedHashMap figures, scala.Option submitted) {
        if (submitted.isDefined()) {
            figures.put("submissionTime", Long.valueOf(((Date) submitted.get()).getTime()));
        }
    }

    /** Returns those of the named figures that an object of the REST API has. */
    private LinkedHashMap figures(Object data) throws Exception {
        ArrayList methods = (ArrayList) getters.get(data.getClass());
        if (methods == null) {
            methods = new ArrayList();
            for (int i = 0; i < names.length; i++) {
                try {
                    methods.add(data.getClass().getMethod(names[i], new Class[0]));
                } catch (NoSuchMethodException absent) {
                    // a figure of another object, or of another version of Spark
                }
            }
            getters.put(data.getClass(), methods);
        }
        LinkedHashMap figures = new LinkedHashMap();
        for (Iterator each = methods.iterator(); each.hasNext();) {
            Method method = (Method) each.next();
            figures.put(method.getName(), method.invoke(data, new Object[0]));
        }
        return figures;
    }

    /** Returns the driver's metrics; a mean of nothing is no measurement. */
    private LinkedHashMap driver() throws Exception {
        MetricsSystem system = metricsSystem(context.env());
        LinkedHashMap values = new LinkedHashMap();
        for (int i = 0; i < driverMetrics.length; i++) {
            String name = driverMetrics[i];
            int dot = name.indexOf('.');
            scala.collection.Iterator sources = system.getSourcesByName(name.substring(0, dot)).iterator();
            if (sources.hasNext()) {
                MetricRegistry registry = ((Source) sources.next()).metricRegistry();
                putValues(values, name, (Metric) registry.getMetrics().get(name.substring(dot + 1)));
            }
        }
        return values;
    }

    /** By a handle: the other methods of SparkEnv name classes that not every Spark has, and Janino looks at all. */
    private static MetricsSystem metricsSystem(Object env) throws Exception {
        try {
            return (MetricsSystem) MethodHandles.publicLookup()
                .findVirtual(env.getClass(), "metricsSystem", MethodType.methodType(MetricsSystem.class))
                .invokeWithArguments(new Object[] {env});
        } catch (Throwable error) {
            throw new IllegalStateException("the driver's metrics system cannot be reached", error);
        }
    }

    private static void putValues(LinkedHashMap values, String name, Metric metric) {
        if (metric instanceof Gauge) {
            values.put(name, ((Gauge) metric).getValue());
        } else if (metric instanceof Counter) {
            values.put(name, Long.valueOf(((Counter) metric).getCount()));
        } else if (metric instanceof Histogram) {
            Histogram histogram = (Histogram) metric;
            putMean(values, name, histogram.getCount(), histogram.getSnapshot().getMean());
        } else if (metric instanceof Timer) {
            Timer timer = (Timer) metric;
            putMean(values, name, timer.getCount(), timer.getSnapshot().getMean() / NS_IN_MS);
        }
    }

    private static void putMean(LinkedHashMap values, String name, long count, double mean) {
        values.put(name + ".count", Long.valueOf(count));
        if (count > 0) {
            values.put(name + ".mean", Double.valueOf(mean));
        }
    }
}
