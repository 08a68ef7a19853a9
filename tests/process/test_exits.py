"""``sys.exit``, which is replaced in a driver, as a program sees it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from spark_events.listeners.failures.failures import parse_failure
from spark_events.sources.driver.ending.process_exit import ending_by
from spark_events.sources.driver.source import _STOP

INSTALL = """
import logging, sys, threading
from spark_events.sources.driver.ending.process_exit import PROCESS_EXIT
PROCESS_EXIT.install()
"""
IN_A_THREAD = """
thread = threading.Thread(target=sys.exit, args=(3,))
thread.start()
thread.join()
"""
SHOWN = """
try:
    sys.exit(3)
except SystemExit:
    logging.exception("caught")
"""


IN_ITS_ARGUMENT = """
import atexit, sys
import spark_events

def main():
    from spark_events.sources.driver.ending.process_exit import PROCESS_EXIT
    PROCESS_EXIT.install()
    atexit.register(lambda: print(PROCESS_EXIT.ending.exit_code))
    return 3

{leave}(main())
"""

TRACED = 'Traceback (most recent call last):\n  File "/jobs/app.py", line 3, in <module>\n    main()\n'
"""What ``traceback.format_exc()`` returns, which a program may exit with."""


@pytest.mark.parametrize(
    ("code", "exit_code", "said"),
    [
        (None, 0, None),
        (3, 3, None),
        ("no orders today", 1, "no orders today"),
        ({"orders": 0}, 1, "{'orders': 0}"),
        (2.5, 1, "2.5"),
        (ValueError("no orders: 'x'"), 1, "no orders: 'x'"),
        ([1], 1, "[1]"),
        (f"{TRACED}SystemExit: no orders", 1, "no orders"),
    ],
)
def test_what_a_program_says_that_exits(code: object, exit_code: int, said: str | None) -> None:
    ending = ending_by(SystemExit(code))
    assert (ending.exit_code, ending.assumed) == (exit_code, False)
    failure = parse_failure(ending.exception) if ending.exception else None
    assert (failure and failure.message) == said
    assert failure is None or failure.exception_type == "SystemExit"


@pytest.mark.parametrize("leave", ["sys.exit", "exit", "quit"])
def test_what_its_argument_attaches_knows_it(leave: str) -> None:
    """Python has looked up ``sys.exit`` before it evaluates what that is called with."""
    program = IN_ITS_ARGUMENT.format(leave=leave)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr, done.returncode) == ("3\n", "", 3)


@pytest.mark.parametrize(
    "program",
    [
        "try: sys.exit(0)\nexcept SystemExit as e: sys.exit(e)",
        "try: raise SystemExit(3)\nexcept SystemExit as e: quit(e)",
        "class Left(SystemExit): pass\ntry: sys.exit(Left(3))\nexcept Left as e: print(e.code)",
        "try: sys.exit(3)\nexcept SystemExit as e: print(type(e) is SystemExit, pickle.loads(pickle.dumps((type(e), e))))",
        "former = sys.exit\ndef mine(code=None):\n print('cleaned up')\n former(code)\nsys.exit = mine\n"
        "import spark_events\nsys.exit(3)",
        "sys.exit((3,))",
        "try: sys.exit(1, 2)\nexcept TypeError as e: print(e)",
    ],
    ids=["raised again", "by quit", "of a subclass", "pickled", "replaced before", "a tuple", "wrong"],
)
def test_programs_do_as_ever(program: str) -> None:
    """The exception is Python's own, and what took the place of ``sys.exit`` before is still called."""
    plain, ours = (
        subprocess.run(
            [sys.executable, "-c", f"import pickle, sys\n{before}\n{program}"],
            capture_output=True,
            check=False,
        )
        for before in ("", "import spark_events")
    )

    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout)


def test_what_came_later_is_still_called() -> None:
    """As a mock of a test that lets a program attach."""
    program = (
        "import sys, spark_events\n"
        "from spark_events.sources.driver.ending.process_exit import PROCESS_EXIT\n"
        "former = sys.exit\n"
        "def mine(code=None): print('cleaned up'); former(code)\n"
        "sys.exit = mine; PROCESS_EXIT.install(); sys.exit(3)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (3, "cleaned up\n")


def test_workers_of_pyspark_keep_their_own() -> None:
    program = (
        "import sys, types; leave = sys.exit\n"
        "sys.modules['__main__'].__spec__ = types.SimpleNamespace(name='pyspark.daemon')\n"
        "import spark_events; print(sys.exit is leave)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "True\n"


@pytest.mark.parametrize(
    ("program", "last_line"), [(IN_A_THREAD, ""), (SHOWN, "SystemExit: 3")], ids=["in a thread", "shown"]
)
def test_it_prints_what_it_always_did(program: str, last_line: str) -> None:
    """A thread that exits prints nothing, and a traceback names Python's own exception."""
    done = subprocess.run(
        [sys.executable, "-c", INSTALL + program], capture_output=True, text=True, check=False
    )

    assert (done.stderr.strip().rpartition("\n")[2], done.returncode) == (last_line, 0)


def test_an_exception_whose_own_properties_raise() -> None:
    class OddError(Exception):
        @property
        def __cause__(self) -> BaseException:
            raise RuntimeError("lazy cause")

    ending = ending_by(OddError("of the user"))
    assert ending.exception is not None
    assert ending.exception.endswith("OddError: of the user")


def test_spark_is_stopped_whatever_fails_before() -> None:
    stopped: list[object] = []

    class Context:
        def stop(self) -> None:
            stopped.append(self)

    class Source:
        def about_to_stop(self, context: object) -> None:
            raise RuntimeError("lazy cause")

    source: Any = Source()
    _STOP.begin(Context, source)
    try:
        Context().stop()
    finally:
        _STOP.end(source)
    assert len(stopped) == 1
