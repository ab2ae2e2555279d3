"""Keeps a run from filling the disk, or the share of it that an index may take. Measures; writes nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from engine.encoders.encoder import EncodedDocument
from engine.errors import BudgetExceeded
from engine.text.document import Document
from engine.words.counts import WordTables
from indexer.generation.footprint import folder_bytes

_SPARE_BYTES = 1 << 24  # left free, so that the catalog can be closed and sealed whatever happens


class DiskGuard:
    """The number of bytes by which an index folder can still grow."""

    def __init__(self, folder: Path, limit_bytes: int | None = None) -> None:
        """Guard a folder, which need not exist yet.

        Args:
            folder: of the index.
            limit_bytes: limit on its size; by default the free space of the disk.
        """
        self.folder = folder
        self.limit_bytes = limit_bytes

    def left_bytes(self) -> int:
        """Bytes that can still be written."""
        there = self.folder.resolve()
        while not there.exists():
            there = there.parent
        free = shutil.disk_usage(there).free - _SPARE_BYTES
        if self.limit_bytes is None:
            return free
        return min(free, self.limit_bytes - folder_bytes(self.folder))

    def refuse(self, needed_bytes: int) -> None:
        """Refuse a run whose files would not fit, before it starts.

        Raises:
            BudgetExceeded: the files would not fit.
        """
        left = self.left_bytes()
        if needed_bytes > left:
            raise BudgetExceeded(
                f"{self.folder} would grow by {_mb(needed_bytes)}, {self._bound()} leaves {_mb(left)}; "
                f"make room for {_mb(needed_bytes - left)} more, or index fewer documents"
            )

    @contextmanager
    def room_for(self, needed_bytes: int, what: str) -> Iterator[None]:
        """A context to write in, if there is room for `needed_bytes`.

        Raises:
            BudgetExceeded: there is no room, or there was none when writing failed.
                Committed data stays.
        """
        self._check(needed_bytes, what)
        try:
            yield
        except Exception as error:
            # SQLite, FAISS and safetensors each raise a different error for a full disk.
            if self.left_bytes() + _SPARE_BYTES < needed_bytes:
                raise self._full(needed_bytes, what) from error
            raise

    def _check(self, needed_bytes: int, what: str) -> None:
        if needed_bytes > self.left_bytes():
            raise self._full(needed_bytes, what)

    def _full(self, needed_bytes: int, what: str) -> BudgetExceeded:
        return BudgetExceeded(
            f"{what} needs {_mb(needed_bytes)}, {self._bound()} leaves {_mb(self.left_bytes())}; what was committed "
            "is safe: make room and run the same command again to go on"
        )

    def _bound(self) -> str:
        if self.limit_bytes is not None:
            return f"--disk {_mb(self.limit_bytes)}"
        return "the disk"


def commit_bytes(documents: Sequence[Document], encoded: Sequence[EncodedDocument], words: WordTables) -> int:
    """The most bytes that a commit can write: rows in float16, term counts, and texts without compression."""
    texts = sum(len(document.text.encode()) for document in documents)
    rows = sum(2 * len(one.document) * (1 + len(one.sections) + len(one.chunks)) for one in encoded)
    spans = sum(16 * len(one.chunks) for one in encoded)
    terms = 6 * (len(words.words.terms) + len(words.pairs.terms)) + 16 * words.n_documents
    return texts + rows + spans + terms


def _mb(size: int) -> str:
    return f"{max(0, size) / 1e6:,.1f} MB"
