"""The files in a folder on any of Hadoop's file systems, through the driver's JVM."""

from __future__ import annotations

import uuid
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

    def create(self, name: str, content: bytes) -> bool:
        """Write a file in one step, unless there is one; return whether it is written."""
        new = self._hadoop_path(f"_{name}.{uuid.uuid4().hex}.new")
        stream = self._files.create(new, True)
        stream.write(bytearray(content))
        stream.close()
        if not self.exists(name) and self._files.rename(new, self._hadoop_path(name)):
            return True
        self._files.delete(new, False)
        return False

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it; it need not be there."""
        self._files.delete(self._hadoop_path(name), True)

    def _hadoop_path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._path}/{name}" if name else self._path)
