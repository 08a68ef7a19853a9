"""Files of HDFS that are still open for writing, over WebHDFS.

The name node, and so each listing, does not hear how their last block grows until it is full, and most event
logs have only one. The data node that has the block knows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

from spark_events.api.toolkit.formatting import path_without_secrets
from spark_events.runtime.log_once import TroubleLog
from spark_events.spark.file_systems import NotSignedInError

_TIMEOUT_S = (10, 60)
"""To connect to a node, and between two pieces of its answer."""
_BLOCK = 1 << 20


class FileSize(NamedTuple):
    """The size of a file that may be open.

    Attributes:
        listed: by the name node.
        readable: with what can be read of its last block.
        is_open: whether it may grow without a change of the listing.
    """

    listed: int
    readable: int
    is_open: bool


class _KnownLength(NamedTuple):
    """How long a file is for the name node, and whether that is final: it is once the file is closed."""

    bytes: int
    is_final: bool


class RefusedError(OSError):
    """A node refuses a request; without its URL, which may have a token."""


class OpenHdfsFiles:
    """What can be read of such files.

    Args:
        files: fsspec's file system, whose requests have time limits from now on.
    """

    def __init__(self, files: Any) -> None:
        self._files = files
        files.session.request = partial(files.session.request, timeout=_TIMEOUT_S)
        self._trouble = TroubleLog()
        self._last: dict[str, FileSize] = {}

    def size(self, path: str, listed: int, may_grow: bool = True) -> FileSize:
        """Return the size of a file; what it was before if no node says it.

        Args:
            path: of the file.
            listed: its size as listed.
            may_grow: False to ask no node again about a file that HDFS had closed at that size.
        """
        last = self._last.get(path)
        if not may_grow and last == (listed, listed, False):
            return last
        try:
            self._last[path] = self._asked_size(path, listed)
        except (OSError, ValueError) as error:  # the last is of a header
            # One file whose nodes are down must not hide the others of its folder.
            self._trouble.goes_on(
                path,
                "%s: its last block cannot be read now (%s)",
                path_without_secrets(path),
                error if isinstance(error, (RefusedError, NotSignedInError)) else type(error).__name__,
            )
            readable = last.readable if last and last.listed <= listed < last.readable else listed
            return FileSize(listed, readable, is_open=True)
        return self._last[path]

    def _asked_size(self, path: str, listed: int) -> FileSize:
        """Return the size of a file, as its nodes say it."""
        known = self._known_length(path)
        if known is not None and known.is_final:
            # Closed since it was listed, it is listed with its size and time the next time.
            return FileSize(listed, known.bytes, known.bytes != listed)
        start = max(0, listed - 1)
        with self._answer(path, start) as answer:
            readable = max(listed, start + _length(answer))
        # A file that is open has the listed size until the second flush of its last block.
        return FileSize(listed, readable, known is not None or readable > listed or not listed)

    def _known_length(self, path: str) -> _KnownLength | None:
        """Return what the name node knows about a file's length; None if it does not say it, as HttpFS."""
        try:
            with self._ask(path, op="GET_BLOCK_LOCATIONS", offset=0, length=1) as answer:
                blocks = answer.json()["LocatedBlocks"]
            return _KnownLength(int(blocks["fileLength"]), not blocks["isUnderConstruction"])
        except (RefusedError, KeyError, TypeError, ValueError):
            return None

    def keep_only(self, paths: Collection[str]) -> None:
        """Forget the sizes of files that are gone."""
        self._last = {path: size for path, size in self._last.items() if path in paths}

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
        with self._ask(path, op="OPEN", offset=offset) as answer:
            if "Location" not in answer.headers:  # HttpFS answers by itself
                yield answer
                return
        with self._get(self._files._apply_proxy(answer.headers["Location"])) as answer:
            yield answer

    def _ask(self, path: str, **parameters: Any) -> AbstractContextManager[Any]:
        """Give the name node's answer, which may be a redirect."""
        url = self._files._apply_proxy(self._files.url + quote(path, safe="/="))
        return self._get(url, params={**self._files.pars, **parameters}, allow_redirects=False)

    @contextmanager
    def _get(self, url: str, **options: Any) -> Iterator[Any]:
        with self._files.session.get(url, stream=True, **options) as answer:
            if not answer.ok:
                raise RefusedError(f"HTTP status {answer.status_code} ({answer.reason})")
            yield answer


def _length(answer: Any) -> int:
    """Return how many bytes an answer has; HttpFS sends long ones without a length."""
    if "Content-Length" in answer.headers:
        return int(answer.headers["Content-Length"])
    return sum(map(len, answer.iter_content(_BLOCK)))
