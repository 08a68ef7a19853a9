"""Files of HDFS that are still open for writing, over WebHDFS.

The name node, and so each listing, does not hear how their last block grows until it is full, and most event
logs have only one. The data node that has the block knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from spark_events.api.toolkit.formatting import path_without_secrets
from spark_events.runtime.log_once import TroubleLog


class OpenHdfsFiles:
    """What can be read of such files.

    Args:
        files: fsspec's file system.
    """

    def __init__(self, files: Any) -> None:
        self._files = files
        self._trouble = TroubleLog()

    def size(self, path: str, listed: int) -> int:
        """Return the size of a file, with what is readable of its last block; as listed if no node says it.

        Args:
            path: of the file.
            listed: its size as listed.
        """
        start = max(0, listed - 1)
        try:
            with self._answer(path, start) as answer:
                return max(listed, start + int(answer.headers.get("Content-Length") or 0))
        except (OSError, RuntimeError, ValueError) as error:  # the last two are of fsspec
            # One file whose nodes are down must not hide the others of its folder.
            self._trouble.goes_on(
                path,
                "%s: its last block cannot be read now (%s)",
                path_without_secrets(path),
                type(error).__name__,
            )
            return listed

    def blocks(self, path: str, position: int, block_bytes: int) -> Iterator[bytes]:
        """Yield a file's bytes, starting at a position."""
        listed = int(self._files.info(path)["size"] or 0)
        # The name node refuses a position behind the size that it knows.
        start = min(position, max(0, listed - 1))
        skipped = position - start
        with self._answer(path, start) as answer:
            for block in answer.iter_content(block_bytes):
                rest = block[skipped:]
                skipped = max(0, skipped - len(block))
                if rest:
                    yield rest

    @contextmanager
    def _answer(self, path: str, offset: int) -> Iterator[Any]:
        """Give the data node's answer, whose body is read only as far as it is wanted."""
        asked = self._files._call("OPEN", path=path, offset=offset, redirect=False)
        if "Location" not in asked.headers:  # HttpFS answers by itself
            yield asked
            return
        location = self._files._apply_proxy(asked.headers["Location"])
        with self._files.session.get(location, stream=True) as answer:
            answer.raise_for_status()
            yield answer
