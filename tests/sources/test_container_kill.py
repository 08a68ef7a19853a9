"""A driver's Python in a container of YARN that ends, in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, tempfile
from spark_events.sources.driver.ending.container_kill import outliving_sigterm
from spark_events.sources.driver.ending.process_exit import PROCESS_EXIT
if "handles it" in sys.argv:
    signal.signal(signal.SIGTERM, lambda *_: print("handled", flush=True))
PROCESS_EXIT.leave_word_in(tempfile.mkstemp()[0] if "word" in sys.argv else None)
with outliving_sigterm():
    os.kill(os.getpid(), signal.SIGTERM)
    PROCESS_EXIT.leave_word_in(None)
    print("told", flush=True)
os.kill(os.getpid(), signal.SIGTERM)
print("goes on", flush=True)
"""


@pytest.mark.parametrize(
    ("container", "how", "said", "status"),
    [
        ("container_1_0001_01_000001", "", "told\n", -signal.SIGTERM),
        ("container_1_0001_01_000001", "word", "told\n", -signal.SIGTERM),
        ("container_1_0001_01_000001", "handles it", "handled\ntold\nhandled\ngoes on\n", 0),
        ("", "", "", -signal.SIGTERM),
    ],
    ids=["YARN", "after a word was left", "the program handles it", "elsewhere"],
)
def test_sigterm_while_the_end_is_told(container: str, how: str, said: str, status: int) -> None:
    """It passes by, and ends the process afterwards as ever."""
    environment = {**os.environ, "CONTAINER_ID": container}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == (said, status), done.stderr


DUMPS_STACKS = """
import faulthandler, os, signal, sys, tempfile
from spark_events.sources.driver.ending.process_exit import PROCESS_EXIT
faulthandler.register(signal.SIGTERM, file=sys.stdout)
PROCESS_EXIT.leave_word_in(tempfile.mkstemp()[0])
os.kill(os.getpid(), signal.SIGTERM)
PROCESS_EXIT.leave_word_in(None)
os.kill(os.getpid(), signal.SIGTERM)
print("goes on", flush=True)
"""


def test_a_program_that_dumps_its_stacks_at_sigterm() -> None:
    """It goes on, as it would without us, while its application runs and after it."""
    done = subprocess.run([sys.executable, "-c", DUMPS_STACKS], capture_output=True, text=True, check=False)
    assert (done.stdout.count("most recent call first"), done.returncode) == (2, 0), done.stderr
    assert done.stdout.endswith("goes on\n")
