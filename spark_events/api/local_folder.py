"""Folders on the driver's machine, as several plugins need them."""

from __future__ import annotations

import os
from pathlib import Path


def probe_folder(folder: Path) -> str:
    """Tell whether a folder can be written, or made; nothing is made.

    Returns:
        A few words that say so.

    Raises:
        PermissionError: it cannot.
    """
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise PermissionError(f"{existing} is no folder that can be written")
    return f"{folder} can be written"
