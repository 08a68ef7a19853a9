"""Files in a store that no spark-events has written, or that were damaged since: each is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_events.api import ConfigError
from spark_events.sql_runner.store.deployed import read_deployed
from spark_events.sql_runner.store.history import read_history
from spark_events.sql_runner.store.store import Store, StoreError


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[1]", b"{}", b'{"at_ms": 1, "new": 2}', b"[[[", b""])
def test_a_history(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "history" / "q").mkdir(parents=True)
    (tmp_path / "history" / "q" / "000000000000001-x.json").write_bytes(content)
    with pytest.raises(StoreError, match=r"history/q/000000000000001-x.json is not what this version"):
        read_history(Store(str(tmp_path)), "q")


@pytest.mark.parametrize("content", [b"\xff\xfe\xff", b"[1]", b"name: q\nmeta: 3\n", b"meta: {a: 1}", b""])
def test_a_manifest(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "q.yaml").write_bytes(content)
    with pytest.raises(ConfigError, match=r"manifests/q.yaml"):
        read_deployed(Store(str(tmp_path)), "q")
