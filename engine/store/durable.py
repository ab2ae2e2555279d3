"""Files and folders that appear complete or not at all (write, fsync, rename), and checksums of files.

What a killed run left is removed by the next one.
"""

import errno
import mmap
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import xxhash

from engine.errors import IndexBusy, IndexMismatch, damaged_file, faults_named

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Checksum:
    """The size and xxh3-128 digest that a file must have."""

    size_bytes: int
    digest: str  # 32 hexadecimal digits


def checksum(path: Path) -> Checksum:
    """Read a file once and compute its checksum.

    Raises:
        OSError: it cannot be read.
    """
    digest = xxhash.xxh3_128()
    size = 0
    block = memoryview(bytearray(_BLOCK))
    # Read into one block that stays in the processor's cache.
    with path.open("rb", buffering=0) as stream:
        while n_read := stream.readinto(block):
            digest.update(block[:n_read])
            size += n_read
    return Checksum(size, digest.hexdigest())


def is_loss(error: OSError) -> bool:
    """Whether a file is missing or its disk is damaged; any other error can be temporary, and the file intact."""
    return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EIO)


def check_mapped(content: mmap.mmap | None, path: Path, expected: Checksum) -> mmap.mmap:
    """Compare a mapped file with its checksum, before anything parses it; None stands for a missing file.

    Raises:
        IndexDamaged: missing, or another size or digest than expected.
    """
    there = check_size(content, path, expected)
    _compare(path, Checksum(len(there), xxhash.xxh3_128_hexdigest(there)), expected)
    return there


def check_size(content: mmap.mmap | None, path: Path, expected: Checksum) -> mmap.mmap:
    """Return a mapped file that exists and has the expected size; errors as in `check_mapped`."""
    if content is None:
        raise damaged_file(f"{path} is missing, unreadable or empty")
    _compare(path, Checksum(len(content), expected.digest), expected)
    return content


def check_file(path: Path, expected: Checksum) -> None:
    """Compare a file with its checksum without mapping it; errors as in `check_mapped`."""
    try:
        _compare(path, Checksum(path.stat().st_size, expected.digest), expected)
        _compare(path, checksum(path), expected)
    except OSError as error:
        if not is_loss(error):
            raise
        raise damaged_file(f"{path} cannot be read ({error.strerror})") from error


def check_part(content: mmap.mmap, start: int, stop: int, path: Path, digest: str) -> None:
    """Compare bytes `start` to `stop` of a mapped file with their digest, before anything parses them.

    Raises:
        IndexDamaged: another digest than expected.
    """
    actual = xxhash.xxh3_128_hexdigest(memoryview(content)[start:stop])
    if actual != digest:
        raise damaged_file(f"{path} has checksum {actual[:12]} in bytes {start} to {stop}, not {digest[:12]}")


def _compare(path: Path, actual: Checksum, expected: Checksum) -> None:
    if actual.size_bytes != expected.size_bytes:
        what = f"{actual.size_bytes} bytes, not {expected.size_bytes}"
    elif actual != expected:
        what = f"checksum {actual.digest[:12]}, not {expected.digest[:12]}"
    else:
        return
    raise damaged_file(f"{path} has {what}")


def write_durably(path: Path, write: Callable[[Path], object]) -> Checksum:
    """Make a file appear at `path` complete and on disk, or not at all; `write` writes all of it to another path."""
    unfinished = path.with_name(path.name + ".tmp")
    with faults_named(str(path)):  # the error of a full or failing disk names no file
        write(unfinished)
        # safetensors makes files that only their owner can read; an index is as readable as its folder.
        unfinished.chmod(path.parent.stat().st_mode & 0o666)
        written = checksum(unfinished)
        _fsync(unfinished)
        unfinished.replace(path)
        fsync_folder(path.parent)
    return written


def fsync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system can (not on Windows)."""
    if os.name == "posix":
        _fsync(folder)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def unfinished_folder(out: Path) -> Iterator[Path]:
    """An empty folder beside `out` to write into, which is removed at the end.

    A lock file beside the folder marks it as ours, so that a run after a killed one removes it.

    Raises:
        IndexMismatch: a folder of something else has its name.
        IndexBusy: another process writes there.
    """
    from filelock import FileLock, Timeout  # loads asyncio, which a search does not need

    folder, lock_file = (out.with_name(f"{out.name}{suffix}") for suffix in (".unfinished", ".unfinished.lock"))
    if folder.exists() and not lock_file.exists():
        raise IndexMismatch(f"{folder} is in the way; move it away, then run the command again")
    out.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(lock_file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise IndexBusy(f"another process writes {folder}; wait for it to end") from None
    try:
        fsync_folder(out.parent)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():  # otherwise the lock file marks the folder for a later run
            lock_file.unlink(missing_ok=True)
        lock.release()


@contextmanager
def appearing(out: Path) -> Iterator[Path]:
    """A folder to write into, which becomes `out` on success; see `unfinished_folder`. `out` may be an empty folder."""
    with unfinished_folder(out) as folder:
        yield folder
        if out.exists():
            out.rmdir()
        for path in (folder, *folder.rglob("*")):
            if path.is_dir():  # what is written into a folder syncs its files, not the name of the folder
                fsync_folder(path)
        folder.rename(out)
        fsync_folder(out.parent)
