"""What ``yield from`` does, for asynchronous generators, for which Python has no such statement."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple


class GeneratorRun(NamedTuple):
    """The run of an asynchronous generator that has not begun.

    Attributes:
        generator: it is closed at the end.
        whole: entered before its first step, and left after its last one.
        step: entered before each step and left after it, again and again.
    """

    generator: AsyncGenerator[Any, Any]
    whole: AbstractContextManager[Any]
    step: AbstractContextManager[Any]


def running(start: Callable[..., GeneratorRun]) -> Callable[..., AsyncGenerator[Any, Any]]:
    """Return an asynchronous generator function that runs what ``start`` returns for its arguments.

    What is sent to its generators, or raised in them, as ``contextlib.asynccontextmanager`` does, reaches
    those that they run.
    """

    async def run(*arguments: Any, **named: Any) -> AsyncGenerator[Any, Any]:
        generator, whole, step = start(*arguments, **named)
        with whole:
            resumed = generator.asend(None)
            try:
                while True:
                    try:
                        with step:
                            value = await resumed
                    except StopAsyncIteration:
                        return
                    try:
                        sent = yield value
                    except GeneratorExit:  # nobody wants the rest
                        raise
                    except BaseException as error:
                        resumed = generator.athrow(error)
                    else:
                        resumed = generator.asend(sent)
            finally:
                await generator.aclose()

    return run
