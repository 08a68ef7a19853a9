"""Whether somebody types what this Python process runs."""

from __future__ import annotations

import sys


def is_interactive() -> bool:
    """Return whether this process is a Python prompt or a kernel of Jupyter, or its program is in no file."""
    if hasattr(sys, "ps1") or "ipykernel" in sys.modules:
        return True
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return file is None or str(file).startswith("<")  # <stdin>, say
