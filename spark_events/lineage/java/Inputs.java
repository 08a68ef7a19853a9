package io.sparkevents.lineage;

import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;

/**
 * The source columns that one column is computed from, by number, with the kinds of the paths to them as bits.
 * Immutable once handed out, so that a column that is passed on is shared rather than copied.
 */
public class Inputs {
    public static final int IDENTITY = 1;
    public static final int TRANSFORMATION = 2;
    public static final int AGGREGATION = 4;
    public static final int MASKING = 8;
    public static final int CONDITIONAL = 16;
    public static final int WINDOW = 32;
    public static final int JOIN = 64;
    public static final int GROUP_BY = 128;
    public static final int FILTER = 256;
    public static final int SORT = 512;
    public static final Inputs NONE = new Inputs(new HashMap());
    private static final int DIRECT = 7;

    private final HashMap kinds;

    private Inputs(HashMap kinds) {
        this.kinds = kinds;
    }

    public static Inputs of(int column, int kind) {
        HashMap kinds = new HashMap();
        kinds.put(column, kind);
        return new Inputs(kinds);
    }

    public int size() {
        return kinds.size();
    }

    /** Tells whether the value is made of a column, rather than passed on. */
    boolean isMade() {
        for (Iterator all = kinds.values().iterator(); all.hasNext();) {
            if ((((Integer) all.next()).intValue() & (TRANSFORMATION | AGGREGATION)) != 0) {
                return true;
            }
        }
        return false;
    }

    /** Returns the kinds by the number of the column: a map that must not be changed. */
    public Map kinds() {
        return kinds;
    }

    public Inputs plus(Inputs other) {
        if (other.kinds.isEmpty() || other == this) {
            return this;
        }
        if (kinds.isEmpty()) {
            return other;
        }
        HashMap sum = new HashMap(kinds);
        addAll(sum, other, 0);
        return new Inputs(sum);
    }

    /** Returns these as seen after a step of a kind: the strongest of direct steps counts, an indirect one wins. */
    public Inputs after(int step) {
        if (kinds.isEmpty() || step == IDENTITY) {
            return this;
        }
        HashMap stepped = new HashMap();
        addAll(stepped, this, step);
        return new Inputs(stepped);
    }

    private static void addAll(HashMap into, Inputs from, int step) {
        for (Iterator entries = from.kinds.entrySet().iterator(); entries.hasNext();) {
            Map.Entry entry = (Map.Entry) entries.next();
            int kind = stepped((Integer) entry.getValue(), step);
            Integer known = (Integer) into.get(entry.getKey());
            into.put(entry.getKey(), known == null ? kind : known.intValue() | kind);
        }
    }

    private static int stepped(int kind, int step) {
        if (step == 0) {
            return kind;
        }
        int masking = (kind | step) & MASKING;
        int direct = step & DIRECT;
        if (direct == 0) {
            return step | masking;
        }
        int kept = kind & ~(DIRECT | MASKING);
        for (int bit = IDENTITY; bit <= AGGREGATION; bit = bit << 1) {
            if ((kind & bit) != 0) {
                kept |= Math.max(bit, direct);
            }
        }
        return kept | masking;
    }
}
