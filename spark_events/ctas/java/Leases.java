package io.sparkevents.ctas;

import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Renews the leases of the transactions that this driver has begun, on a thread of its own. */
public class Leases implements Runnable {
    private final Storage storage;
    private final ConcurrentHashMap held = new ConcurrentHashMap();  // owners by path
    private final long everyMs;
    private Thread thread = null;

    public Leases(Storage storage, long everyMs) {
        this.storage = storage;
        this.everyMs = everyMs;
    }

    /** Holds a lease from now on. */
    public synchronized void hold(String path, String owner) throws java.io.IOException {
        storage.put(path, owner);
        held.put(path, owner);
        if (thread == null) {
            thread = new Thread(this, "spark-events-ctas-leases");
            thread.setDaemon(true);
            thread.start();
        }
    }

    public synchronized void release(String path) throws java.io.IOException {
        held.remove(path);
        storage.delete(path);
    }

    /** Stops renewing a lease, and leaves it as it is. */
    public synchronized void leave(String path) {
        held.remove(path);
    }

    public void run() {
        while (true) {
            try {
                Thread.sleep(everyMs);
            } catch (InterruptedException error) {
                return;
            }
            for (Iterator leases = held.entrySet().iterator(); leases.hasNext();) {
                Map.Entry lease = (Map.Entry) leases.next();
                renew((String) lease.getKey(), (String) lease.getValue());
            }
        }
    }

    private synchronized void renew(String path, String owner) {
        try {
            if (held.containsKey(path)) {
                storage.put(path, owner);
            }
        } catch (Throwable error) {
            // The commit finds out whether the lease was lost; until then the next turn may succeed.
            System.err.println("spark-events: WARNING: could not renew the lease " + path + ": " + error);
        }
    }
}
