package io.sparkevents;

import java.util.Arrays;

/**
 * How values of 0 and more are distributed. Below 64 they are counted exactly; above, in 32 steps for each power of
 * two, so that a quantile is at most 1.6 % off. All in integers, so that Python gets the same from an event log
 * (distribution.py).
 */
public class Distribution {
    private static final int EXACT = 64;
    private static final int STEPS = 32;

    private int[] counts = new int[EXACT];
    private long count = 0;
    private long sum = 0;
    private long highest = 0;

    void add(long value) {
        if (value < 0) {
            return;
        }
        int bucket = bucket(value);
        if (bucket >= counts.length) {
            counts = Arrays.copyOf(counts, bucket + STEPS);
        }
        counts[bucket]++;
        count++;
        sum += value;
        highest = Math.max(highest, value);
    }

    long count() {
        return count;
    }

    /** Returns the value that so many percent of all do not exceed. */
    long quantile(int percent) {
        long rank = (percent * count + 99) / 100;
        long passed = 0;
        for (int bucket = 0; bucket < counts.length; bucket++) {
            passed += counts[bucket];
            if (passed >= rank && passed > 0) {
                return Math.min(middle(bucket), highest);
            }
        }
        return 0;
    }

    /** Returns the median, the 95th percentile, the highest value and the sum. */
    long[] summary() {
        return new long[] {quantile(50), quantile(95), highest, sum};
    }

    private static int bucket(long value) {
        if (value < EXACT) {
            return (int) value;
        }
        int shift = 64 - Long.numberOfLeadingZeros(value) - 6;
        return EXACT + (shift - 1) * STEPS + (int) (value >> shift) - STEPS;
    }

    private static long middle(int bucket) {
        if (bucket < EXACT) {
            return bucket;
        }
        int shift = (bucket - EXACT) / STEPS + 1;
        long lowest = (long) ((bucket - EXACT) % STEPS + STEPS) << shift;
        return lowest + (1L << (shift - 1));
    }
}
