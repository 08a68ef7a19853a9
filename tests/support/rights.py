"""Folders that a user may not read, also where tests run as root."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NOBODY = 65_534


@contextmanager
def folder_of_all() -> Iterator[Path]:
    """Yield a folder that each user may enter, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(dir=tempfile.gettempdir()))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        for path in folder.rglob("*"):
            if path.is_dir():
                path.chmod(0o700)
        shutil.rmtree(folder)


@contextmanager
def without_rights(denied: Path) -> Iterator[None]:
    """Let nobody read a folder, and be a user for whom that holds."""
    denied.chmod(0o000)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        denied.chmod(0o700)
