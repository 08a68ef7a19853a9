"""A driver that was forked, as a daemon is, from a process that had imported spark-events."""

from __future__ import annotations

import subprocess
import sys

import pytest

DAEMON = """
import os, sys
from spark_events.runtime.registry import Registry
from spark_events.sources.attaching import attachment

class Source:
    running = True
    def __init__(self, name): self.name = name
    def stop(self, *, at_exit, raised=None): print(self.name, "is closed at exit:", at_exit, flush=True)

def begin(name):
    attachment._attachments[name] = attachment.Attachment(Registry(()), Source(name))

if "both" in sys.argv:
    begin("the parent's")
if child := os.fork():
    os.waitpid(child, 0)
else:
    begin("the child's")
"""


@pytest.mark.parametrize(
    ("who", "closed"), [("child", ["the child's"]), ("both", ["the child's", "the parent's"])]
)
def test_each_process_closes_its_own(who: str, closed: list[str]) -> None:
    """Otherwise the end of the child would be one without a word, which is a failure."""
    done = subprocess.run(
        [sys.executable, "-c", DAEMON, who], capture_output=True, text=True, check=True, timeout=280
    )
    assert done.stdout.splitlines() == [f"{name} is closed at exit: True" for name in closed]


WORD = """
import os, tempfile
from spark_events.sources.driver.ending.process_exit import PROCESS_EXIT
PROCESS_EXIT.install()
inherited, own = (tempfile.TemporaryFile() for _ in range(2))
PROCESS_EXIT.leave_word_in(os.dup(inherited.fileno()))
if child := os.fork():
    os.waitpid(child, 0)
    print(os.pread(inherited.fileno(), 100, 0), os.pread(own.fileno(), 100, 0))
else:
    if os.fork() == 0:
        os._exit(3)
    os.wait()
    PROCESS_EXIT.leave_word_in(os.dup(own.fileno()))
    os._exit(4)
"""


def test_each_process_leaves_its_own_word() -> None:
    """A child that is no driver leaves none; one that is a driver leaves its exit code."""
    done = subprocess.run(
        [sys.executable, "-c", WORD], capture_output=True, text=True, check=True, timeout=280
    )
    assert done.stdout == "b'' b'exit 4'\n"
