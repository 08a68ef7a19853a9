"""Images of containers without a registry: archives that a container runtime imports."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_FOLDERS = ("dev", "etc", "opt", "proc", "root", "run", "sys", "usr", "var")


def write_archive(
    archive: Path,
    name: str,
    entry_point: Sequence[str],
    files: Mapping[str, Path] | None = None,
    environment: Mapping[str, str] | None = None,
    work_dir: str = "/",
) -> None:
    """Write an image of one layer: folders, a few files, and links into /usr, which is this machine's.

    Args:
        archive: the file to write.
        name: of the image.
        entry_point: what its containers run.
        files: by their paths in it.
        environment: its variables.
        work_dir: where it runs.
    """
    layer = _layer(files or {}, work_dir)
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "Entrypoint": list(entry_point),
            "Env": [f"{key}={value}" for key, value in (environment or {}).items()],
            "WorkingDir": work_dir,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_digest(layer)}"]},
    }
    described = json.dumps(config).encode()
    config_name, layer_name = f"{_digest(described)}.json", f"{_digest(layer)}/layer.tar"
    manifest = [{"Config": config_name, "RepoTags": [name], "Layers": [layer_name]}]
    with tarfile.open(archive, "w") as tar:
        for path, data in (
            (config_name, described),
            (layer_name, layer),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            info = tarfile.TarInfo(path)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def _layer(files: Mapping[str, Path], work_dir: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        parents = [str(parent) for parent in Path(work_dir).parents][-2::-1]
        names = (*_FOLDERS, *(parent.lstrip("/") for parent in (*parents, work_dir)), "tmp")
        for name in dict.fromkeys(filter(None, names)):
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(info)
        for name in ("bin", "lib", "lib64", "sbin"):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, f"usr/{name}"
            tar.addfile(info)
        for path, source in files.items():
            tar.add(source.resolve(), path.lstrip("/"))
    return buffer.getvalue()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
