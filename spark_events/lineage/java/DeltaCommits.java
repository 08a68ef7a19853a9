package io.sparkevents.lineage;

import io.sparkevents.jvm.Calls;
import io.sparkevents.jvm.Reflect;
import java.io.BufferedReader;
import java.io.FileNotFoundException;
import java.io.InputStreamReader;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Finds the version of a Delta table that a statement or a micro-batch has committed. Delta does not say; its log has
 * the time and the operation of each commit. A version is told only if one commit alone may be the writer's, and agrees
 * with it.
 */
final class DeltaCommits implements Callable {
    private static final String COMPANION = "org.apache.spark.sql.delta.DeltaLog$";
    private static final String LAST_OF_SESSION = "spark.databricks.delta.lastCommitVersionInSession";
    private static final int MOST_COMMITS = 20;
    /** Amounts, and Delta's metrics of them: those of a write, or of files that were written again, or of MERGE. */
    private static final String[][] AMOUNTS = {
        {"rows", "numOutputRows", "numCopiedRows+numUpdatedRows"},
        {"bytes", "numOutputBytes", "numAddedBytes", "numTargetBytesAdded"},
        {"files", "numFiles", "numAddedFiles", "numTargetFilesAdded"}
    };
    private final Object session;
    private final Object path;
    private final OwnCommit change;
    private final long sinceMs;
    private final long untilMs;

    /**
     * @param change that the writer has made
     * @param sinceMs when the writer began
     * @param untilMs when it ended
     */
    private DeltaCommits(Object session, Object path, OwnCommit change, long sinceMs, long untilMs) {
        this.session = session;
        this.path = path;
        this.change = change;
        this.sinceMs = sinceMs;
        this.untilMs = untilMs;
    }

    /** Returns the version and the amounts of the writer's commit; null where it is not known. */
    static LinkedHashMap find(Object session, Map sink, OwnCommit change, long sinceMs, long untilMs) {
        Map identity = (Map) sink.get("identity");
        List paths = Reflect.list(identity.get("paths"));
        Object option = Reflect.map(identity.get("options")).get("path");
        if (paths.size() > 1 || paths.isEmpty() && option == null) {
            return null;
        }
        Object path = paths.isEmpty() ? option : paths.get(0);
        return (LinkedHashMap) CatalogCalls.LOGS.ask(new DeltaCommits(session, path, change, sinceMs, untilMs));
    }

    /** Looks at the last commits, until one is older than the writer. */
    public Object call() throws Exception {
        Path folder = new Path(new Path(java.net.URI.create(uri())), "_delta_log");
        FileSystem files = folder.getFileSystem((Configuration) Reflect.path(session, "sessionState.newHadoopConf"));
        LinkedHashMap candidate = null;
        long candidateVersion = 0L;
        long last = last(files, folder);
        for (long version = last; version > last - MOST_COMMITS; version--) {
            LinkedHashMap commit = commit(files, folder, version);
            long time = commit == null ? 0L : ((Number) commit.get("timestamp")).longValue();
            if (time < sinceMs) {
                boolean isOwn = candidate != null && change.agrees(candidate);
                return isOwn ? shown(candidateVersion, (Map) candidate.get("operationMetrics")) : null;
            }
            if (time <= untilMs && change.isOfKind(commit)) {
                if (candidate != null) {
                    return null;
                }
                candidate = commit;
                candidateVersion = version;
                if (change.isUnique()) {
                    return shown(version, (Map) commit.get("operationMetrics"));
                }
            }
        }
        return null;
    }

    /** Returns the table's last version; -1 where it is not known. */
    private long last(FileSystem files, Path folder) throws Exception {
        Object known = Reflect.path(log(), "unsafeVolatileSnapshot.version");
        if (known != null) {
            return ((Number) known).longValue();
        }
        // Spark has stopped, and Delta has no log without it. Others may have committed after this session.
        Object conf = Reflect.path(session, "sessionState.conf.getAllConfs");
        String ofSession = (String) Reflect.map(conf).get(LAST_OF_SESSION);
        long last = ofSession == null ? 0L : Long.parseLong(ofSession);
        long first = last;
        while (last - first < MOST_COMMITS && files.exists(file(folder, last))) {
            last++;
        }
        return last - 1L;
    }

    /** Delta keeps the logs that it has used: that of the writer's table is one of them. */
    private Object log() throws Exception {
        ClassLoader loader = Thread.currentThread().getContextClassLoader();
        Object companion = Class.forName(COMPANION, true, loader).getField("MODULE$").get(null);
        try {
            return Calls.call(companion, "forTable", new Object[] {session, new Path(java.net.URI.create(uri()))});
        } catch (Throwable stopped) {
            return null;
        }
    }

    private static Path file(Path folder, long version) {
        return new Path(folder, String.format("%020d.json", new Object[] {version}));
    }

    private String uri() {
        String text = String.valueOf(path);
        return text.indexOf(':') < 0 ? new Path(text).toUri().toString() : text;
    }

    /** Returns what a commit says of itself; null for one that the log does not have, or no longer has. */
    private static LinkedHashMap commit(FileSystem files, Path folder, long version) throws Exception {
        Path file = file(folder, version);
        BufferedReader lines;
        try {
            lines = new BufferedReader(new InputStreamReader(files.open(file), "UTF-8"));
        } catch (FileNotFoundException none) {
            return null;
        }
        try {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.startsWith("{\"commitInfo\"")) {
                    return (LinkedHashMap) Calls.parse(line).get("commitInfo");
                }
            }
            throw new IllegalStateException("a commit without commitInfo: " + file);
        } finally {
            lines.close();
        }
    }

    private static LinkedHashMap shown(long version, Map metrics) {
        LinkedHashMap amounts = new LinkedHashMap();
        for (int i = 0; metrics != null && i < AMOUNTS.length; i++) {
            Long amount = null;
            for (int j = 1; j < AMOUNTS[i].length && amount == null; j++) {
                amount = sum(metrics, AMOUNTS[i][j].split("\\+"));
            }
            if (amount != null) {
                amounts.put(AMOUNTS[i][0], amount);
            }
        }
        LinkedHashMap shown = new LinkedHashMap();
        shown.put("version", version);
        shown.put("written", amounts);
        return shown;
    }

    /** Returns the sum of metrics; null where there is none of them. */
    private static Long sum(Map metrics, String[] names) {
        Long sum = null;
        for (int i = 0; i < names.length; i++) {
            Object metric = metrics.get(names[i]);
            if (metric != null) {
                sum = Long.parseLong(String.valueOf(metric)) + (sum == null ? 0L : sum.longValue());
            }
        }
        return sum;
    }
}
