package io.sparkevents.sqlrunner;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Reflect;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.streaming.OutputMode;

/** The methods of the runner that Python calls. */
public final class RunnerEntry {
    private static final String[] DATASETS = {"org.apache.spark.sql.classic.Dataset$", "org.apache.spark.sql.Dataset$"};
    private final Object session;

    public RunnerEntry(Object session) {
        this.session = session;
    }

    /** Returns the plan of a statement as it is parsed. */
    public Object parse(String sql) throws Throwable {
        return Calls.call(Reflect.path(session, "sessionState.sqlParser"), "parsePlan", new Object[] {sql});
    }

    /** Tells whether a parsed statement does something; Spark would do it as soon as it is asked for its rows. */
    public boolean isCommand(Object plan) {
        return Reflect.isA(plan, "Command") || Reflect.isA(plan, "ParsedStatement") || Reflect.isA(plan, "CompoundBody");
    }

    /** Returns the relations that a parsed query names. */
    public Relations relations(Object plan) {
        Relations relations = new Relations(new HashMap());
        relations.apply(plan);
        return relations;
    }

    /** Returns the data of a parsed query that reads some relations as streams: see Relations. */
    public Object read(Object plan, Map streams) throws Throwable {
        Object changed = new Relations(streams).apply(plan);
        return Calls.call(datasets(), "ofRows", new Object[] {session, changed});
    }

    /** Returns the parts of a table's name. */
    public List nameParts(String name) throws Throwable {
        return Reflect.list(Calls.call(
            Reflect.path(session, "sessionState.sqlParser"), "parseMultipartIdentifier", new Object[] {name}));
    }

    /** Returns the parts of the name of the table that a statement makes; none for another statement. */
    public List createdTable(String sql) throws Throwable {
        return TargetTable.created(parse(sql));
    }

    /** Returns the properties of a table: see TargetTable. */
    public Map table(String name) throws Throwable {
        return TargetTable.find(session, name);
    }

    /** Tells whether Spark would store a value of one type in a column of another one, without losing any. */
    public boolean fits(String given, String wanted) throws Throwable {
        return TargetTable.fits(given, wanted);
    }

    /** Throws where Spark cannot run a query as a stream in that output mode. */
    public void checkStreaming(LogicalPlan analysed, String mode) {
        OutputMode outputMode = mode.equals("append") ? OutputMode.Append()
            : mode.equals("update") ? OutputMode.Update() : OutputMode.Complete();
        UnsupportedOperationChecker.checkForStreaming(analysed, outputMode);
    }

    /** Returns an analysed plan as JSON: see NormalForm. */
    public String normalForm(LogicalPlan analysed) throws Throwable {
        return Calls.json(new NormalForm(session).of(analysed));
    }

    /** Lets a query end after its micro-batch: see GracefulStop. */
    public void stopAfterBatch(Object query) throws Exception {
        GracefulStop.begin(query);
    }

    /** Returns a writer of micro-batches for foreachBatch: see LaterFileSink. */
    public LaterFileSink laterFileSink(String path, String provider, List partitions, Map options, long batchesBefore)
        throws Throwable {
        return new LaterFileSink(session, path, provider, partitions, options, batchesBefore);
    }

    private static Object datasets() throws Exception {
        ClassLoader loader = Thread.currentThread().getContextClassLoader();
        for (int i = 0; i < DATASETS.length; i++) {
            try {
                return Class.forName(DATASETS[i], true, loader).getField("MODULE$").get(null);
            } catch (ClassNotFoundException other) {
                continue;
            }
        }
        throw new ClassNotFoundException(DATASETS[0]);
    }
}
