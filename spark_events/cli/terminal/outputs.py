"""Files that commands write when asked to: ``-`` is standard output, in place of the tables."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from spark_events.api.errors import UsageError
from spark_events.api.toolkit.local_disk import write_whole
from spark_events.cli.terminal.console import err, plain, say

STDOUT = Path("-")


def check_files(files: Mapping[str, Path | None]) -> None:
    """Check that files can be written, before anything is read for hours.

    Args:
        files: by the option that names each.

    Raises:
        UsageError: one cannot be written, or more than one is standard output.
    """
    for option, file in files.items():
        if file not in (None, STDOUT) and (file.is_dir() or not os.access(file.absolute().parent, os.W_OK)):
            raise UsageError(f"{option} {file}: cannot be written; give a file in a folder that exists, or -")
    if sum(file == STDOUT for file in files.values()) > 1:
        raise UsageError(f"{' and '.join(files)}: only one of them can be -, standard output")


def write_file(file: Path, contents: bytes) -> None:
    """Write a file whole, or to standard output."""
    if file == STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(contents.rstrip(b"\n") + b"\n")
        sys.stdout.buffer.flush()
        return
    write_whole(file, contents)
    say(f"written to {plain(str(file))}", err)
