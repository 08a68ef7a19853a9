"""An archive of a virtual environment, with which a driver in a cluster has all packages of this one.

Python finds the packages of an environment beside its ``pyvenv.cfg``, wherever the folder is; so it is packed
as it is, but for the first lines of its scripts, which name the folder.
"""

from __future__ import annotations

import glob
import io
import json
import os
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spark_events.api import ConfigError

_LEFT_OUT = ("pyspark",)
"""Packages that the cluster brings itself; PySpark alone has 450 MB."""
_BESIDE = b"#!/bin/sh\n'''exec' \"$(dirname \"$0\")/python\" \"$0\" \"$@\"\n' '''\n"
"""The first lines of a script that runs with the Python in its own folder, whatever that is."""


@dataclass(frozen=True, slots=True)
class Packed:
    """What has been packed.

    Attributes:
        bytes: the size of the archive.
        packages: how many it has.
        python: the interpreter that the nodes need, as it is not in the archive.
    """

    bytes: int
    packages: int
    python: str


def pack(archive: Path, python: str | None = None, with_pyspark: bool = False) -> Packed:
    """Pack the environment of this Python.

    Args:
        archive: the file to write, which is replaced.
        python: where the nodes have this version of Python; None for the same place as here.
        with_pyspark: whether PySpark is packed, too.

    Raises:
        ConfigError: this Python is in no virtual environment, or some of its packages are outside of it.
        OSError: the archive cannot be written, or a file of the environment cannot be read, which it names.
    """
    environment = Path(sys.prefix)
    left_out = () if with_pyspark else _LEFT_OUT
    _refuse_what_cannot_be_moved(environment, left_out)
    base = python or _base_python(environment)
    written = archive.with_name(f"{archive.name}.{os.getpid()}.part")  # others may pack as well
    packages = 0
    try:
        with tarfile.open(written, "w:gz", compresslevel=6) as tar:
            for path in _paths(environment, left_out):
                # Neither itself nor the one that it replaces, nor what another process writes in its place.
                is_archive = path.name == archive.name or path.match(f"{glob.escape(archive.name)}.*.part")
                if not is_archive or not path.parent.samefile(archive.parent):
                    _add(tar, path, environment, base)
                    packages += path.suffix == ".dist-info" and path.parent.name == "site-packages"
        os.replace(written, archive)
    finally:
        written.unlink(missing_ok=True)
    return Packed(archive.stat().st_size, packages, base)


def _refuse_what_cannot_be_moved(environment: Path, left_out: tuple[str, ...]) -> None:
    if sys.prefix == sys.base_prefix:
        conda = (
            " (of Conda's environments, conda-pack makes archives)"
            if (environment / "conda-meta").is_dir()
            else ""
        )
        raise ConfigError(
            f"{sys.executable} is not in a virtual environment that could be packed{conda}: "
            "python3 -m venv environment && environment/bin/pip install 'spark-events[otlp,prometheus]' "
            "your-packages, then environment/bin/spark-events pack"
        )
    settings = (environment / "pyvenv.cfg").read_text().lower().replace(" ", "")
    problems = []
    if "include-system-site-packages=true" in settings:
        problems.append(
            f"{environment} also uses the packages of the Python that it was made with, which would be "
            "missing in the archive: make it without --system-site-packages"
        )
    if outside := sorted({*_outside(environment), *_links_to_outside(environment, left_out)}):
        problems.append(
            f"the code of {', '.join(outside)} is outside of {environment} and would be missing in the "
            "archive: install it without -e (--editable) and, with uv, without --link-mode=symlink"
        )
    if problems:
        raise ConfigError.of_all(problems)


def _base_python(environment: Path) -> str:
    """Return the interpreter that an environment was made with."""
    settings = (line.partition("=") for line in (environment / "pyvenv.cfg").read_text().splitlines())
    home = next(value.strip() for key, _, value in settings if key.strip() == "home")
    return f"{home}/python{sys.version_info.major}.{sys.version_info.minor}"


def _outside(environment: Path) -> Iterator[str]:
    """Yield what is installed so that its code stays where it was."""
    for path in environment.glob("lib/python*/site-packages/*.dist-info/direct_url.json"):
        if json.loads(path.read_text()).get("dir_info", {}).get("editable"):
            yield _package(path.parent.name)
    for path in environment.glob("lib/python*/site-packages/*.pth"):
        for line in path.read_text().splitlines():
            if line.startswith("/") and not Path(line).is_relative_to(environment):
                yield line


def _package(name: str) -> str:
    """Return the package that a folder in site-packages belongs to."""
    return name.partition("-")[0].replace("_", "-")


def _links_to_outside(environment: Path, left_out: tuple[str, ...]) -> Iterator[str]:
    """Yield the packages that are links to files elsewhere, as uv makes them if it is told to."""
    root = os.path.realpath(environment)
    for path in _paths(environment, left_out):
        within = path.relative_to(environment).as_posix().partition("/site-packages/")[2]
        if within and path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
            yield _package(within.split("/")[0])


def _paths(environment: Path, left_out: tuple[str, ...]) -> Iterator[Path]:
    """Yield all files, links and folders, but for those of the packages that are left out."""
    for folder, folders, files in os.walk(environment):
        if Path(folder).name == "site-packages":
            folders[:] = [name for name in folders if name.partition("-")[0] not in left_out]
        folders.sort()
        yield from (Path(folder, name) for name in sorted((*folders, *files)))


def _add(tar: tarfile.TarFile, path: Path, environment: Path, base: str) -> None:
    entry = tar.gettarinfo(path, str(path.relative_to(environment)))
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    text = None
    if entry.issym():
        if entry.linkname.startswith("/") and path.name.startswith("python"):
            entry.linkname = base
    elif path.name == "pyvenv.cfg":
        text = _with_home(path.read_text(), base).encode()
    elif path.parent == environment / "bin" and entry.isreg():
        text = _runs_beside(path.read_bytes(), environment)
    if text is not None:
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
    elif entry.isreg():
        with path.open("rb") as file:
            tar.addfile(entry, file)
    else:
        tar.addfile(entry)


def _with_home(settings: str, base: str) -> str:
    lines = [
        f"home = {Path(base).parent}" if line.split("=")[0].strip() == "home" else line
        for line in settings.splitlines()
    ]
    return "\n".join(lines) + "\n"


def _runs_beside(script: bytes, environment: Path) -> bytes | None:
    """Return a script that runs with the Python beside it; None for other files."""
    first, end, rest = script.partition(b"\n")
    return _BESIDE + rest if end and first.startswith(b"#!" + bytes(environment / "bin")) else None
