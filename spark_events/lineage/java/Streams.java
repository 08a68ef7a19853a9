package io.sparkevents.lineage;

import io.sparkevents.jvm.Identities;
import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** What a running streaming query reads and writes: known from its start, before any batch. */
public class Streams {
    private static final String[] SESSIONS = {
        "org.apache.spark.sql.classic.SparkSession$", "org.apache.spark.sql.SparkSession$"
    };

    /** Returns a query that runs, by its id; null where it has ended. */
    static Object find(String id) {
        return active().get(UUID.fromString(id));
    }

    static ArrayList running() {
        return new ArrayList(active().values());
    }

    private static Map active() {
        Object active = Reflect.path(session(), "sharedState.activeStreamingQueries");
        return active instanceof Map ? (Map) active : new HashMap();
    }

    /** All sessions of a driver share what is asked of it here. */
    private static Object session() {
        for (int i = 0; i < SESSIONS.length; i++) {
            try {
                ClassLoader loader = Thread.currentThread().getContextClassLoader();
                Object companion = Class.forName(SESSIONS[i], true, loader).getField("MODULE$").get(null);
                Object session = Reflect.get(companion, "getDefaultSession");
                session = session == null ? Reflect.get(companion, "getActiveSession") : session;
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
        Object table = Reflect.get(stream, "sink");
        Object write = Reflect.field(stream, "plan");
        LinkedHashMap sink;
        Object catalogTable = Reflect.get(write, "catalogTable");
        Object path = Reflect.field(table, "path");
        if (catalogTable != null) {
            sink = identities.ofCatalogTable(catalogTable);
        } else if (Reflect.isA(table, "FileStreamSink") || Reflect.isA(table, "DeltaSink")) {
            sink = identities.ofPath(path, Reflect.text(Reflect.path(Reflect.field(table, "fileFormat"), "shortName")));
        } else {
            sink = identities.ofV2Table(table);
            Object named = Reflect.get(write, "catalogAndIdent");
            if (named instanceof scala.Tuple2) {
                identities.addIdentifier(sink, ((scala.Tuple2) named)._1(), ((scala.Tuple2) named)._2());
            }
        }
        if (sink.get("options") == null || ((Map) sink.get("options")).isEmpty()) {
            sink.put("options", Reflect.map(Reflect.field(stream, "extraOptions")));
        }
        return sink;
    }

    static boolean isBounded(Object stream) {
        String trigger = Reflect.simpleName(Reflect.get(stream, "trigger").getClass());
        return trigger.startsWith("AvailableNow") || trigger.startsWith("OneTime") || trigger.startsWith("Once");
    }

    static boolean isForeachBatch(Object stream) {
        return Reflect.isA(Reflect.get(stream, "sink"), "ForeachBatchSink");
    }
}
