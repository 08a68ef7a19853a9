"""What ended a program, as it is known when it is over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = """
import atexit, code, sys
from spark_events.sources.driver.ending.process_exit import PROCESS_EXIT

def tell():
    PROCESS_EXIT.note_unseen()
    print("known:", (PROCESS_EXIT.raised or "nothing").splitlines()[-1], PROCESS_EXIT.code)

atexit.register(tell)
PROCESS_EXIT.install()
"""
OWN_HOOK = """
sys.excepthook = lambda kind, error, trace: None
def fail(): raise ValueError("unhandled")
fail()
"""
BROKEN_HOOK = OWN_HOOK.replace("lambda kind, error, trace: None", "None")
PROMPT = """
typed = ["exec('1/0')", "1/0"]

def read(prompt):
    if not typed:
        raise EOFError
    return typed.pop()

sys.excepthook = lambda kind, error, trace: None
code.interact(readfunc=read)
"""
THREAD = """
import threading
sys.excepthook = threading.excepthook = lambda *_: None
thread = threading.Thread(target=int, args=("one",))
thread.start()
thread.join()
"""
RETRIED = """
def f():
    for _ in range(2):
        try: sys.exit(4)
        except SystemExit as error: last = error
    raise last
f()
"""
OF_A_THREAD = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(1) as pool:
    future = pool.submit(sys.exit, 4)
{}
"""
HELD = """
def f():
    try: sys.exit(4)
    except SystemExit as error:
        kept = error
        raise

try: f()
except SystemExit: {}
"""


@pytest.mark.parametrize(
    ("program", "known"),
    [
        (OWN_HOOK, "ValueError: unhandled 1"),
        (BROKEN_HOOK, "ValueError: unhandled 1"),
        ("sys.excepthook = lambda *_: None\nraise KeyboardInterrupt", "KeyboardInterrupt 130"),
        ("sys.excepthook = lambda *_: None\nsys.exit(3)", "nothing 3"),
        ("import asyncio\nasync def main(): sys.exit(4)\nasyncio.run(main())", "nothing 4"),
        ("held = []\ntry: sys.exit(4)\nexcept SystemExit as e:\n held.append(e)\n raise", "nothing 4"),
        ("held = []\ntry: sys.exit(4)\nexcept SystemExit as e: held.append(e)", "nothing None"),
        (
            "held = []\ntry: sys.exit(4)\nexcept SystemExit as e: held.append(e)\nraise SystemExit(0)",
            "nothing None",
        ),
        (
            "held = []\ntry: sys.exit(4)\nexcept SystemExit as e: held.append(e)\nint('x')",
            "ValueError: invalid literal for int() with base 10: 'x' 1",
        ),
        (
            "held = []\ntry:\n try: sys.exit(4)\n finally: held.append(sys.exc_info()[1])\nfinally: pass",
            "nothing 4",
        ),
        (HELD.format("raise"), "nothing 4"),
        (HELD.format("pass"), "nothing None"),
        (
            "held = []\ndef f():\n try: sys.exit(4)\n finally: held.append(sys.exc_info()[1])\nf()",
            "nothing 4",
        ),
        ("try: sys.exit(3)\nexcept SystemExit: sys.exit(0)", "nothing 0"),
        ("try: sys.exit(3)\nexcept SystemExit: sys.exit(4)", "nothing 4"),
        ("try: sys.exit(3)\nfinally: sys.exit(4)", "nothing 4"),
        (RETRIED, "nothing 4"),
        (
            "def f():\n try: sys.exit(4)\n except SystemExit as e: return e\nkept = f()\nraise kept",
            "nothing 4",
        ),
        (OF_A_THREAD.format("future.result()"), "nothing 4"),
        (OF_A_THREAD.format("future.exception()"), "nothing None"),
        ("atexit.register(lambda: sys.exit(4))", "nothing None"),
        (PROMPT, "nothing None"),
        (THREAD, "nothing None"),
        ("", "nothing None"),
    ],
    ids=[
        "own hook",
        "broken hook",
        "interrupted",
        "exit",
        "a coroutine",
        "held",
        "held and caught",
        "held and caught before another exit",
        "held and caught before an error",
        "held in finally",
        "a cycle",
        "a cycle that is caught",
        "held of a function",
        "answered by a good one",
        "answered by another",
        "answered in finally",
        "the last of a loop",
        "returned and raised",
        "raised by a future",
        "of a future",
        "of atexit",
        "prompt",
        "thread",
        "well",
    ],
)
def test_what_ended_it(program: str, known: str) -> None:
    """A program may have a hook of its own, as many have that log what nobody handles."""
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + program], capture_output=True, text=True, check=False, timeout=280
    )
    assert done.stdout == f"known: {known}\n", done.stderr


@pytest.mark.parametrize(
    ("typed", "known"),
    [("", "None"), ("1/0\n2/0\n", "None"), ("sys.exit(4)\n", "4"), ("1/0\nsys.exit(4)\n", "4")],
)
def test_a_prompt_after_an_exit(tmp_path: Path, typed: str, known: str) -> None:
    """With ``python -i``, Python shows the exit of the program, and goes on; one at the prompt ends the process."""
    program = tmp_path / "program.py"
    program.write_text(BEGIN + "sys.exit(3)\n")
    command = [sys.executable, "-i", str(program)]
    done = subprocess.run(command, input=typed, capture_output=True, text=True, check=False, timeout=280)
    assert done.stdout == f"known: nothing {known}\n", done.stderr
    assert done.returncode == int(known.replace("None", "0"))


@pytest.mark.parametrize(
    "code", ["-1", "0", "3", "255", "256", "257", "-256", "2**40 + 7", "2**80", "True", "None", "'no orders'"]
)
def test_the_exit_code_is_that_of_the_process(code: str) -> None:
    """The system keeps eight bits of what ``sys.exit`` is called with."""
    program = "import sys\nfrom spark_events.sources.driver.ending.process_exit import exit_code_of"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nprint(exit_code_of({code}))\nsys.exit({code})"],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert int(done.stdout) == done.returncode
