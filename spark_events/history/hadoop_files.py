"""The files in a folder on any of Hadoop's file systems, through the driver's JVM."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


class HadoopFiles:
    """The files in a folder; see ``database.Files``.

    Args:
        session: a classic one.
        folder: a URL as Hadoop knows it.
    """

    def __init__(self, session: SparkSession, folder: str) -> None:
        self._jvm = session._jvm
        self._context = session.sparkContext
        self._path = folder
        self._folder = self._hadoop_path("")
        self._files = self._folder.getFileSystem(self._context._jsc.hadoopConfiguration())

    def names(self) -> list[str]:
        """Return the names in the folder; none if it does not exist."""
        if not self._files.exists(self._folder):
            return []
        return [str(status.getPath().getName()) for status in self._files.listStatus(self._folder)]

    def exists(self, name: str) -> bool:
        """Return whether there is such a file or folder."""
        return bool(self._files.exists(self._hadoop_path(name)))

    def read(self, name: str) -> bytes:
        """Return what is in a file."""
        stream = self._files.open(self._hadoop_path(name))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def replace(self, name: str, content: bytes) -> None:
        """Write a file in one step."""
        new = self._hadoop_path(f"_{name}.new")
        stream = self._files.create(new, True)
        stream.write(bytearray(content))
        stream.close()
        # A FileSystem's own rename refuses to overwrite.
        fs = self._jvm.org.apache.hadoop.fs
        context = fs.FileContext.getFileContext(
            self._folder.toUri(), self._context._jsc.hadoopConfiguration()
        )
        options = self._context._gateway.new_array(fs.Options.Rename, 1)
        options[0] = fs.Options.Rename.OVERWRITE
        context.rename(new, self._hadoop_path(name), options)

    def remove(self, name: str) -> None:
        """Remove a folder with all that is in it."""
        self._files.delete(self._hadoop_path(name), True)

    def _hadoop_path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._path}/{name}" if name else self._path)
