"""Runs the Python code of a manifest, which makes the query."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

from spark_events.spark.sql_errors import error_summary
from spark_events.sql_runner.analysis.query_error import QueryError
from spark_events.sql_runner.analysis.session_names import SessionNames
from spark_events.sql_runner.manifest.manifest import Manifest

_RESULT = "execution_output"

_runs_code: ContextVar[bool] = ContextVar("_runs_code", default=False)
"""Whether this thread runs the code of a manifest."""
_names: WeakKeyDictionary[Any, SessionNames] = WeakKeyDictionary()
"""What each session had before code ran in it."""


def run_code(session: Any, manifest: Manifest) -> Any:
    """Run the code of a manifest, and return the DataFrame that it makes.

    What it prints goes to standard error in a command, whose output may be for other programs. It runs again
    at each restart of its query, so what the time before left in the session is removed first.

    Raises:
        QueryError: it fails, or makes no DataFrame.
    """
    from pyspark.sql import DataFrame

    scope: dict[str, Any] = {"spark": session, "__name__": f"manifest {manifest.name}"}
    try:
        # Else it would inherit the __future__ statements of this module.
        code = compile(manifest.code or "", f"<code of {manifest.name}>", "exec", dont_inherit=True)
        _forget_names(session)
        with _without_stop(session.sparkContext), _output_to_errors():
            exec(code, scope)
    except QueryError as error:
        raise QueryError(str(error), _line_of(error, manifest)) from error
    except SystemExit as error:
        raise QueryError(f"code: calls sys.exit({error.code!r}); it may only set {_RESULT}") from error
    except SyntaxError as error:
        raise QueryError(f"code: {error.msg}", error.lineno) from error
    except BaseException as error:  # such as asyncio's CancelledError
        if isinstance(error, KeyboardInterrupt) and _is_main_thread():  # which may be the user's Ctrl-C
            raise
        raise QueryError(f"code: {error_summary(error)}", _line_of(error, manifest)) from error
    data = scope.get(_RESULT)
    # Spark 3.5 and 4 have different DataFrame classes, all derived from this one.
    if not isinstance(data, DataFrame):
        problem = "is not set" if data is None else f"is a {type(data).__name__}"
        raise QueryError(f"code: {_RESULT} {problem}; expected a streaming DataFrame of spark")
    return data


def _forget_names(session: Any) -> None:
    """Remove what code has made in a session before; the first time, remember what there is."""
    if (before := _names.get(session)) is None:
        _names[session] = SessionNames.of(session)
    else:
        before.restore(session)


def _output_to_errors() -> AbstractContextManager[Any]:
    """Of a process, there is one standard output: other threads, which a host has, leave it alone."""
    return redirect_stdout(sys.stderr) if _is_main_thread() else nullcontext()


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def _without_stop(context: Any) -> Iterator[None]:
    """Refuse to stop Spark: the other queries run in the same application.

    Several manifests are analyzed at once in it, each in a thread of its own, and whoever runs them stops it.
    """

    def stop() -> None:
        if _runs_code.get():
            raise QueryError(f"code: calls spark.stop(); it may only set {_RESULT}")
        type(context).stop(context)

    context.stop = stop  # for good: another thread may need it when this one is done
    token = _runs_code.set(True)
    try:
        yield
    finally:
        _runs_code.reset(token)


def _line_of(error: BaseException, manifest: Manifest) -> int | None:
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == f"<code of {manifest.name}>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
