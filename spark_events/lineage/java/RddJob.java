package io.sparkevents.lineage;

import io.sparkevents.jvm.Identities;
import io.sparkevents.jvm.Reflect;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListenerJobStart;

/**
 * A Spark job that writes an RDD: {@code saveAsTextFile} and the like. Spark tells listeners neither what it reads nor
 * where it writes; the scheduler has the RDD, and the function of the job's last stage has Hadoop's configuration.
 */
final class RddJob {
    static final String NO_COLUMNS = "RDDs have no columns";
    private static final String[] OUTPUT_FOLDERS = {
        "mapreduce.output.fileoutputformat.outputdir", "mapred.output.dir"
    };
    private static final String[] OUTPUT_FORMATS = {"mapreduce.job.outputformat.class", "mapred.output.format.class"};
    private static final String FOREACH = "foreach";
    static final String EXECUTION = "spark.sql.execution.id";

    private final Object rdd;
    private final Configuration output;
    private final String place;

    private RddJob(Object rdd, Configuration output, String place) {
        this.rdd = rdd;
        this.output = output;
        this.place = place;
    }

    /**
     * Returns a job that begins; null for one that writes nothing that can be known here. A function that the program
     * has run over all rows ({@code foreach}, {@code foreachPartition}) may write, but only the program knows where.
     */
    static RddJob begun(SparkListenerJobStart event, SparkContext context) {
        // The scheduler's thread may change the map meanwhile: then the job is not found.
        Object jobs = Reflect.path(context, "dagScheduler.jobIdToActiveJob");
        Object active = Reflect.call(jobs, "get", event.jobId());
        Object stage = Reflect.get(active, "finalStage");
        Configuration output = output(Reflect.get(stage, "func"));
        String place = String.valueOf(Reflect.path(active, "callSite.shortForm"));
        boolean writes = output != null || place.startsWith(FOREACH) && property(event, EXECUTION).length() == 0;
        return writes && stage != null ? new RddJob(Reflect.get(stage, "rdd"), output, place) : null;
    }

    /** Returns one of a job's properties; an empty text where it has none. */
    static String property(SparkListenerJobStart event, String key) {
        return event.properties() == null ? "" : event.properties().getProperty(key, "");
    }

    /** Returns the configuration of Hadoop's output that a function has captured; null where it has none. */
    private static Configuration output(Object function) {
        Field[] captured = function == null ? new Field[0] : function.getClass().getDeclaredFields();
        for (int i = 0; i < captured.length; i++) {
            try {
                captured[i].setAccessible(true);
                Object value = captured[i].get(function);
                if (Reflect.isA(value, "HadoopWriteConfigUtil")) {
                    return (Configuration) Reflect.get(Reflect.field(value, "conf"), "value");
                }
            } catch (Throwable closed) {
                continue;
            }
        }
        return null;
    }

    String place() {
        return place;
    }

    /** Returns what it reads and writes, as a statement's record has it. */
    LinkedHashMap lineage(Object session, long budgetMs) {
        Identities identities = new Identities(session);
        PlanFacts facts = new PlanFacts(budgetMs);
        Sinks sinks = new Sinks(facts);
        new RddReader(facts, identities).read(rdd);
        if (output != null) {
            addSink(sinks, facts, identities);
        } else {
            facts.setIncomplete("what the function of " + place + " writes is not known");
        }
        facts.setIncomplete(NO_COLUMNS);
        return Statement.record(facts, sinks);
    }

    private void addSink(Sinks sinks, PlanFacts facts, Identities identities) {
        String folder = first(OUTPUT_FOLDERS);
        String format = first(OUTPUT_FORMATS);
        if (folder == null) {
            facts.setIncomplete("where an output format writes is not known: " + format);
            sinks.add(identities.ofOptions(format, null), "INSERT", new ArrayList());
        } else {
            sinks.add(identities.ofPath(new Path(folder), null), "INSERT", new ArrayList());
        }
    }

    private String first(String[] keys) {
        String value = output.get(keys[0]);
        return value == null ? output.get(keys[1]) : value;
    }
}
