"""An object in the driver's JVM that is asked for a record from time to time."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from spark_events.jvm.janino import JavaUnit, new
from spark_events.runtime.log_once import OnceLog
from spark_events.sources.record_json import load


class PolledJava:
    """The Python side of a Java class of ours whose ``read()`` returns a record as JSON, or null.

    It is compiled when it is asked first: a driver that begins waits for nothing.

    Args:
        spark_context: PySpark's SparkContext.
        name: of the class, among those in ``java``.
        every_s: how often it is asked, in seconds.
        what: it reads, for the log.
        without: what is missing if this Spark is not built as those that we know, for the log.
        log: takes a reading that fails, once.
        arguments: of its constructor, after Scala's SparkContext.
        first_after_s: when it is asked first, in seconds.
    """

    def __init__(
        self,
        spark_context: Any,
        name: str,
        every_s: float,
        what: str,
        without: str,
        log: OnceLog,
        arguments: Sequence[Sequence[str]] = (),
        first_after_s: float = 0.0,
    ) -> None:
        self._context, self._name, self._arguments = spark_context, name, arguments
        self._log, self._what, self._without, self._every_s = log, what, without, every_s
        self._due_s = time.monotonic() + first_after_s
        self._java: Any = None

    def records(self) -> Sequence[dict[str, Any]]:
        """Return a reading when one is due; none in between, if it fails, and once Spark stops.

        Raises:
            py4j.protocol.Py4JNetworkError: the JVM is gone.
        """
        if (now := time.monotonic()) < self._due_s or self._context._jsc is None:
            return ()
        self._due_s = now + self._every_s
        from py4j.protocol import Py4JJavaError, Py4JNetworkError  # comes with PySpark

        if self._java is None:
            try:
                self._java = self._compiled()
            except Py4JNetworkError:
                raise
            except Exception as error:  # whatever Janino says of Spark's internals: all else goes on
                self._due_s = math.inf
                self._log.error((self._name,), f"{self._without}: {self._what} cannot be read here: {error}")
                return ()
        try:
            text = self._java.read()
            return [load(text)] if text else ()
        except (Py4JJavaError, ValueError) as error:
            self._log.error((self._what,), f"could not read {self._what}: {error}")
            return ()

    def _compiled(self) -> Any:
        unit = JavaUnit("spark_events.sources.driver", "io.sparkevents", (self._name,))
        loaded = unit.load(self._context._jvm, self._name)
        texts = map(self._strings, self._arguments)
        return new(self._context._gateway, loaded, self._context._jsc.sc(), *texts)

    def _strings(self, texts: Sequence[str]) -> Any:
        gateway = self._context._gateway
        array = gateway.new_array(gateway.jvm.java.lang.String, len(texts))
        for index, text in enumerate(texts):
            array[index] = text
        return array
