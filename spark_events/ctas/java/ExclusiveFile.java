package io.sparkevents.ctas;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** A file that only one process can create, whole; each file system has its own way to it. */
class ExclusiveFile {
    private static final String CONDITIONAL = "fs.option.create.conditional.overwrite";
    private final Storage storage;
    private final FileSystem fs;
    private final Path path;

    ExclusiveFile(Storage storage, Configuration conf, Path path) throws IOException {
        this.storage = storage;
        this.fs = path.getFileSystem(conf);
        this.path = path;
    }

    /** Creates the file; false where it is there. */
    boolean create(String text) throws IOException {
        String scheme = fs.getUri().getScheme();
        if (scheme.equals("file")) {
            return createByLink(text);
        }
        if (scheme.equals("s3a")) {
            return createByCondition(text);
        }
        if (scheme.equals("abfs") || scheme.equals("abfss") || scheme.equals("gs")) {
            return createDirectly(text);
        }
        return createByRename(text);
    }

    private boolean createByLink(String text) throws IOException {
        java.nio.file.Path target = java.nio.file.Paths.get(path.toUri().getPath(), new String[0]);
        Files.createDirectories(target.getParent(), new FileAttribute[0]);
        java.nio.file.Path whole = target.resolveSibling(".new-" + UUID.randomUUID());
        OpenOption[] options = {StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE, StandardOpenOption.SYNC};
        try {
            Files.write(whole, text.getBytes(StandardCharsets.UTF_8), options);
            Files.createLink(target, whole);
            return true;
        } catch (java.nio.file.FileAlreadyExistsException error) {
            return false;
        } finally {
            Files.deleteIfExists(whole);
        }
    }

    private boolean createByRename(String text) throws IOException {
        Path whole = new Path(path.getParent(), ".new-" + UUID.randomUUID());
        Storage.write(fs.create(whole, false), text);
        try {
            storage.rename(whole, path);
            return true;
        } catch (FileAlreadyExistsException error) {
            return false;
        } finally {
            fs.delete(whole, false);
        }
    }

    private boolean createDirectly(String text) throws IOException {
        try {
            Storage.write(fs.create(path, false), text);
            return true;
        } catch (FileAlreadyExistsException error) {
            return false;
        }
    }

    private boolean createByCondition(String text) throws IOException {
        if (!fs.hasPathCapability(path, CONDITIONAL)) {
            throw new IOException("this Hadoop's s3a cannot create a file only if it does not exist; "
                + "set spark.events.ctas.journal.dir to a folder on another file system");
        }
        FSDataOutputStreamBuilder builder = fs.createFile(path);
        builder.overwrite(true);
        builder.must(CONDITIONAL, true);
        try {
            Storage.write((OutputStream) builder.build(), text);
            return true;
        } catch (FileAlreadyExistsException error) {
            return false;
        } catch (IOException error) {
            // The answer to a put that did create the file may have been lost.
            String there = storage.read(path.toString());
            if (there != null) {
                return text.equals(there);
            }
            throw error;
        }
    }
}
