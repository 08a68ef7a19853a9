package io.sparkevents.ctas;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Reflect;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.execution.QueryExecution;

/**
 * The entry point for Python, which each package with Java has: it makes all other objects, so that their exceptions
 * reach Python unchanged.
 */
public class Entry {
    private final Object session;
    private final SparkContext context;

    public Entry(Object session) {
        this.session = session;
        this.context = (SparkContext) Reflect.get(session, "sparkContext");
    }

    public Storage storage() {
        return new Storage(context.hadoopConfiguration());
    }

    public Leases leases(Storage storage, long everyMs) {
        return new Leases(storage, everyMs);
    }

    public CreateStatement parse(String sql, Object query) throws Throwable {
        return CreateStatement.parse(session, sql, query);
    }

    public Execution begin(QueryExecution plan) throws Throwable {
        return Execution.begin(plan, context);
    }

    /** Returns the thread that runs this call, and with it those of the same thread of Python. */
    public Caller caller() {
        return new Caller();
    }

    public Tasks tasks(String root) {
        return new Tasks(context, root);
    }

    public SessionTables sessionTables() throws Throwable {
        return new SessionTables(session);
    }

    public HiveTables hiveTables() throws Throwable {
        return new HiveTables(session);
    }

    public CatalogTables catalogTables() {
        return new CatalogTables(session);
    }

    public Database database(String catalog) throws Throwable {
        return new Database(session, catalog);
    }

    public void post(String transition) throws Throwable {
        Calls.call(Calls.call(context, "listenerBus"), "post",
            new Object[] {new TableTransition(Calls.parse(transition))});
    }

    public void alreadyExists(String database, String name) throws Throwable {
        throw new TableAlreadyExistsException(database, name);
    }

    public void isMissing(String database, String name) throws Throwable {
        throw new NoSuchTableException(database, name);
    }
}
