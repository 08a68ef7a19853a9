"""Whether somebody types what this Python process runs."""

from __future__ import annotations

import sys


def is_interactive() -> bool:
    """Return whether this process is a Python prompt or a kernel of Jupyter, or its program is in no file."""
    if hasattr(sys, "ps1") or "ipykernel" in sys.modules:
        return True
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return file is None or str(file).startswith("<")  # <stdin>, say


def is_kernel() -> bool:
    """Return whether this process is a kernel of Jupyter."""
    return _kernel() is not None


def kernel_is_shutting_down() -> bool:
    """Return whether this process is a kernel of Jupyter that is asked to end: it then ends its JVM first."""
    return getattr(_kernel(), "_shutdown_message", None) is not None


def _kernel() -> object | None:
    application = getattr(sys.modules.get("ipykernel.kernelapp"), "IPKernelApp", None)
    if application is None or not application.initialized():
        return None
    return getattr(application.instance(), "kernel", None)
