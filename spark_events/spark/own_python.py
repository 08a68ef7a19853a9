"""How to start Python processes of our own: they import nothing from the folder that they are started in."""

from __future__ import annotations

import sys

_WITHOUT_CURRENT_FOLDER = "import sys; sys.path[:1] = filter(None, sys.path[:1]); "
"""Python looks there first, for its own modules, too, and a project may have a ``signal.py``."""


def command_of(module: str, python: str = sys.executable) -> list[str]:
    """Return the command that runs the ``main`` of a module; its arguments may follow.

    Args:
        module: with all packages that it is in.
        python: the interpreter.
    """
    return [python, "-c", f"{_WITHOUT_CURRENT_FOLDER}from {module} import main; main()"]


def command_to_import(package: str, python: str) -> list[str]:
    """Return a command that ends with 0 if an interpreter has a package."""
    return [python, "-c", f"{_WITHOUT_CURRENT_FOLDER}import {package}"]
