package io.sparkevents;

import java.lang.reflect.Field;
import java.util.Map;
import org.apache.spark.scheduler.SparkListener;

/**
 * How YARN's ApplicationMaster has ended the application by itself: too many executors failed, say. In cluster mode it
 * is in the driver's JVM, and tells YARN alone. By reflection: elsewhere there is no such class.
 */
public class MasterEnd {
    private static final String MASTER = "org.apache.spark.deploy.yarn.ApplicationMaster";
    // It says so of the driver's Python; then it is not by itself.
    private static final String OF_PYTHON = "User application exited with status ";

    /** Makes it the cause of an end, with {@code said} and {@code exitCode}, if it is that. */
    static void addTo(Map cause) {
        try {
            Class companion = SparkListener.class.getClassLoader().loadClass(MASTER + "$");
            Object master = companion.getMethod(MASTER.replace('.', '$') + "$$master", new Class[0])
                .invoke(companion.getField("MODULE$").get(null), new Object[0]);
            boolean finished = ((Boolean) value(master, "finished")).booleanValue();
            Integer exitCode = (Integer) value(master, "exitCode");
            String said = (String) value(master, "finalMsg");
            if (finished && exitCode.intValue() != 0 && said != null && !said.startsWith(OF_PYTHON)
                    && EndCause.PYTHON.equals(cause.get("by"))) {
                cause.put("by", EndCause.SPARK);
                cause.put("said", said);
                cause.put("exitCode", exitCode);
            }
        } catch (Throwable absent) {
            // Then it is not that.
        }
    }

    private static Object value(Object master, String name) throws Exception {
        Field field = master.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(master);
    }
}
