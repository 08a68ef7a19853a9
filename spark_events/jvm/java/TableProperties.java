package io.sparkevents.jvm;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Who owns a table, as its catalog has it, and what its own properties say, as OpenLineage's integration reads them. */
public final class TableProperties {
    private static final String OF_OPENLINEAGE = "openlineage.dataset.facets.";
    private static final String KEY = "properties";

    private TableProperties() {
    }

    /**
     * Adds to an identity what is of use of a table's properties.
     *
     * @param owner null or empty where none is known
     */
    public static void add(LinkedHashMap identity, Object properties, String owner) {
        LinkedHashMap known = Reflect.map(identity.get(KEY));
        for (Iterator entries = Reflect.map(properties).entrySet().iterator(); entries.hasNext();) {
            Map.Entry property = (Map.Entry) entries.next();
            if (isOfOpenLineage(property.getKey())) {
                known.put(property.getKey(), property.getValue());
            }
        }
        if (owner != null && owner.length() > 0) {
            known.put("owner", owner);
        }
        if (!known.isEmpty()) {
            identity.put(KEY, known);
        }
    }

    /** Returns an identity with the properties of another table in place of its own. */
    public static LinkedHashMap replaced(LinkedHashMap identity, Object properties) {
        LinkedHashMap replaced = new LinkedHashMap(identity);
        LinkedHashMap known = Reflect.map(identity.get(KEY));
        for (Iterator keys = known.keySet().iterator(); keys.hasNext();) {
            if (isOfOpenLineage(keys.next())) {
                keys.remove();
            }
        }
        replaced.put(KEY, known);
        add(replaced, properties, null);
        return replaced;
    }

    /** Returns an identity with properties set and others removed. */
    public static LinkedHashMap altered(LinkedHashMap identity, Object set, List removed) {
        LinkedHashMap altered = new LinkedHashMap(identity);
        LinkedHashMap known = Reflect.map(identity.get(KEY));
        for (int i = 0; i < removed.size(); i++) {
            known.remove(String.valueOf(removed.get(i)));
        }
        altered.put(KEY, known);
        add(altered, set, null);
        return altered;
    }

    /** Returns an identity with the properties that it does not have, and that are known of the same table. */
    public static LinkedHashMap completed(LinkedHashMap identity, Map known) {
        LinkedHashMap completed = new LinkedHashMap(identity);
        LinkedHashMap properties = Reflect.map(known.get(KEY));
        properties.putAll(Reflect.map(identity.get(KEY)));
        if (!properties.isEmpty()) {
            completed.put(KEY, properties);
        }
        return completed;
    }

    private static boolean isOfOpenLineage(Object key) {
        return String.valueOf(key).startsWith(OF_OPENLINEAGE);
    }
}
