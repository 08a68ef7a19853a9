package io.sparkevents.jvm;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
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
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.UnsupportedFileSystemException;

/** A file that only one process can create, whole; each file system has its own way to it. */
public class ExclusiveFile {
    private static final String CONDITIONAL = "fs.option.create.conditional.overwrite";
    private final Configuration conf;
    private final FileSystem fs;
    private final Path path;
    private final String scheme;

    public ExclusiveFile(Configuration conf, String name) throws IOException {
        this.conf = conf;
        this.path = new Path(name);
        this.fs = path.getFileSystem(conf);
        this.scheme = fs.getUri().getScheme();
    }

    /** Tells whether this Hadoop can create it so: S3 needs 3.4.2. */
    public boolean isPossible() throws IOException {
        if (scheme.equals("s3a")) {
            return fs.hasPathCapability(path, CONDITIONAL);
        }
        if (isLocal() || isCreatedDirectly()) {
            return true;
        }
        try {
            FileContext.getFileContext(fs.getUri(), conf);
            return true;
        } catch (UnsupportedFileSystemException error) {
            return false;
        }
    }

    /** Creates the file; false where it is there. */
    public boolean create(String text) throws IOException {
        if (isLocal()) {
            return createByLink(text);
        }
        if (scheme.equals("s3a")) {
            return createByCondition(text);
        }
        return isCreatedDirectly() ? createDirectly(text) : createByRename(text);
    }

    private boolean isLocal() {
        return scheme.equals("file");
    }

    private boolean isCreatedDirectly() {
        return scheme.equals("abfs") || scheme.equals("abfss") || scheme.equals("gs");
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
        write(fs.create(whole, false), text);
        try {
            FileContext context = FileContext.getFileContext(path.toUri(), conf);
            context.rename(whole, path, new Options.Rename[] {Options.Rename.NONE});
            return true;
        } catch (FileAlreadyExistsException error) {
            return false;
        } finally {
            fs.delete(whole, false);
        }
    }

    private boolean createDirectly(String text) throws IOException {
        try {
            write(fs.create(path, false), text);
            return true;
        } catch (FileAlreadyExistsException error) {
            return false;
        }
    }

    private boolean createByCondition(String text) throws IOException {
        FSDataOutputStreamBuilder builder = fs.createFile(path);
        builder.overwrite(true);
        builder.must(CONDITIONAL, true);
        try {
            write((OutputStream) builder.build(), text);
            return true;
        } catch (FileAlreadyExistsException error) {
            return false;
        } catch (IOException error) {
            // The answer to a put that did create the file may have been lost.
            String there = read();
            if (there != null) {
                return text.equals(there);
            }
            throw error;
        }
    }

    private String read() throws IOException {
        InputStream in = null;
        try {
            in = fs.open(path);
            return org.apache.commons.io.IOUtils.toString(in, StandardCharsets.UTF_8);
        } catch (FileNotFoundException error) {
            return null;
        } finally {
            if (in != null) {
                in.close();
            }
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
