"""The index of a store: a file that names, for each day, the folder with its facts and sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson

from spark_events.api import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VERSION = 1
_FILE = "store.json"
_NEW_FILE = f"_{_FILE}.new"
FOLDER_PREFIX = "part-"
"""How the names of the folders begin."""
Days = dict[str, dict[str, Any]]
"""By the day, as ``2026-11-21``: its ``folder``, and the ``sla`` that its sums were made with."""


class StoreIndex:
    """The file ``store.json`` in the folder of a store, on any of Hadoop's file systems.

    Args:
        spark: a classic session.
        path: of the store.

    Attributes:
        days: as of the last time that it was read or written.

    Raises:
        ConfigError: the folder is not that of a store, or of a store of another version.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._path = path
        self._folder = self._hadoop_path(path)
        self._files = self._folder.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        self.days = self._read()

    def exists(self, path: str) -> bool:
        """Tell whether there is a file or folder."""
        return bool(self._files.exists(self._hadoop_path(path)))

    def commit(self, changed: Days) -> None:
        """Write the index with other folders for some days, and remove the folders that no day has any more.

        Raises:
            ConfigError: another process has written it meanwhile.
        """
        if self._read() != self.days:
            raise ConfigError(f"{self._path}: another process added to the store meanwhile; run it again")
        self.days = {**self.days, **changed}
        new = self._hadoop_path(f"{self._path}/{_NEW_FILE}")
        stream = self._files.create(new, True)
        content = {"version": _VERSION, "days": self.days}
        stream.write(bytearray(orjson.dumps(content, option=orjson.OPT_INDENT_2)))
        stream.close()
        self._replace(new, self._hadoop_path(f"{self._path}/{_FILE}"))
        self._remove_unused_folders()

    def _read(self) -> Days:
        path = f"{self._path}/{_FILE}"
        if not self.exists(path):
            strange = [name for name in self._names() if not name.startswith((FOLDER_PREFIX, f"_{_FILE}"))]
            if strange:
                raise ConfigError(f"{self._path}: has no {_FILE} but {strange[0]}: it is no store")
            return {}
        stream = self._files.open(self._hadoop_path(path))
        try:
            text = self._spark._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()
        content: Mapping[str, Any] = orjson.loads(text)
        if content.get("version") != _VERSION:
            raise ConfigError(f"{path}: version {content.get('version')!r}; {_VERSION} is known")
        days: Days = content["days"]
        return days

    def _remove_unused_folders(self) -> None:
        """Remove the folders of no day: replaced ones, and those that an interrupted run left behind."""
        used = {day["folder"] for day in self.days.values()}
        for name in self._names():
            if name.startswith(FOLDER_PREFIX) and name not in used:
                self._files.delete(self._hadoop_path(f"{self._path}/{name}"), True)

    def _names(self) -> list[str]:
        if not self._files.exists(self._folder):
            return []
        return [str(status.getPath().getName()) for status in self._files.listStatus(self._folder)]

    def _replace(self, source: Any, target: Any) -> None:
        """Rename a file to the name of another; a FileSystem's own rename refuses to overwrite."""
        fs = self._spark._jvm.org.apache.hadoop.fs
        context = self._spark.sparkContext
        files = fs.FileContext.getFileContext(self._folder.toUri(), context._jsc.hadoopConfiguration())
        options = context._gateway.new_array(fs.Options.Rename, 1)
        options[0] = fs.Options.Rename.OVERWRITE
        files.rename(source, target, options)

    def _hadoop_path(self, path: str) -> Any:
        return self._spark._jvm.org.apache.hadoop.fs.Path(path)
