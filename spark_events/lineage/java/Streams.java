package io.sparkevents.lineage;

import io.sparkevents.jvm.Identities;
import io.sparkevents.jvm.Reflect;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** What a running streaming query reads and writes: known from its start, before any batch. */
public class Streams {
    private static final String[] SESSIONS = {
        "org.apache.spark.sql.classic.SparkSession$", "org.apache.spark.sql.SparkSession$"
    };

    /** Returns a session of the driver. */
    static Object session() {
        for (int i = 0; i < SESSIONS.length; i++) {
            try {
                ClassLoader loader = Thread.currentThread().getContextClassLoader();
                Object companion = Class.forName(SESSIONS[i], true, loader).getField("MODULE$").get(null);
                Object session = Reflect.first(companion, "getDefaultSession|getActiveSession");
                if (session != null) {
                    return session;
                }
            } catch (Throwable missing) {
                continue;
            }
        }
        return null;
    }

    /** Returns the plan as it was started, before sources took the place of relations. */
    static LogicalPlan plan(Object stream) {
        Object plan = Reflect.get(Reflect.field(stream, "plan"), "inputQuery");
        return (LogicalPlan) (plan == null ? Reflect.get(stream, "analyzedPlan") : plan);
    }

    static LinkedHashMap sink(Object stream, Identities identities) {
        LinkedHashMap identity = identity(Reflect.get(stream, "sink"), Reflect.field(stream, "plan"), identities);
        if (identity.get("options") == null || ((Map) identity.get("options")).isEmpty()) {
            identity.put("options", Reflect.map(Reflect.field(stream, "extraOptions")));
        }
        return identity;
    }

    private static LinkedHashMap identity(Object sink, Object write, Identities identities) {
        Object catalogTable = Reflect.get(write, "catalogTable");
        if (catalogTable != null) {
            return identities.ofCatalogTable(catalogTable);
        }
        if (Reflect.isA(sink, "DeltaSink")) {
            return identities.ofPath(Reflect.field(sink, "path"), "delta");
        }
        if (Reflect.isA(sink, "FileStreamSink")) {
            Object format = Reflect.get(Reflect.field(sink, "fileFormat"), "shortName");
            return identities.ofPath(Reflect.field(sink, "path"), Reflect.text(format));
        }
        LinkedHashMap identity = identities.ofV2Table(sink);
        Object catalogAndName = Reflect.get(write, "catalogAndIdent");
        identities.addIdentifier(identity, Reflect.get(catalogAndName, "_1"), Reflect.get(catalogAndName, "_2"));
        return identity;
    }

    static boolean isBounded(Object stream) {
        String trigger = Reflect.simpleName(Reflect.get(stream, "trigger").getClass());
        return trigger.startsWith("AvailableNow") || trigger.startsWith("OneTime") || trigger.startsWith("Once");
    }

    static boolean isForeachBatch(Object stream) {
        return Reflect.isA(Reflect.get(stream, "sink"), "ForeachBatchSink");
    }
}
