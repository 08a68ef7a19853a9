"""The driver's Python of ``spark-events run``: an application runs in it as in Python itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_events.sources.driver.ending.supervisor_link import SOCKET

pytest.importorskip("pyspark")
_APPLICATION = '''"""An application."""
from typing import get_type_hints

def outer():
    class Local:
        pass

    def function(given: Local, number: int = 3) -> Local:
        return given

    return function

total: int = 3
print(outer().__annotations__["number"], get_type_hints(outer())["number"], __annotations__, __doc__, __name__)
'''


def output(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True, timeout=280
    ).stdout


def alone_and_under_run(app: Path) -> Iterator[subprocess.CompletedProcess[str]]:
    """Yield what becomes of an application in Python itself, and in the driver's Python."""
    for words in ((), ("-m", "spark_events.submit.driver_python")):
        yield subprocess.run(
            [sys.executable, *words, str(app)], capture_output=True, text=True, check=False, timeout=280
        )


def test_annotations_of_the_application_are_what_python_makes_of_them(tmp_path: Path) -> None:
    application = tmp_path / "app.py"
    application.write_text(_APPLICATION)

    run = output("-m", "spark_events.submit.driver_python", str(application))

    assert run == output(str(application))
    assert "<class 'int'>" in run


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (b"def f(:", "SyntaxError"),
        (b"x = '\xff\xfe'", "SyntaxError"),
        (b"x = " + b"-" * 100_000 + b"1", "Error"),
    ],
    ids=["its syntax", "its encoding", "what nests too deeply"],
)
def test_what_python_cannot_read_is_told_as_python_tells_it(
    tmp_path: Path, source: bytes, error: str
) -> None:
    app = tmp_path / "app.py"
    app.write_bytes(source)
    command = [sys.executable, "-m", "spark_events.submit.driver_python", str(app)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 1
    assert error in done.stderr
    assert "driver_python.py" not in done.stderr


def test_an_exception_that_cannot_be_formatted(tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text(
        "class E(Exception):\n    @property\n    def __cause__(self):\n        1 / 0\n\n\nraise E('no')\n"
    )
    alone, run = alone_and_under_run(app)
    assert (run.returncode, run.stderr) == (alone.returncode, alone.stderr)


@pytest.mark.parametrize("error", ["ValueError", "BaseException", "GeneratorExit", "KeyboardInterrupt"])
def test_an_exception_that_nobody_handles_looks_as_in_python(tmp_path: Path, error: str) -> None:
    app = tmp_path / "app.py"
    app.write_text(f"def work():\n    raise {error}('no')\n\n\nwork()\n")
    alone, run = alone_and_under_run(app)
    assert run.returncode == alone.returncode
    if error != "KeyboardInterrupt":  # with which Python itself shows what is around the program
        assert run.stderr == alone.stderr


@pytest.mark.parametrize(
    "hook",
    [
        "sys.excepthook = None",
        "del sys.excepthook",
        "sys.excepthook = lambda *_: 1 / 0",
        "sys.excepthook = lambda *_: sys.exit(4)",
        "sys.excepthook = lambda kind, error, trace: print(error, trace.tb_lineno)",
        "sys.stderr = None",
        "import atexit; atexit.register(lambda: print(sys.last_type, sys.last_value, sys.last_traceback.tb_lineno))",
        "sys.excepthook = lambda *_: print(sys.last_value, getattr(sys, 'last_exc', None))",
    ],
)
def test_a_hook_for_what_nobody_handles_is_called_as_in_python(tmp_path: Path, hook: str) -> None:
    app = tmp_path / "app.py"
    app.write_text(f"import sys\n\n{hook}\nraise ValueError('no')\n")
    alone, run = alone_and_under_run(app)
    assert (run.returncode, run.stdout, run.stderr) == (alone.returncode, alone.stdout, alone.stderr)


def test_builtins_and_the_loader_are_those_of_a_main_module(tmp_path: Path) -> None:
    """Applications patch builtins in the first, and tools read sources by the second."""
    application = tmp_path / "app.py"
    application.write_text("__builtins__.print(__loader__.get_source('__main__'), __loader__.path)\n")

    run = subprocess.run(
        [Path(sys.executable).with_name("spark-events-python"), application],
        capture_output=True,
        text=True,
        check=True,
        timeout=280,
    ).stdout

    assert run == output(str(application))


def test_what_an_application_starts_has_another_supervisor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an application within another, ``spark-events run`` would tell the end of the outer one."""
    monkeypatch.setenv(SOCKET, "the path")
    application = tmp_path / "app.py"
    application.write_text(
        "import os\n"
        "from spark_events.sources.driver.ending.supervisor_link import path_of_socket\n"
        f"print(path_of_socket(), os.environ.get({SOCKET!r}))\n"
    )
    assert output("-m", "spark_events.submit.driver_python", str(application)) == "the path None\n"
