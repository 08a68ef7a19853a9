package io.sparkevents;

import java.util.ArrayDeque;

/** Records that wait for Python, bounded in bytes. The routine ones are dropped first; all leave in their order. */
public class RecordQueue {
    // Each holds Object[] {number, record}.
    private final ArrayDeque routine = new ArrayDeque();
    private final ArrayDeque lasting = new ArrayDeque();
    private final long maxBytes;
    private long number = 0;
    private long bytes = 0;
    private long dropped = 0;
    private long failed = 0;
    private boolean woken = false;
    private boolean closed = false;
    // What the last drain returned, which nobody may have handled yet; and the number of its last record.
    private String drained = "";
    private long lastDrained = -1;

    public RecordQueue(long maxBytes) {
        this.maxBytes = maxBytes;
    }

    /** Adds a record, or counts it as dropped where it does not fit; returns its number. */
    synchronized long add(String record, boolean isRoutine) {
        if (closed) {
            return number++;
        }
        if (!makeRoom(record.length())) {
            dropped++;
            return number++;
        }
        bytes += record.length();
        (isRoutine ? routine : lasting).addLast(new Object[] {Long.valueOf(number), record});
        notifyAll();
        return number++;
    }

    /** Returns the number up to which all that was drained is handled: a drain says so of the one before. */
    synchronized long handled() {
        return lastDrained;
    }

    /** Counts a record that could not be made. */
    synchronized void countFailed() {
        failed++;
    }

    /** Waits for records, up to waitMs, and returns them: a line of counters, then a line for each. */
    synchronized String drain(int maxRecords, long waitMs) throws InterruptedException {
        if (waitMs > 0 && isEmpty() && !woken) {
            wait(waitMs);
        }
        woken = false;
        StringBuilder batch = new StringBuilder();
        batch.append("{\"dropped\":").append(dropped).append(",\"failed\":").append(failed);
        batch.append(",\"bytes\":").append(bytes);
        batch.append(",\"records\":").append(routine.size() + lasting.size()).append('}');
        int head = batch.length();
        for (int i = 0; i < maxRecords && !isEmpty(); i++) {
            ArrayDeque next = earlier();
            lastDrained = Math.max(lastDrained, ((Long) ((Object[]) next.peekFirst())[0]).longValue());
            batch.append('\n').append(poll(next));
        }
        drained = batch.substring(head);
        return batch.toString();
    }

    /** Returns what the last drain returned and all that waits, each record after a line feed. */
    synchronized String rest() {
        StringBuilder rest = new StringBuilder(drained);
        while (!isEmpty()) {
            rest.append('\n').append(poll(earlier()));
        }
        return rest.toString();
    }

    /** Ends a drain that is waiting. */
    synchronized void wake() {
        woken = true;
        notifyAll();
    }

    /** Forgets what waits, and takes no more: nobody fetches it. */
    synchronized void close() {
        closed = true;
        routine.clear();
        lasting.clear();
        bytes = 0;
        drained = "";
    }

    private boolean isEmpty() {
        return routine.isEmpty() && lasting.isEmpty();
    }

    /** Returns the queue whose first record came before the other's. */
    private ArrayDeque earlier() {
        if (routine.isEmpty() || lasting.isEmpty()) {
            return routine.isEmpty() ? lasting : routine;
        }
        long first = ((Long) ((Object[]) routine.peekFirst())[0]).longValue();
        return first < ((Long) ((Object[]) lasting.peekFirst())[0]).longValue() ? routine : lasting;
    }

    private String poll(ArrayDeque queue) {
        String record = (String) ((Object[]) queue.pollFirst())[1];
        bytes -= record.length();
        return record;
    }

    /** Tells whether a record fits, after dropping older ones where there is too little room. */
    private boolean makeRoom(int size) {
        while (bytes + size > maxBytes && !isEmpty()) {
            poll(routine.isEmpty() ? lasting : routine);
            dropped++;
        }
        return bytes + size <= maxBytes;
    }
}
