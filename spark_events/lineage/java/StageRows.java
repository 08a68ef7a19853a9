package io.sparkevents.lineage;

import java.util.HashMap;
import java.util.Properties;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;

/** Tells of which execution the rows are that a stage has written, as its own tasks have counted them. */
final class StageRows {
    private static final String ROOT = "spark.sql.execution.root.id";
    private final HashMap executions = new HashMap();

    void begun(SparkListenerStageSubmitted event) {
        Properties properties = event.properties();
        String id = properties == null ? null : properties.getProperty(RddJob.EXECUTION);
        if (id != null) {
            Integer stage = event.stageInfo().stageId();
            executions.put(stage, new Long[] {Long.valueOf(properties.getProperty(ROOT, id)), Long.valueOf(id)});
        }
    }

    /** Returns the statement, its part and the number of rows; null where a stage has written none. */
    Long[] ended(SparkListenerStageCompleted event) {
        Integer stage = event.stageInfo().stageId();
        Long[] execution = (Long[]) executions.remove(stage);
        TaskMetrics metrics = event.stageInfo().taskMetrics();
        long rows = metrics == null ? 0L : metrics.outputMetrics().recordsWritten();
        return execution == null || rows == 0L ? null : new Long[] {execution[0], execution[1], Long.valueOf(rows)};
    }
}
