"""The row of a query in ``spark-events sql status``."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spark_events.sql_runner.deploy.snapshot import QuerySnapshot

_ENDED, _SILENT, _FAILED = "ENDED", "SILENT", "FAILED"
_NOT_HEARD = (_ENDED, "GONE", _SILENT)
_INTERRUPTED = "its deployment was interrupted after it had stopped the query; deploy again"


@dataclass(frozen=True)
class QueryRow:
    """One row of ``spark-events sql status``.

    Attributes:
        state: as in ``JobStatus``; if it should run but its application is not running: ENDED if somebody
            asked the application to end (FAILED stays so), else GONE; SILENT if its application is overdue to
            be heard; UNKNOWN if the files that would say it are damaged.
        wanted: whether it is to run.
        application: where it runs, for people to read.
        since_ms: when it entered that state, in ms since the epoch; None if unknown, as of GONE and SILENT.
        batch: the last finished micro-batch.
        batch_ms: when that ended, in ms since the epoch.
        restarts: since it was deployed.
        error: why it last failed.
        error_ms: when that was, in ms since the epoch; None if unknown.
        recovered: whether it has run well since then.
        progress_ms: the trigger that Spark last reported, in ms since the epoch; also without data.
        input_rate: the rows a second that it read.
        behind: how many offsets its sources had ahead of it; None if they do not say.
        watermark_lag_ms: how far its watermark was behind it, in ms; None without one.
        restarted_ms: when it was last restarted, in ms since the epoch, the latest first.
        is_damaged: whether a file of the store that is about it cannot be understood.
    """

    name: str
    state: str
    wanted: bool
    version: int
    application: str
    since_ms: int | None = None
    batch: int | None = None
    batch_ms: int | None = None
    restarts: int = 0
    error: str = ""
    error_ms: int | None = None
    recovered: bool = False
    progress_ms: int | None = None
    input_rate: float | None = None
    behind: int | None = None
    watermark_lag_ms: int | None = None
    restarted_ms: tuple[int, ...] = ()
    is_damaged: bool = False

    @classmethod
    def of(cls, current: QuerySnapshot, deploying: bool = False) -> QueryRow:
        """Return the row of a query.

        Args:
            current: the query.
            deploying: whether a deployment is running, which may start it in a moment.
        """
        status, state = current.status, _state_of(current)
        error = status.error if status else ""
        if state in _NOT_HEARD:
            error = current.host.why_gone()
            if status and status.error and not status.recovered:
                error = f"{error}; before that, the query failed: {status.error}"
        elif state == _FAILED and current.host.ended:
            error = f"{error}; {current.host.why_gone()}"
        elif current.wanted and not current.ordered:
            error = "is being deployed" if deploying else _INTERRUPTED
        if current.damage:
            error = f"{current.damage}; {error}" if error else current.damage
        row = cls(
            current.name,
            state,
            current.wanted and not (deploying and not current.ordered),
            current.version,
            current.host.link.described,
            error=error,
            is_damaged=bool(current.damage),
        )
        if status is None:
            return row
        heard = state not in _NOT_HEARD
        return replace(
            row,
            since_ms=status.since_ms if state in (status.state, _ENDED) else None,
            batch=status.batch,
            batch_ms=status.batch_ms,
            restarts=status.restarts,
            error_ms=status.error_ms if heard else None,
            recovered=status.recovered and heard,
            progress_ms=status.progress_ms,
            input_rate=status.input_rate,
            behind=status.behind,
            watermark_lag_ms=status.watermark_lag_ms,
            restarted_ms=status.restarted_ms,
        )

    @property
    def is_well(self) -> bool:
        """Whether it is running, or has ended as requested."""
        if self.is_damaged:
            return False
        return not self.wanted or self.state in ("RUNNING", "FINISHED", "CREATED", _ENDED)


def _state_of(current: QuerySnapshot) -> str:
    status, host = current.status, current.host
    if current.is_unknown:
        return "UNKNOWN"
    if current.ordered and (status is None or status.state != "FINISHED"):
        if host.is_starting:
            return "CREATED"
        if not host.is_alive:
            if not host.ended:
                return "GONE"
            return status.state if status is not None and status.state == _FAILED else _ENDED
        if host.silent_ms:
            return _SILENT
    if status is not None:
        return status.state
    if current.ordered:
        return "CREATED"
    return "CANCELLING" if host.is_alive and current.order is not None else "CANCELED"
