package io.sparkevents.lineage;

import java.util.Iterator;
import java.util.LinkedHashMap;

/**
 * Tables as DDL last left them, by name: a table may be gone, or only its catalog's entry be there, when its catalog is
 * asked about it.
 */
final class KnownTables {
    private static final int MOST_TABLES = 1000;
    private final LinkedHashMap states = new LinkedHashMap();

    void remember(TableState state) {
        Object names = state.identity.get("table");
        if (names != null) {
            states.remove(names);
            states.put(names, state);
        }
        Iterator eldest = states.keySet().iterator();
        while (states.size() > MOST_TABLES) {
            eldest.next();
            eldest.remove();
        }
    }

    void forget(Object names) {
        states.remove(names);
    }

    /** Returns a state with the columns that are known of it, if it has none; the known state in place of null. */
    TableState complete(TableState state, Object names) {
        TableState known = (TableState) states.get(names);
        if (known == null || state == null) {
            return state == null ? known : state;
        }
        return state.schema.fields().length > 0 ? state : new TableState(state.identity, known.schema);
    }
}
