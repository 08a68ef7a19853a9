package io.sparkevents.lineage;

import io.sparkevents.jvm.Identities;
import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.JobConf;
import org.apache.spark.sql.catalyst.expressions.Attribute;

/** Finds what RDDs read, by the RDDs that they depend on; of columns, an RDD knows nothing. */
final class RddReader {
    private static final int MOST_RDDS = 10000;
    private static final int MOST_FILES = 100000;
    private static final Attribute[] NO_COLUMNS = new Attribute[0];
    /** RDDs whose rows are the program's own. */
    private static final List OF_PROGRAM = Arrays.asList("ParallelCollectionRDD", "EmptyRDD");
    private final PlanFacts facts;
    private final Identities identities;
    private final LinkedHashSet known = new LinkedHashSet();
    private final LinkedHashSet unknown = new LinkedHashSet();

    RddReader(PlanFacts facts, Identities identities) {
        this.facts = facts;
        this.identities = identities;
    }

    /** Adds all that an RDD reads as sources without columns; says what of it is not known. */
    void read(Object rdd) {
        IdentityHashMap seen = new IdentityHashMap();
        ArrayList rdds = new ArrayList();
        rdds.add(rdd);
        for (int i = 0; i < rdds.size(); i++) {
            if (i >= MOST_RDDS || facts.isOutOfTime()) {
                unknown.add("more than " + i + " RDDs");
                break;
            }
            List dependencies = Reflect.list(Reflect.get(rdds.get(i), "dependencies"));
            if (dependencies.isEmpty()) {
                readRoot(rdds.get(i));
            }
            for (int j = 0; j < dependencies.size(); j++) {
                Object parent = Reflect.get(dependencies.get(j), "rdd");
                if (seen.put(parent, Boolean.TRUE) == null) {
                    rdds.add(parent);
                }
            }
        }
        if (!unknown.isEmpty()) {
            facts.setIncomplete("an RDD reads what is not known: " + String.join(", ", unknown));
        }
    }

    private void readRoot(Object rdd) {
        if (Reflect.isA(rdd, "HadoopRDD")) {
            readHadoop((JobConf) Reflect.get(rdd, "getJobConf"), Reflect.field(rdd, "inputFormatClass"));
        } else if (Reflect.isA(rdd, "NewHadoopRDD")) {
            Configuration conf = (Configuration) Reflect.get(rdd, "getConf");
            readHadoop(conf == null ? null : new JobConf(conf), Reflect.field(rdd, "inputFormatClass"));
        } else if (Reflect.isA(rdd, "FileScanRDD")) {
            readScan(rdd);
        } else if (Reflect.field(rdd, "options") != null && Reflect.isA(rdd, "JDBCRDD")) {
            add(identities.ofJdbc(Reflect.field(rdd, "options")));
        } else if (Reflect.isA(rdd, "ReliableCheckpointRDD")) {
            add(identities.ofPath(Reflect.field(rdd, "checkpointPath"), null));
        } else if (!OF_PROGRAM.contains(Reflect.simpleName(rdd.getClass()))) {
            unknown.add(Reflect.simpleName(rdd.getClass()));
        }
    }

    private void readHadoop(JobConf conf, Object inputFormat) {
        Path[] paths = conf == null ? new Path[0] : FileInputFormat.getInputPaths(conf);
        if (paths.length == 0) {
            unknown.add(inputFormat instanceof Class ? ((Class) inputFormat).getName() : "HadoopRDD");
        }
        for (int i = 0; i < paths.length; i++) {
            add(identities.ofPath(paths[i], null));
        }
    }

    /** Files that tasks have written are known by their folder. */
    private void readScan(Object rdd) {
        LinkedHashSet folders = new LinkedHashSet();
        List partitions = Reflect.list(Reflect.get(rdd, "filePartitions"));
        int count = 0;
        for (int i = 0; i < partitions.size(); i++) {
            Object[] files = (Object[]) Reflect.get(partitions.get(i), "files");
            for (int j = 0; j < files.length && count++ < MOST_FILES; j++) {
                // A text up to Spark 3.3; it has the escapes of a URI.
                Path path = new Path(java.net.URI.create(String.valueOf(Reflect.get(files[j], "filePath"))));
                folders.add(path.getName().startsWith("part-") ? path.getParent() : path);
            }
        }
        if (folders.isEmpty()) {
            unknown.add("a scan without files");
            return;
        }
        LinkedHashMap identity = identities.ofPath(null, null);
        identity.put("paths", Identities.paths(folders));
        add(identity);
    }

    private void add(LinkedHashMap identity) {
        if (known.add(identity)) {
            facts.addSource(identity, NO_COLUMNS, false);
        }
    }
}
