"""Files that are written whole, or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from spark_events.api import ConfigError
from spark_events.api.toolkit.local_disk import decoded, write_whole


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that a web server shows, say; nothing half-written stays, and the error is a sentence."""
    page = tmp_path / "page.html"
    write_whole(page, b"before")
    original = Path.write_bytes

    def full(path: Path, content: bytes) -> Any:
        original(path, content[:3])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ConfigError, match=r"page\.html: cannot be written: No space left on device"):
        write_whole(page, b"after")
    assert page.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["page.html"]


def test_links_modes_and_devices_stay(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640
    write_whole(Path("/dev/null"), b"gone")
    assert not Path("/dev/null").is_file()
    with pytest.raises(ConfigError, match="cannot be written: No such file"):
        write_whole(tmp_path / "nowhere" / "page", b"")


def test_a_url_with_blanks_is_read_as_reporters_read_it(tmp_path: Path) -> None:
    """A file that really has such a name keeps it."""
    (tmp_path / "my dir").mkdir()
    assert decoded(f"file://{tmp_path}/my%20dir") == f"{tmp_path}/my dir"
    (tmp_path / "my%20dir").mkdir()
    for given in (f"file://{tmp_path}/my%20dir", f"{tmp_path}/my%20dir", "s3://b/my%20dir", "file:///logs"):
        assert decoded(given) == given
