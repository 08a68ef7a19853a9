package io.sparkevents.lineage;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.sparkevents.jvm.Identities;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Reads the plan of a statement that is not run. */
public class Preview {
    public String read(LogicalPlan plan, Object session, long budgetMs) throws Exception {
        Statement statement = new Statement(plan, new Identities(session), new Remembered(), budgetMs);
        statement.read(TableChange.begun(plan, session), new KnownTables());
        return new ObjectMapper().writeValueAsString(statement.record());
    }
}
