"""Memory of this process without memory-mapped index files, and the disk that a run may fill. Measures only.

The kind of a file system is known on Linux only.
"""

from __future__ import annotations

import re
import resource
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from engine.encoders.encoder import EncodedDocument
from engine.errors import BudgetExceeded
from engine.text.document import Document
from engine.words.counts import WordTables

_STATUS = Path("/proc/self/status")
_SECONDS_BETWEEN_LOOKS = 0.05


class Footprint:
    """The memory of this process.

    Own memory is what it allocated, and the program itself as far as it was loaded when this object was made. Files
    mapped later, the shards of an index, are not in it: the system takes their pages back when memory is short.
    """

    def __init__(self) -> None:
        """Count the files that are mapped now as the program."""
        self._program = _resident()[1]

    def own_bytes(self) -> int:
        """Own memory now."""
        return _resident()[0] + self._program


class Watch:
    """Records the peak of own memory between entering and leaving."""

    def __init__(self, footprint: Footprint) -> None:
        """Watch a footprint; a context manager."""
        self._footprint = footprint
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._look, name="longmatch-memory", daemon=True)
        self.peak_bytes = footprint.own_bytes()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self._thread.join()
        self._note()

    def _look(self) -> None:
        while not self._left.wait(_SECONDS_BETWEEN_LOOKS):
            self._note()

    def _note(self) -> None:
        self.peak_bytes = max(self.peak_bytes, self._footprint.own_bytes())


def _resident() -> tuple[int, int]:
    """Bytes allocated, and bytes of mapped files; without Linux's /proc the peak of resident memory, and 0."""
    if not _STATUS.exists():
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit, 0
    status = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
    allocated, shared, mapped = (int(status[name].split()[0]) * 1024 for name in ("RssAnon", "RssShmem", "RssFile"))
    return allocated + shared, mapped


def folder_bytes(folder: Path) -> int:
    """Size of all files below a folder; 0 where there is none."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


_SPARE_BYTES = 1 << 24  # left free, so that the catalog can be closed whatever happens


class DiskGuard:
    """The number of bytes by which an index folder can still grow."""

    def __init__(self, folder: Path, limit_bytes: int | None = None) -> None:
        """Guard a folder, which need not exist yet; its limit is the free space of the disk by default."""
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
        """Raise `BudgetExceeded` for a run whose files would not fit, before it starts."""
        left = self.left_bytes()
        if needed_bytes > left:
            raise BudgetExceeded(
                f"{self.folder} would grow by {_mb(needed_bytes)}, {self._bound()} leaves {_mb(left)}; "
                f"make room for {_mb(needed_bytes - left)} more, or index fewer documents"
            )

    @contextmanager
    def room_for(self, needed_bytes: int, what: str) -> Iterator[None]:
        """A context to write in.

        Raises:
            BudgetExceeded: there is no room, or there was none when writing failed. Committed data stays.
        """
        if needed_bytes > self.left_bytes():
            raise self._full(needed_bytes, what)
        try:
            yield
        except Exception as error:
            # SQLite, FAISS and safetensors each raise a different error for a full disk.
            if self.left_bytes() + _SPARE_BYTES < needed_bytes:
                raise self._full(needed_bytes, what) from error
            raise

    def _full(self, needed_bytes: int, what: str) -> BudgetExceeded:
        return BudgetExceeded(
            f"{what} needs {_mb(needed_bytes)}, {self._bound()} leaves {_mb(self.left_bytes())}; what was committed "
            "is safe: make room and run the same command again to go on"
        )

    def _bound(self) -> str:
        return "the disk" if self.limit_bytes is None else f"--disk {_mb(self.limit_bytes)}"


def commit_bytes(documents: Sequence[Document], encoded: Sequence[EncodedDocument], words: WordTables) -> int:
    """The most bytes that a commit can write: rows in float16, term counts, and texts without compression."""
    texts = sum(len(document.text.encode()) for document in documents)
    rows = sum(2 * len(one.document) * (1 + len(one.sections) + len(one.chunks)) for one in encoded)
    spans = sum(16 * len(one.chunks) for one in encoded)
    terms = 6 * (len(words.words.terms) + len(words.pairs.terms)) + 16 * words.n_documents
    return texts + rows + spans + terms


MOUNTS = Path("/proc/self/mounts")
_NETWORK = frozenset(
    "nfs nfs4 cifs smb3 smbfs 9p afs ceph glusterfs lustre gpfs beegfs davfs fuse.sshfs fuse.glusterfs fuse.ceph "
    "fuse.s3fs fuse.gcsfuse fuse.rclone fuse.davfs2".split()
)
_OCTAL = re.compile(r"\\([0-7]{3})")  # the escape of a space or another character in a path


def network_note(path: Path) -> str:
    """A line about an index on a network file system; "" for one on a disk of this machine."""
    if not MOUNTS.exists():
        return ""
    place, mount = path.resolve(), (Path("/"), "")
    for line in MOUNTS.read_text("utf-8", errors="surrogateescape").splitlines():
        _, point, kind, *_ = line.split(" ")
        at = Path(_OCTAL.sub(lambda code: chr(int(code[1], 8)), point))
        # Of two mounts at one point, the later one hides the other.
        if place.is_relative_to(at) and len(at.parts) >= len(mount[0].parts):
            mount = at, kind
    if mount[1] not in _NETWORK:
        return ""
    return (
        f"{path} lies on a network file system ({mount[1]} at {mount[0]}): SQLite's log works on one machine "
        "alone, so let only this machine open the index until the run has ended"
    )


def _mb(size: int) -> str:
    return f"{max(0, size) / 1e6:,.1f} MB"
