package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.TreeMap;

/** Up to where a batch has read topics of Kafka: the offsets behind the last ones, where the driver knows them. */
final class KafkaOffsets {
    private static final int MOST_RDDS = 100;

    /** Returns the offsets by topic and partition; null for a scan that is not Kafka's, or up to the latest. */
    static TreeMap of(Object node) {
        if (!Reflect.isA(Reflect.get(node, "relation"), "KafkaRelation")) {
            return null;
        }
        ArrayList rdds = new ArrayList();
        IdentityHashMap seen = new IdentityHashMap();
        rdds.add(Reflect.get(node, "rdd"));
        for (int i = 0; i < rdds.size() && i < MOST_RDDS; i++) {
            if (Reflect.isA(rdds.get(i), "KafkaSourceRDD")) {
                return offsets(Reflect.list(Reflect.field(rdds.get(i), "offsetRanges")));
            }
            List dependencies = Reflect.list(Reflect.get(rdds.get(i), "dependencies"));
            for (int j = 0; j < dependencies.size(); j++) {
                Object parent = Reflect.get(dependencies.get(j), "rdd");
                if (seen.put(parent, Boolean.TRUE) == null) {
                    rdds.add(parent);
                }
            }
        }
        return null;
    }

    private static TreeMap offsets(List ranges) {
        TreeMap byTopic = new TreeMap();
        for (int i = 0; i < ranges.size(); i++) {
            long until = ((Number) Reflect.get(ranges.get(i), "untilOffset")).longValue();
            if (until < 0L) {
                return null; // the latest, which only the tasks look up
            }
            String topic = Reflect.text(Reflect.first(ranges.get(i), "topic|topicPartition.topic"));
            TreeMap byPartition = (TreeMap) byTopic.get(topic);
            if (byPartition == null) {
                byPartition = new TreeMap();
                byTopic.put(topic, byPartition);
            }
            String partition = Reflect.text(Reflect.first(ranges.get(i), "partition|topicPartition.partition"));
            // With the option minPartitions, several tasks share a partition.
            Number known = (Number) byPartition.get(partition);
            byPartition.put(partition, Math.max(until, known == null ? 0L : known.longValue()));
        }
        return byTopic;
    }
}
