"""An application whose SparkContext cannot start: it has failed, though nothing could attach to it."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Mapping
from typing import Any

from spark_events.api.event import now_ms
from spark_events.listeners.record_fields import APP_ID, APP_NAME, TIMESTAMP
from spark_events.listeners.settings import turned_off
from spark_events.listeners.spark_records import APPLICATION_START, NOT_STARTED
from spark_events.runtime.log_once import logger
from spark_events.sources.assembly import read_checked
from spark_events.sources.attaching import driver_log
from spark_events.sources.driver.ending.last_word import HEAD_CONF, HEAD_TIMEOUT, tell
from spark_events.sources.ending import Ending

_OPENING_S = 2.0


def report_unstarted(spark_context: Any, error: BaseException, began_ms: int) -> None:
    """Report that an application was created and has failed; nothing if it has no configuration yet.

    It is waited for, within the time that closing may take: the process is likely to end of the error, and
    once it does, Python starts no more threads.

    Args:
        spark_context: PySpark's SparkContext, whose ``__init__`` has failed.
        error: what it raised.
        began_ms: when it began, in ms since the epoch.
    """
    driver_log.install()
    conf = conf_of(spark_context)
    configuration = read_checked(conf, strict=False)
    if turned_off(conf):
        return
    configuration.log_problems()
    if not configuration.setups:
        return
    start = start_record(conf, began_ms, None)
    head = {HEAD_CONF: conf, HEAD_TIMEOUT: configuration.settings.close_timeout_ms}
    ending = Ending(exception="".join(traceback.format_exception(error)))

    def report() -> None:
        try:
            tell(head, [], [start], ending, now_ms())
        except Exception:
            logger.exception("that the application could not start cannot be reported")

    thread = threading.Thread(target=report, name="spark-events-unstarted", daemon=True)
    thread.start()
    thread.join(configuration.settings.close_timeout_ms / 1_000 + _OPENING_S)


def start_record(conf: Mapping[str, str], began_ms: int, app_id: str | None) -> dict[str, Any]:
    """Return the ApplicationStart of an application that nothing has attached to.

    Args:
        conf: of the application.
        began_ms: when its SparkContext began to start, in ms since the epoch.
        app_id: of Spark; None if its SparkContext has not started: Spark may have given it one, which
            nobody knows but its JVM.
    """
    record = {"Event": APPLICATION_START, APP_NAME: conf.get("spark.app.name"), TIMESTAMP: began_ms}
    if app_id is None:
        return {**record, APP_ID: f"unstarted-{began_ms}", NOT_STARTED: True}
    return {**record, APP_ID: app_id}


def conf_of(spark_context: Any) -> dict[str, str]:
    """Return Spark's configuration, as far as a SparkContext has come to have one."""
    conf = getattr(spark_context, "_conf", None)
    return dict(conf.getAll()) if conf is not None else {}
