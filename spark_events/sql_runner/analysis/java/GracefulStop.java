package io.sparkevents.sqlrunner;

import io.sparkevents.jvm.Reflect;
import java.util.concurrent.atomic.AtomicReference;

/** Lets a streaming query end after the micro-batch that it is in; Spark's own stop() breaks it off. */
public final class GracefulStop {
    /** Does nothing where this Spark has no such way: what stops the query waits until it is idle all the same. */
    public static void begin(Object query) throws Exception {
        Object stream = Reflect.get(query, "streamingQuery");
        Object state = Reflect.get(stream == null ? query : stream, "state");
        if (!(state instanceof AtomicReference)) {
            return;
        }
        Class now = ((AtomicReference) state).get().getClass();
        String name = now.getName().substring(0, now.getName().lastIndexOf('.')) + ".TERMINATED$";
        ((AtomicReference) state).set(now.getClassLoader().loadClass(name).getField("MODULE$").get(null));
    }
}
