package io.sparkevents.ctas;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/** Small files and whole folders on any file system of Hadoop. */
public class Storage {
    private static final String CONDITIONAL = "fs.option.create.conditional.overwrite";
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
        Path path = new Path(name);
        FileSystem fs = path.getFileSystem(conf);
        String scheme = fs.getUri().getScheme();
        if (scheme.equals("file")) {
            return link(fs, path, text);
        }
        if (scheme.equals("s3a")) {
            return putConditionally(fs, path, text);
        }
        if (scheme.equals("abfs") || scheme.equals("abfss") || scheme.equals("gs")) {
            return create(fs, path, text);
        }
        return rename(fs, path, text);
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
            byte[] bytes = org.apache.commons.io.IOUtils.toByteArray(in);
            return new String(bytes, StandardCharsets.UTF_8);
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
        FileStatus[] found;
        try {
            found = path.getFileSystem(conf).listStatus(path);
        } catch (FileNotFoundException error) {
            return new String[0];
        }
        String[] names = new String[found.length];
        for (int i = 0; i < found.length; i++) {
            names[i] = found[i].getPath().getName();
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

    /** Returns the time of the storage's own clock, in ms, for those who share it may have others. */
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
            throw new IOException("could not be deleted: " + path);
        }
    }

    /** Tells whether a folder has no file in it, or is not there. */
    public boolean isEmpty(String name) throws IOException {
        return list(name).length == 0 && !isFile(name);
    }

    private boolean isFile(String name) throws IOException {
        Path path = new Path(name);
        try {
            return path.getFileSystem(conf).getFileStatus(path).isFile();
        } catch (FileNotFoundException error) {
            return false;
        }
    }

    /** Returns files and bytes below a folder, those of data alone. */
    public long[] amount(String name) throws IOException {
        Path path = new Path(name);
        long[] amount = new long[2];
        FileSystem fs = path.getFileSystem(conf);
        if (!fs.exists(path)) {
            return amount;
        }
        for (RemoteIterator each = fs.listFiles(path, true); each.hasNext();) {
            LocatedFileStatus file = (LocatedFileStatus) each.next();
            String own = file.getPath().getName();
            if (!own.startsWith("_") && !own.startsWith(".")) {
                amount[0]++;
                amount[1] += file.getLen();
            }
        }
        return amount;
    }

    /** Returns the paths of all files of data below a folder. */
    public String[] files(String name) throws IOException {
        Path path = new Path(name);
        java.util.ArrayList found = new java.util.ArrayList();
        for (RemoteIterator each = path.getFileSystem(conf).listFiles(path, true); each.hasNext();) {
            Path file = ((LocatedFileStatus) each.next()).getPath();
            boolean hidden = file.getName().startsWith("_") || file.getName().startsWith(".");
            if (!hidden && file.toString().indexOf("/_spark_metadata/") < 0) {
                found.add(file.toString());
            }
        }
        return (String[]) found.toArray(new String[0]);
    }

    /** Returns when the youngest file below a folder was written, in ms. */
    public long newest(String name) throws IOException {
        Path path = new Path(name);
        long newest = 0L;
        for (RemoteIterator each = path.getFileSystem(conf).listFiles(path, true); each.hasNext();) {
            newest = Math.max(newest, ((LocatedFileStatus) each.next()).getModificationTime());
        }
        return newest;
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
        FileContext.getFileContext(target.toUri(), conf).rename(
            new Path(from), target, new Options.Rename[] {Options.Rename.NONE});
    }

    // -- one of two wins ---------------------------------------------------------------------------------------

    private boolean link(FileSystem fs, Path path, String text) throws IOException {
        java.nio.file.Path target = java.nio.file.Paths.get(path.toUri().getPath(), new String[0]);
        Files.createDirectories(target.getParent(), new java.nio.file.attribute.FileAttribute[0]);
        java.nio.file.Path whole = target.resolveSibling(".new-" + UUID.randomUUID());
        java.nio.channels.FileChannel channel = java.nio.channels.FileChannel.open(whole,
            new java.nio.file.OpenOption[] {java.nio.file.StandardOpenOption.CREATE_NEW,
                java.nio.file.StandardOpenOption.WRITE});
        try {
            channel.write(java.nio.ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8)));
            channel.force(true);
        } finally {
            channel.close();
        }
        try {
            Files.createLink(target, whole);
            return true;
        } catch (FileAlreadyExistsException error) {
            return false;
        } finally {
            Files.deleteIfExists(whole);
        }
    }

    private boolean rename(FileSystem fs, Path path, String text) throws IOException {
        Path whole = new Path(path.getParent(), ".new-" + UUID.randomUUID());
        write(fs.create(whole, false), text);
        try {
            FileContext.getFileContext(path.toUri(), conf).rename(
                whole, path, new Options.Rename[] {Options.Rename.NONE});
            return true;
        } catch (org.apache.hadoop.fs.FileAlreadyExistsException error) {
            return false;
        } finally {
            fs.delete(whole, false);
        }
    }

    private boolean create(FileSystem fs, Path path, String text) throws IOException {
        OutputStream out;
        try {
            out = fs.create(path, false);
        } catch (org.apache.hadoop.fs.FileAlreadyExistsException error) {
            return false;
        }
        write(out, text);
        return true;
    }

    private boolean putConditionally(FileSystem fs, Path path, String text) throws IOException {
        if (!fs.hasPathCapability(path, CONDITIONAL)) {
            throw new IOException("this Hadoop's s3a cannot create a file only where there is none; "
                + "set spark.events.ctas.journal.dir to a folder on another file system");
        }
        org.apache.hadoop.fs.FSDataOutputStreamBuilder builder = fs.createFile(path);
        builder.overwrite(true);
        builder.must(CONDITIONAL, true);
        try {
            write((OutputStream) builder.build(), text);
            return true;
        } catch (org.apache.hadoop.fs.FileAlreadyExistsException error) {
            return false;
        } catch (IOException error) {
            if (exists(path.toString())) {
                return text.equals(read(path.toString()));
            }
            throw error;
        }
    }

    private static void write(OutputStream out, String text) throws IOException {
        try {
            out.write(text.getBytes(StandardCharsets.UTF_8));
        } finally {
            out.close();
        }
    }
}
