"""Which files of a folder are meant: neither hidden ones, such as those of editors, nor the template."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from spark_events.api.toolkit.local_disk import all_below


def visible_files(folder: Path, suffixes: Collection[str], template: Path | None) -> list[Path]:
    """Return what lies in a folder and its subfolders, in order; a link may lead to nothing.

    Args:
        folder: it.
        suffixes: those of the files that are meant, such as ``.yaml``; ``.YAML`` is the same.
        template: a file that is left out; None for none.

    Raises:
        OSError: a folder cannot be read.
    """
    return [
        path
        for path in sorted(all_below(folder))
        if path.suffix.lower() in suffixes
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and not (template and _is_same_file(path, template))
    ]


def _is_same_file(path: Path, other: Path) -> bool:
    """Return whether two paths lead to the same file; a path that leads to none is told when it is read."""
    try:
        return path.samefile(other)
    except OSError:
        return False
