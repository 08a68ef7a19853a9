package io.sparkevents.ctas;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Reflect;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import org.apache.spark.sql.connector.catalog.TableCatalog;

/** Tables of a JDBC catalog: renamed, and marked as committed, in one transaction of the database. */
public class Database {
    private static final String MARKS = "spark_events_ctas";
    private static final String COMMITTED = "COMMITTED";
    private final TableCatalog catalog;
    private final Object options;
    private final Object dialect;

    public Database(Object session, String name) throws Throwable {
        this.catalog = new CatalogTables(session).catalog(name);
        this.options = Reflect.field(catalog, "options");
        this.dialect = Reflect.field(catalog, "dialect");
    }

    public String url() {
        return Reflect.text(Reflect.get(options, "url"));
    }

    public boolean exists(String schema, String table) throws Throwable {
        return catalog.tableExists(CatalogTables.identifier(schema, table));
    }

    /** Returns the transaction that last made a table; null where none has. */
    public String maker(String schema, String table) throws Throwable {
        return select(schema, "SELECT txid FROM " + name(schema, MARKS) + " WHERE table_name = ? AND state = '"
            + COMMITTED + "' ORDER BY ended_at DESC", table);
    }

    /** Returns how a transaction ended; null where it has not. */
    public String mark(String schema, String txid) throws Throwable {
        return select(schema, "SELECT state FROM " + name(schema, MARKS) + " WHERE txid = ?", txid);
    }

    /** Gives a table its name, in the place of another one where it replaces it, and marks the transaction. */
    public void publish(String schema, String from, String to, boolean replaces, String txid) throws Throwable {
        ensureMarks(schema);
        Connection connection = connect();
        try {
            connection.setAutoCommit(false);
            insertMark(connection, schema, txid, to, COMMITTED);
            if (replaces) {
                connection.createStatement().execute("DROP TABLE " + name(schema, to));
            }
            connection.createStatement().execute(rename(schema, from, to));
            connection.commit();
        } catch (SQLException error) {
            connection.rollback();
            throw error;
        } finally {
            connection.close();
        }
    }

    /** Marks a transaction as aborted, so that its own commit fails from now on; then drops its table. */
    public void discard(String schema, String table, String name, String txid) throws Throwable {
        ensureMarks(schema);
        Connection connection = connect();
        try {
            if (mark(schema, txid) == null) {
                insertMark(connection, schema, txid, name, "ABORTED");
            }
        } catch (SQLException error) {
            if (mark(schema, txid) == null) {
                throw error;
            }
        } finally {
            connection.close();
        }
        if (exists(schema, table)) {
            catalog.dropTable(CatalogTables.identifier(schema, table));
        }
    }

    private void insertMark(Connection connection, String schema, String txid, String table, String state)
        throws Throwable {
        PreparedStatement insert = connection.prepareStatement("INSERT INTO " + name(schema, MARKS)
            + " (txid, table_name, state, ended_at) VALUES (?, ?, ?, CURRENT_TIMESTAMP)");
        insert.setString(1, txid);
        insert.setString(2, table);
        insert.setString(3, state);
        insert.executeUpdate();
    }

    private void ensureMarks(String schema) throws Throwable {
        if (exists(schema, MARKS)) {
            return;
        }
        Connection connection = connect();
        try {
            connection.createStatement().execute("CREATE TABLE " + name(schema, MARKS)
                + " (txid VARCHAR(64) NOT NULL PRIMARY KEY, "
                + "table_name VARCHAR(512), state VARCHAR(16), ended_at TIMESTAMP)");
        } catch (SQLException error) {
            if (!exists(schema, MARKS)) {  // otherwise somebody else was faster
                throw error;
            }
        } finally {
            connection.close();
        }
    }

    private String rename(String schema, String from, String to) throws Throwable {
        return url().startsWith("jdbc:derby:")
            ? "RENAME TABLE " + name(schema, from) + " TO " + quoted(to)
            : "ALTER TABLE " + name(schema, from) + " RENAME TO " + quoted(to);
    }

    private String name(String schema, String table) throws Throwable {
        return schema.isEmpty() ? quoted(table) : quoted(schema) + "." + quoted(table);
    }

    private String quoted(String name) throws Throwable {
        return (String) Calls.call(dialect, "quoteIdentifier", new Object[] {name});
    }

    private Connection connect() throws Throwable {
        Object factory = Calls.call(dialect, "createConnectionFactory", new Object[] {options});
        return (Connection) Calls.call(factory, "apply", new Object[] {Integer.valueOf(-1)});
    }

    /** Returns the first value that a query of the marks has; null where it has none, or there are no marks. */
    private String select(String schema, String sql, String argument) throws Throwable {
        if (!exists(schema, MARKS)) {
            return null;
        }
        Connection connection = connect();
        try {
            PreparedStatement statement = connection.prepareStatement(sql);
            statement.setMaxRows(1);
            statement.setString(1, argument);
            ResultSet rows = statement.executeQuery();
            return rows.next() ? rows.getString(1) : null;
        } finally {
            connection.close();
        }
    }
}
