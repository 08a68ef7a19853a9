package io.sparkevents.ctas;

import io.sparkevents.jvm.ExclusiveFile;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/** Small files and whole folders on any file system of Hadoop. */
public class Storage {
    private final Configuration conf;

    public Storage(Configuration conf) {
        this.conf = conf;
    }

    /** Returns a path as its file system writes it. */
    public String qualified(String path) throws IOException {
        Path given = new Path(path);
        return given.getFileSystem(conf).makeQualified(given).toString();
    }

    /** Writes a file that is not there yet, whole; false where it is there. Of two at once, one wins. */
    public boolean putIfAbsent(String name, String text) throws IOException {
        ExclusiveFile file = new ExclusiveFile(conf, name);
        if (!file.isPossible()) {
            throw new IOException("this Hadoop's " + new Path(name).getFileSystem(conf).getUri().getScheme()
                + " cannot create a file only if it does not exist; "
                + "set spark.events.ctas.journal.dir to a folder on another file system");
        }
        return file.create(text);
    }

    /** Writes a file, whether it is there or not. */
    public void put(String name, String text) throws IOException {
        Path path = new Path(name);
        write(path.getFileSystem(conf).create(path, true), text);
    }

    /** Returns a file's text; null where it is not there. */
    public String read(String name) throws IOException {
        Path path = new Path(name);
        InputStream in = null;
        try {
            in = path.getFileSystem(conf).open(path);
            return org.apache.commons.io.IOUtils.toString(in, StandardCharsets.UTF_8);
        } catch (FileNotFoundException error) {
            return null;
        } finally {
            if (in != null) {
                in.close();
            }
        }
    }

    /** Returns the names in a folder; none where it is not there. */
    public String[] list(String name) throws IOException {
        Path path = new Path(name);
        FileStatus[] entries;
        try {
            entries = path.getFileSystem(conf).listStatus(path);
        } catch (FileNotFoundException error) {
            return new String[0];
        }
        String[] names = new String[entries.length];
        for (int i = 0; i < entries.length; i++) {
            names[i] = entries[i].getPath().getName();
        }
        return names;
    }

    /** Returns when a file was last written, in ms; -1 where it is not there. */
    public long modified(String name) throws IOException {
        Path path = new Path(name);
        try {
            return path.getFileSystem(conf).getFileStatus(path).getModificationTime();
        } catch (FileNotFoundException error) {
            return -1L;
        }
    }

    /** Returns the time of the storage's own clock, in ms, because the machines that share it may differ in theirs. */
    public long now(String folder) throws IOException {
        Path probe = new Path(folder, ".clock-" + UUID.randomUUID());
        put(probe.toString(), "");
        try {
            return modified(probe.toString());
        } finally {
            probe.getFileSystem(conf).delete(probe, false);
        }
    }

    public boolean exists(String name) throws IOException {
        Path path = new Path(name);
        return path.getFileSystem(conf).exists(path);
    }

    /** Deletes a file or a folder with all that is in it; returns once it is gone. */
    public void delete(String name) throws IOException {
        Path path = new Path(name);
        FileSystem fs = path.getFileSystem(conf);
        if (!fs.delete(path, true) && fs.exists(path)) {
            throw new IOException("could not delete " + path);
        }
    }

    /** Returns whether a folder is empty or missing; the listing of a file contains the file itself. */
    public boolean isEmpty(String name) throws IOException {
        return list(name).length == 0;
    }

    /** Returns files and bytes below a folder, those of data alone. */
    public long[] amount(String name) throws IOException {
        long[] amount = new long[2];
        if (!exists(name)) {
            return amount;
        }
        for (RemoteIterator files = below(name); files.hasNext();) {
            FileStatus file = (FileStatus) files.next();
            if (!isHidden(file.getPath())) {
                amount[0]++;
                amount[1] += file.getLen();
            }
        }
        return amount;
    }

    /** Returns the paths of all files of data below a folder. */
    public String[] files(String name) throws IOException {
        ArrayList paths = new ArrayList();
        for (RemoteIterator files = below(name); files.hasNext();) {
            Path path = ((FileStatus) files.next()).getPath();
            if (!isHidden(path) && path.toString().indexOf("/_spark_metadata/") < 0) {
                paths.add(path.toString());
            }
        }
        return (String[]) paths.toArray(new String[0]);
    }

    /** Returns a digest of the paths and sizes of all files of data below folders: other files, another digest. */
    String digest(List folders) throws IOException {
        TreeSet files = new TreeSet();
        for (int i = 0; i < folders.size(); i++) {
            String folder = (String) folders.get(i);
            for (RemoteIterator each = exists(folder) ? below(folder) : null; each != null && each.hasNext();) {
                FileStatus file = (FileStatus) each.next();
                if (!isHidden(file.getPath())) {
                    files.add(file.getPath() + " " + file.getLen());
                }
            }
        }
        return org.apache.commons.codec.digest.DigestUtils.sha256Hex(String.join("\n", files));
    }

    /** Returns when the youngest file below a folder was written, in ms. */
    public long newest(String name) throws IOException {
        long newest = 0L;
        for (RemoteIterator files = below(name); files.hasNext();) {
            newest = Math.max(newest, ((FileStatus) files.next()).getModificationTime());
        }
        return newest;
    }

    private RemoteIterator below(String folder) throws IOException {
        Path path = new Path(folder);
        return path.getFileSystem(conf).listFiles(path, true);
    }

    private static boolean isHidden(Path path) {
        return path.getName().startsWith("_") || path.getName().startsWith(".");
    }

    /** Tells whether a folder can be renamed in one step: of object stores none can. */
    public boolean renames(String name) throws IOException {
        String scheme = new Path(name).getFileSystem(conf).getUri().getScheme();
        return scheme.equals("file") || scheme.equals("hdfs") || scheme.equals("viewfs");
    }

    /** Renames a folder to a path where there is nothing, or a folder without a file. */
    public void rename(String from, String to) throws IOException {
        Path target = new Path(to);
        FileSystem fs = target.getFileSystem(conf);
        if (fs.exists(target)) {
            if (!isEmpty(to)) {
                throw new org.apache.hadoop.fs.FileAlreadyExistsException(to + " is not empty");
            }
            fs.delete(target, false);
        }
        fs.mkdirs(target.getParent());
        rename(new Path(from), target);
    }

    /** Renames to a path where there is nothing; throws where there is something. */
    void rename(Path from, Path to) throws IOException {
        FileContext.getFileContext(to.toUri(), conf).rename(from, to, new Options.Rename[] {Options.Rename.NONE});
    }

    static void write(OutputStream out, String text) throws IOException {
        try {
            out.write(text.getBytes(StandardCharsets.UTF_8));
        } finally {
            out.close();
        }
    }
}
