"""The driver's Python of ``spark-events run``: runs an application, and attaches to each SparkContext."""

from __future__ import annotations

import builtins
import functools
import os
import shutil
import subprocess
import sys
import threading
import types
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from spark_events.api.event import now_ms
from spark_events.process.held_signals import held_signals
from spark_events.runtime.log_once import logger
from spark_events.sources.attaching.attach import attach
from spark_events.sources.attaching.attachment import Attachment
from spark_events.sources.attaching.driver_log import tell
from spark_events.sources.attaching.starting import Start
from spark_events.sources.attaching.unstarted import report_unstarted
from spark_events.sources.driver.ending.process_exit import PROCESS_EXIT
from spark_events.sources.driver.ending.supervisor_link import keep_to_this_process
from spark_events.spark.own_python import command_of, command_to_import
from spark_events.submit import supervisor
from spark_events.submit.cluster_mode import USERS_PYTHON

_OPEN_WAIT_MS = 10_000


def main() -> None:
    """Run ``spark-events-python app.py [arguments]``."""
    _become_users_python()
    keep_to_this_process()
    if len(sys.argv) < 2:
        sys.exit("usage: spark-events-python app.py [arguments]; see spark-events run --help")
    del sys.argv[0]
    attach_to_each_context()
    run_application(sys.argv[0])


def run_application(path: str) -> None:
    """Run a Python file as ``__main__``, as the interpreter itself would."""
    sys.path[0] = str(Path(path).resolve().parent)
    module = types.ModuleType("__main__")
    module.__file__ = path
    # In a module that is imported, as this one is, it is a dictionary.
    module.__builtins__ = builtins  # type: ignore[attr-defined]
    module.__loader__ = SourceFileLoader("__main__", path)
    sys.modules["__main__"] = module
    try:
        source = Path(path).read_bytes()
    except OSError as error:
        # Python's own words and exit code.
        sys.stderr.write(
            f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}\n"
        )
        sys.exit(2)
    try:
        # Else it would inherit the __future__ statements of this module.
        code = compile(source, path, "exec", dont_inherit=True)
    except Exception as error:  # of its syntax, of null bytes in older versions, of what nests too deeply
        unhandled: BaseException | None = error.with_traceback(None)  # without this frame
    else:
        unhandled = _run(code, module)
    if unhandled is not None:
        _show_as_python(unhandled)
        sys.exit(1)


def _run(code: types.CodeType, module: types.ModuleType) -> BaseException | None:
    """Return what the application raises and does not handle, unless it is how Python ends."""
    try:
        exec(code, module.__dict__)
    except SystemExit as stop:
        PROCESS_EXIT.note_exit_code(stop.code)
        raise
    except KeyboardInterrupt:  # Python ends in its own way
        raise
    except BaseException as error:
        # Without this frame, the traceback looks as it would without us.
        trace = error.__traceback__.tb_next if error.__traceback__ else None
        PROCESS_EXIT.note_unhandled(error, trace)
        return error.with_traceback(trace)
    return None


def _show_as_python(error: BaseException) -> None:
    """Let the application's hook show an error; one that is missing or fails does as in Python itself."""
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    try:
        hook = sys.excepthook
    except AttributeError:
        _say("sys.excepthook is missing\n")
        hook = sys.__excepthook__
    try:
        hook(type(error), error, error.__traceback__)
    except SystemExit:
        raise
    except BaseException as raised:
        trace = raised.__traceback__.tb_next if raised.__traceback__ else None
        _say("Error in sys.excepthook:\n")
        sys.__excepthook__(type(raised), raised.with_traceback(trace), trace)
        _say("\nOriginal exception was:\n")
        sys.__excepthook__(type(error), error, error.__traceback__)


def _say(text: str) -> None:
    """Write to what the application has left as its standard error."""
    with suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(text)


def attach_to_each_context() -> None:
    """Attach to each SparkContext as soon as it is there."""
    from pyspark import SparkContext

    original, make_java = SparkContext.__init__, SparkContext._initialize_context
    starts: dict[int, Start] = {}

    @functools.wraps(original)
    def initialize(self: Any, *args: Any, **kwargs: Any) -> None:
        for broken_off in starts.values():  # by Ctrl-C, which the program has caught
            broken_off.over()
        starts.clear()
        start = starts[id(self)] = Start(now_ms())
        try:
            original(self, *args, **kwargs)
        except (KeyboardInterrupt, SystemExit):
            raise  # with which the process ends, as a rule: by how, its parent knows
        except BaseException as error:  # a timeout of gevent, say
            _report_unstarted(self, error, start.began_ms)
            start.over()
            raise
        start.leave(self, has_started=True)
        _use_our_python_for_local_workers(self)
        try:
            _attach_to(self)
        finally:
            start.over()

    @functools.wraps(make_java)
    def initialize_context(self: Any, *args: Any, **kwargs: Any) -> Any:
        if (start := starts.get(id(self))) is not None:
            start.leave(self, has_started=False)
        return make_java(self, *args, **kwargs)

    SparkContext.__init__, SparkContext._initialize_context = initialize, initialize_context


@held_signals()
def _attach_to(context: Any) -> None:
    try:
        _say_that_it_reports(attach(context))
    except Exception:
        logger.exception("spark-events could not attach; the application continues without it")


@held_signals()
def _report_unstarted(context: Any, error: BaseException, began_ms: int) -> None:
    try:
        report_unstarted(context, error, began_ms)
    except Exception:  # the program's own exception is what counts
        logger.exception("that the application could not start cannot be reported")


def _say_that_it_reports(attachment: Attachment) -> None:
    """Say in one line where an application is reported to, once its reporters are open.

    Who has no reporter has been warned.
    """

    def say() -> None:
        attachment.registry.wait_opened(_OPEN_WAIT_MS)
        if not supervisor.say(attachment.summary):
            tell("%s", attachment.summary)

    if attachment.active:
        threading.Thread(target=say, name="spark-events-say", daemon=True).start()


def _use_our_python_for_local_workers(context: Any) -> None:
    """Make local workers use this Python; otherwise they would run ``python3``, maybe another version."""
    if "PYSPARK_PYTHON" not in os.environ and str(context.master).startswith("local"):
        context.pythonExec = sys.executable


def _become_users_python() -> None:
    """Continue in the interpreter that the user asked for, if it is a different one."""
    name = os.environ.pop(USERS_PYTHON, None)
    if name is None:
        return
    interpreter = shutil.which(name)
    if interpreter is None:
        sys.exit(f"spark-events: the driver's Python {name!r} was not found")
    # Not by samefile: the interpreters of two environments are often links to one file.
    if os.path.abspath(interpreter) == os.path.abspath(sys.executable):
        return
    check = subprocess.run(
        command_to_import("spark_events", interpreter), capture_output=True, text=True, check=False
    )
    if check.returncode == 0:
        os.execv(interpreter, [*command_of("spark_events.submit.driver_python", interpreter), *sys.argv[1:]])
    logger.error(
        "the driver's Python %s has no spark-events, so this application is not reported on: "
        "install it there, as in %s",
        interpreter,
        sys.executable,
    )
    os.execv(interpreter, [interpreter, *sys.argv[1:]])


if __name__ == "__main__":
    main()
