"""Reporters that use what they are given, and what they answer with, in odd ways, loaded as ``module:Class``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import wraps
from typing import Any, ClassVar

from spark_events.api import (
    Event,
    EventReporter,
    EventReporterFactory,
    Option,
    PartlyRefused,
    Refused,
    ReporterConfig,
    RetryLater,
    SendingReporter,
    option_types,
)

MODE = Option.must("mode", option_types.STRING, "what it does")


class MuteLater(RetryLater):
    """Says nothing of what stands in the way."""

    def __str__(self) -> str:
        raise SystemExit(3)


class MuteRefusal(Refused):
    """Says nothing of why it refuses."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class BareLater(RetryLater):
    """Has nothing of what it should have."""

    def __init__(self) -> None:
        pass


class BarePartly(PartlyRefused):
    """Has nothing of what it should have."""

    def __init__(self) -> None:
        pass


class Sending(SendingReporter, EventReporter):
    """Keeps what it has sent, and answers as its mode says, once or for good."""

    instances: ClassVar[list[Sending]] = []

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._answers: list[Any] = {
            "text-pause": [RetryLater("busy", after_ms="1")],  # type: ignore[arg-type]
            "endless-pause": [RetryLater("busy", after_ms=float("inf"))],  # type: ignore[arg-type]
            "mute-pause": [MuteLater("")],
            "bare-pause": [BareLater()],
            "bare-count": [BarePartly() for _ in range(9)],
            "long-reason": [RetryLater("x" * 5_000_000)],
            "text-count": [PartlyRefused("2", "two are wrong")],  # type: ignore[arg-type]
            "mute-refusal": [MuteRefusal("") for _ in range(9)],
        }.get(mode, [])
        self.sent: list[bytes] = []
        Sending.instances.append(self)

    def notify_of_added_event(self, event: Event) -> None:
        number = event.attributes["n"]
        self.outbox.put(None if self._mode == "no-record" and number == 1 else b"%d" % number)  # type: ignore[arg-type]

    def send(self, records: Sequence[bytes], context: bytes) -> None:
        if self._answers:
            raise self._answers.pop(0)
        if self._mode == "no-number":
            raise PartlyRefused(None, "some are wrong")  # type: ignore[arg-type]
        if self._mode == "takes-out":
            while records:
                self.sent.append(records.pop(0))  # type: ignore[attr-defined]
        self.sent += records


class OddBound(Sending):
    """Has a bound that is no number."""

    max_request_records = "5"  # type: ignore[assignment]


class OddContext(Sending):
    """Has a context that is not of bytes."""

    context = "all"  # type: ignore[assignment]


class SendingFactory(EventReporterFactory):
    """Makes it."""

    def create(self, config: ReporterConfig) -> EventReporter:
        mode = config.get(MODE)
        return {"text-bound": OddBound, "text-context": OddContext}.get(mode, Sending)(mode)


class Flushing(EventReporter):
    """Answers its first flush as its mode says."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._answers = {
            "text-pause": [RetryLater("busy", after_ms="1")],  # type: ignore[arg-type]
            "mute-pause": [MuteLater("")],
            "bare-pause": [BareLater()],
            "long-reason": [RetryLater("x" * 5_000_000)],
        }.get(mode, [])

    def notify_of_added_event(self, event: Event) -> None:
        pass

    def flush(self) -> None:
        if self._answers:
            raise self._answers.pop()

    def close(self) -> None:
        if self._mode == "close":
            raise ValueError("no end")


class Coroutine(Flushing):
    """Has a call that runs nothing."""

    async def flush(self) -> None:  # type: ignore[override]
        pass


class CoroutineOfAnother(Flushing):
    """Has one that is made elsewhere."""

    def flush(self) -> Any:
        return Coroutine("").flush()


class Generator(Flushing):
    """Has another one."""

    def notify_of_added_event(self, event: Event) -> Any:
        yield event


def run(function: Any) -> Any:
    """Decorate a coroutine function so that a call runs it."""

    @wraps(function)
    def called(*arguments: Any) -> Any:
        return asyncio.run(function(*arguments))

    return called


class Run(Flushing):
    """Has a coroutine that is run."""

    @run
    async def notify_of_added_event(self, event: Event) -> None:
        pass


class RunsNothingFactory(EventReporterFactory):
    """Makes them."""

    def create(self, config: ReporterConfig) -> EventReporter:
        return {
            "coroutine": Coroutine,
            "coroutine-of-another": CoroutineOfAnother,
            "generator": Generator,
            "run": Run,
        }[config.get(MODE)]("")


class FlushingFactory(EventReporterFactory):
    """Makes it."""

    def create(self, config: ReporterConfig) -> EventReporter:
        return Flushing(config.get(MODE))
