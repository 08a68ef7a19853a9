"""A SparkContext that starts: until it is attached to, ``spark-events run`` alone could tell its end."""

from __future__ import annotations

from typing import Any

import orjson

from spark_events.listeners.settings import read_settings, turned_off
from spark_events.process.held_signals import held_signals
from spark_events.runtime.log_once import logger
from spark_events.sources.attaching.unstarted import conf_of, start_record
from spark_events.sources.driver.ending.last_word import HEAD_CONF, HEAD_TIMEOUT
from spark_events.sources.driver.ending.supervisor_link import NEW, path_of_socket
from spark_events.sources.driver.ending.testament import HEAD
from spark_events.sources.driver.ending.witness import SupervisorWitness


class Start:
    """What ``spark-events run`` is to tell if the driver's Python ends during the start, by a signal, say.

    Nothing is left where this process has no supervisor, and whatever goes wrong is only logged.

    Args:
        began_ms: when the SparkContext began to start, in ms since the epoch.
    """

    def __init__(self, began_ms: int) -> None:
        self.began_ms = began_ms
        self._witness: SupervisorWitness | None = None

    @held_signals()
    def leave(self, spark_context: Any, has_started: bool) -> None:
        """Leave that the application was created; called once there is a configuration, and then an id.

        Args:
            spark_context: PySpark's SparkContext.
            has_started: whether it has, so that Spark's id of the application is known.
        """
        path = path_of_socket()
        if path is None:
            return
        try:
            conf = conf_of(spark_context)
            if turned_off(conf):
                return
            app_id = spark_context.applicationId if has_started else None
            head = {HEAD_CONF: conf, HEAD_TIMEOUT: read_settings(conf)[0].close_timeout_ms}
            record = start_record(conf, self.began_ms, app_id)
            if self._witness is None:
                self._witness = SupervisorWitness(path, f"start-{self.began_ms}")
            self._witness.tell({HEAD: orjson.dumps(head), f"{NEW}start": orjson.dumps(record)})
        except Exception as error:  # of a socket, or py4j's
            logger.debug("spark-events run does not know that the application starts: %r", error)

    def over(self) -> None:
        """Leave nothing any more: the application is attached to, or its failure is told."""
        if self._witness is not None:
            self._witness.ended()
            self._witness = None
