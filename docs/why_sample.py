"""Writes the sample in docs/why.md: ``python -m docs.why_sample`` in a clone; of a log that is made up."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import textwrap
from pathlib import Path

from tests.support.applications import cli
from tests.support.slow_log import skewed_log

PAGE = Path(__file__).with_name("why.md")
_COLUMNS = 76
_MIB = 1 << 20
_LONG_S, _LONG_MIB = 602, 3_174
_RUN_S = [20, 22, 25, 21, 23, 20, 22, 24, 21, 22, 23, 20, 22, 21, 24, 22]
_BLOCK = re.compile(r"(?<=```text\n)nightly .*?(?=```\n)", re.S)


def page() -> str:
    """Return the page, with what the command says of a stage whose sixth task has most of the rows."""
    run_s = [*_RUN_S[:5], _LONG_S, *_RUN_S[6:]]
    read_bytes = [(_LONG_MIB if seconds == _LONG_S else 2 * seconds) * _MIB for seconds in run_s]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "app-20261118120000-0001"
        log.write_bytes(skewed_log("nightly", "count at nightly.py:31", run_s, read_bytes))
        environment = {**os.environ, "COLUMNS": str(_COLUMNS), "NO_COLOR": "1"}
        command = cli("why", str(log))
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    said = "\n".join(textwrap.fill(each.rstrip(), _COLUMNS) for each in done.stdout.splitlines())
    return _BLOCK.sub(lambda _: f"{said}\n", PAGE.read_text(), count=1)


if __name__ == "__main__":
    PAGE.write_text(page())
