package io.sparkevents.lineage;

import io.sparkevents.jvm.Identities;
import io.sparkevents.jvm.Reflect;
import java.util.HashMap;
import java.util.concurrent.Callable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;

/**
 * What a statement does to a table itself rather than to its rows (DDL). Plans of DDL name tables without saying where
 * they are, so the catalog is asked when the statement begins and when it ends: at once, on the listener bus, since the
 * next statement may change the table again.
 */
final class TableChange implements Callable {
    private static final HashMap ACTIONS = new HashMap();

    static {
        put("CREATE", "CreateDataSourceTableCommand CreateTableCommand CreateTable CreateTableLikeCommand "
            + "CreateDeltaTableCommand");
        put("OVERWRITE", "ReplaceTable");
        put("DROP", "DropTable DropTableCommand");
        put("TRUNCATE", "TruncateTableCommand TruncateTable TruncatePartition TruncateDeltaTableCommand");
        put("RENAME", "AlterTableRenameCommand RenameTable");
        put("ANALYZE", "AnalyzeTableCommand AnalyzeColumnCommand AnalyzePartitionCommand AnalyzeTable AnalyzeColumn");
        put("ALTER", "AlterTableAddColumnsCommand AlterTableChangeColumnCommand AlterTableSetPropertiesCommand "
            + "AlterTableUnsetPropertiesCommand AlterTableAddPartitionCommand AlterTableRenamePartitionCommand "
            + "AlterTableDropPartitionCommand AlterTableSetLocationCommand AlterTableSerDePropertiesCommand "
            + "AlterTableChangeColumnsCommand RepairTableCommand RepairTable RecoverPartitions AddPartitions "
            + "DropPartitions RenamePartitions AddPartitionField DropPartitionField ReplacePartitionField "
            + "SetIdentifierFields DropIdentifierFields SetWriteDistributionAndOrdering SetTableSerDeProperties "
            + "CreateOrReplaceBranch CreateOrReplaceTag DropBranch DropTag");
    }

    private static void put(String action, String nodes) {
        String[] names = nodes.split(" ");
        for (int i = 0; i < names.length; i++) {
            ACTIONS.put(names[i], action);
        }
    }

    private final LogicalPlan node;
    private final String name;
    private final String action;
    private final TableStates states;
    /** Where the table is and which columns it has when the statement begins; null for one that is not there. */
    private TableState before = null;
    /** The same when it has ended; null before that. */
    private TableState after = null;

    private boolean hasEnded = false;

    private TableChange(LogicalPlan node, String name, String action, TableStates states) {
        this.node = node;
        this.name = name;
        this.action = action;
        this.states = states;
    }

    /** Returns what a statement that begins does to a table; null for one that changes none. */
    static TableChange begun(QueryExecution execution) {
        return begun(analyzed(execution), Reflect.get(execution, "sparkSession"));
    }

    static TableChange begun(Object plan, Object session) {
        TableChange change = of(plan, session);
        if (change != null) {
            change.before = (TableState) CatalogCalls.answer(change);
        }
        return change;
    }

    /** Returns the same for one that has ended. */
    static TableChange ended(QueryExecution execution) {
        TableChange change = of(analyzed(execution), Reflect.get(execution, "sparkSession"));
        if (change != null && change.isElsewhereAfter()) {
            change.hasEnded = true;
            change.after = (TableState) CatalogCalls.answer(change);
        }
        return change;
    }

    private static Object analyzed(QueryExecution execution) {
        return Reflect.get(execution, "analyzed");
    }

    private static TableChange of(Object plan, Object session) {
        if (!(plan instanceof LogicalPlan)) {
            return null;
        }
        String name = Reflect.simpleName(plan.getClass());
        String action = (String) ACTIONS.get(name);
        if (action == null && Reflect.isA(plan, "AlterTableCommand")) {
            action = "ALTER";
        }
        boolean isOfView = Boolean.TRUE.equals(Reflect.get(plan, "isView"));
        if (action == null || isOfView || Reflect.get(plan, "query") != null) {
            return null;
        }
        return new TableChange((LogicalPlan) plan, name, action, new TableStates(new Identities(session)));
    }

    /** Returns what the statement names: a table, an identifier, or the parts of a name. */
    private Object target() {
        return Reflect.first(node, "targetTable|oldName|child|table|name|tableName|tableIdent");
    }

    /** Tells whether only the catalog knows the table as it is afterwards. */
    private boolean isElsewhereAfter() {
        return action.equals("CREATE") || action.equals("OVERWRITE") || action.equals("RENAME")
            || action.equals("ALTER") && (name.endsWith("Command") || name.equals("SetTableLocation"));
    }

    /** Asks the catalog for the table as it is. */
    public Object call() {
        if (!hasEnded) {
            return states.of(target());
        }
        if (action.equals("RENAME")) {
            return states.renamed(target(), Reflect.get(node, "newName"));
        }
        return name.equals("SetTableLocation") ? states.reloaded(target()) : states.of(target());
    }

    /** Adds the table as a sink, as far as it is known when the statement begins. */
    void addTo(Sinks sinks, PlanFacts facts, KnownTables known) {
        boolean creates = action.equals("CREATE") || action.equals("OVERWRITE");
        Object names = states.names(target());
        // Under its old name, a table that is renamed is there at the beginning only.
        TableState present = before == null && !action.equals("RENAME") ? after : before;
        TableState state = creates ? created() : known.complete(present, names);
        boolean mayBeMissing = Boolean.TRUE.equals(Reflect.first(node, "ifExists|ignoreIfExists|ifNotExists"));
        if (state == null && mayBeMissing) {
            return;
        }
        if (state == null) {
            state = states.assumed(target());
            facts.setIncomplete("the table was gone when its catalog was asked, or that did not answer: where it was is assumed");
        }
        state = states.altered(state, node);
        sinks.addTable(state, creates && before == null ? "CREATE" : action);
        known.forget(names);
        if (!action.equals("DROP")) {
            known.remember(state);
        }
    }

    /** Returns the table that is created or replaced; null for one that was there and stays as it is. */
    private TableState created() {
        boolean mayStay = Boolean.TRUE.equals(Reflect.first(node, "ignoreIfExists|ifNotExists"));
        Object planned = Reflect.get(node, "table");
        TableState present = before == null ? after : before;
        // A statement that had ended before its beginning was heard of has most likely found the table there.
        boolean wasThere = present != null && (planned == null || !states.isNew(planned));
        if (mayStay && wasThere) {
            return null;
        }
        return states.planned(node, target(), action.equals("CREATE") ? null : before);
    }

    /** Replaces what was known at the beginning by the table as it is now; tells whether it differs. */
    boolean updateTo(Sinks sinks, KnownTables known) {
        if (after == null || sinks.all().size() != 1) {
            return false;
        }
        TableState whole = known.complete(after, states.names(target()));
        known.remember(whole);
        return sinks.updateTable(whole, action.equals("RENAME"));
    }
}
