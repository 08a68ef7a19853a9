"""The files in a folder on any of Hadoop's file systems, through the driver's JVM."""

from __future__ import annotations

import uuid
from typing import Any

from pyspark.sql import SparkSession

from spark_events.jvm.janino import FILES, new


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
        return [str(status.getPath().getName()) for status in self._statuses()]

    def sizes(self) -> dict[str, int]:
        """Return how many bytes the files in the folder have, by name; none if it does not exist."""
        files = [status for status in self._statuses() if status.isFile()]
        return {str(status.getPath().getName()): int(status.getLen()) for status in files}

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
        """Write a file in one step, unless there is one; return whether it is written.

        Of several that do so at once, only one succeeds, except on S3 with a Hadoop before 3.4.2, and on file
        systems of which Hadoop knows no more than how to open them.
        """
        file = new(
            self._context._gateway,
            FILES.load(self._jvm, "ExclusiveFile"),
            self._context._jsc.hadoopConfiguration(),
            f"{self._path}/{name}",
        )
        if file.isPossible():
            return bool(file.create(content.decode()))
        return self._create_alone(name, content)

    def _create_alone(self, name: str, content: bytes) -> bool:
        """Write a file where no other process does so meanwhile, on a Hadoop that can do no better."""
        made = self._hadoop_path(f"_{name}.{uuid.uuid4().hex}.new")
        stream = self._files.create(made, True)
        stream.write(bytearray(content))
        stream.close()
        if not self.exists(name) and self._files.rename(made, self._hadoop_path(name)):
            return True
        self._files.delete(made, False)
        return False

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it; it need not be there."""
        self._files.delete(self._hadoop_path(name), True)

    def _statuses(self) -> list[Any]:
        exists = self._files.exists(self._folder)
        return list(self._files.listStatus(self._folder)) if exists else []

    def _hadoop_path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._path}/{name}" if name else self._path)
