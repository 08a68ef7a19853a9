"""Whether somebody types what this Python process runs."""

from __future__ import annotations

import sys


def is_interactive() -> bool:
    """Return whether this process is a Python prompt, a kernel of Jupyter, or has its program from no file."""
    main = sys.modules.get("__main__")
    return hasattr(sys, "ps1") or "ipykernel" in sys.modules or getattr(main, "__file__", None) is None
