"""Writes down what each stored event log gives: python -m tests.golden [--plain] [FOLDER].

Spark's own sample logs come through Maven (``.ci/get-jars event-logs``); without them, it says that they are left
out, and ends with 1.

With ``--plain``, it writes values in place of their digests, into a folder that must be named: do it before and
after a change, and compare the folders.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.support.sample_logs import JARS, NAMES
from tests.support.stored_logs import recorded_logs, stored_logs
from tests.support.told_by_log import told_by

TOLD = Path(__file__).parent / "told"


def main(out: Path, plain: bool) -> None:
    """Write one file for each log into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        has_samples = any(JARS.glob("*.jar"))
        logs = stored_logs(Path(folder)) if has_samples else recorded_logs(Path(folder))
        for name, log in logs.items():
            lines = told_by(log, plain)
            (out / f"{name}.txt").write_text("\n".join(lines) + "\n")
            sys.stdout.write(f"{name}: {len(lines)}\n")
    if not has_samples:
        sys.exit(
            f"left out: {len(NAMES)} logs of Spark's own, whose files are as they were; .ci/get-jars event-logs "
            "fetches the logs (needs Maven), then run this again"
        )


parser = argparse.ArgumentParser(prog="python -m tests.golden")
parser.add_argument("folder", type=Path, nargs="?", default=TOLD)
parser.add_argument("--plain", action="store_true", help="write values in place of their digests")
arguments = parser.parse_args()
if arguments.plain and arguments.folder == TOLD:
    parser.error("--plain needs a FOLDER: tests/golden/told has digests")
main(arguments.folder, arguments.plain)
