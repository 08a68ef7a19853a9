package io.sparkevents.ctas;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Where a plan reads a table of the session catalog: by its name, or by its folder. */
class TableReads {
    private final Object session;
    private final String database;
    private final String table;
    private final String location;
    private final Storage storage;

    TableReads(Object session, String database, String table, String location) {
        this.session = session;
        this.database = database;
        this.table = table;
        this.location = location;
        this.storage = new Storage((Configuration) Reflect.path(session, "sparkContext.hadoopConfiguration"));
    }

    /** Returns the relations that read it. */
    List in(LogicalPlan plan) throws Throwable {
        ArrayList relations = new ArrayList();
        if (isOfTable(plan) || isBelow(plan)) {
            relations.add(plan);
        }
        List parts = Reflect.list(plan.children());
        parts.addAll(Reflect.list(Reflect.get(plan, "subqueries")));
        for (int i = 0; i < parts.size(); i++) {
            relations.addAll(in((LogicalPlan) parts.get(i)));
        }
        return relations;
    }

    /** Has them find its files anew, and caches of it, which are filled again when they are read. */
    void refresh(LogicalPlan plan) throws Throwable {
        List relations = in(plan);
        for (int i = 0; i < relations.size(); i++) {
            if (hasFiles(relations.get(i))) {
                Calls.call(Reflect.path(relations.get(i), "relation.location"), "refresh");
            }
        }
        Calls.call(Reflect.path(session, "sharedState.cacheManager"), "recacheByPath",
            new Object[] {session, location});
    }

    private boolean isOfTable(LogicalPlan plan) {
        Object of = Reflect.isA(plan, "HiveTableRelation") ? Reflect.get(plan, "tableMeta")
            : Reflect.isA(plan, "LogicalRelation") ? Reflect.get(plan, "catalogTable") : null;
        return of != null && table.equalsIgnoreCase((String) Reflect.path(of, "identifier.table"))
            && database.equalsIgnoreCase((String) Reflect.path(of, "identifier.database"));
    }

    private boolean isBelow(LogicalPlan plan) throws Throwable {
        if (!hasFiles(plan)) {
            return false;
        }
        List roots = Reflect.list(Reflect.path(plan, "relation.location.rootPaths"));
        for (int i = 0; i < roots.size(); i++) {
            if ((storage.qualified(String.valueOf(roots.get(i))) + "/").startsWith(location + "/")) {
                return true;
            }
        }
        return false;
    }

    private static boolean hasFiles(Object plan) {
        return Reflect.isA(plan, "LogicalRelation") && Reflect.isA(Reflect.get(plan, "relation"), "HadoopFsRelation");
    }
}
