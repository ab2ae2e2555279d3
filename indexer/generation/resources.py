"""What fits: memory of this process, disk that a run may fill, and the best type of FAISS index that memory can build.

Types from best to smallest:

    float32, exact  ->  float16, exact  ->  8 bits  ->  4-bit codes in lists, coarser and coarser,
    with exact similarities from the shards  ->  no index: queries scan the mapped shards

Many vectors begin at the lists, because lists are faster. Before a type is rejected, it is tried with fewer training
vectors and smaller blocks. Never imports FAISS. The kind of a file system is known on Linux only.
"""

from __future__ import annotations

import re
import resource
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from engine.encoders.encoder import EncodedDocument
from engine.errors import BudgetExceeded
from engine.report.lines import megabytes
from engine.scoring.evidence import QUERY_BLOCK
from engine.search.searcher import PASS_CHUNKS
from engine.text.document import Document
from engine.words.counts import WordTables

AUTO = "auto"
FLAT_LIMIT = 50_000  # vectors up to which an exact index is quick enough and needs no training
TRAINING_POINTS_PER_LIST = 64  # as in `engine.store.ann`, which loads FAISS
MIN_POINTS_PER_LIST = 39  # below this, FAISS warns
# Searching a shorter list costs nearly as much: one of 58 codes took as long as one of 117 (PQ32x4fs, 64 wide).
LONG_LIST = 200
_EXACT = ("Flat", "SQfp16")  # shards hold float16, so its codes lose nothing
_UNTRAINED = (*_EXACT, "SQbf16")


def n_lists_for(n_vectors: int) -> int:
    """The number of inverted lists for `n_vectors`, a power of two.

    Near 4 sqrt(n) if lists are then at least `LONG_LIST` long on average, else near 2 sqrt(n); never so many
    that FAISS lacks training points.
    """
    n_lists = _power_of_two(4 * np.sqrt(n_vectors))
    if n_vectors < LONG_LIST * n_lists:
        n_lists = _power_of_two(2 * np.sqrt(n_vectors))
    while n_lists > max(1, n_vectors // MIN_POINTS_PER_LIST):
        n_lists //= 2
    return max(1, n_lists)


def factory_options(n_vectors: int, width: int) -> list[str]:
    """Factory strings for `n_vectors`, best first, each for a smaller index than the one before.

    Few vectors are searched exactly, in float32 or float16, or nearly so in 8 bits.
    Many go to inverted lists of 4-bit product codes, the quickest type at equal recall,
    because their exact similarities are read from the shards afterwards; coarser codes
    where memory is short.
    """
    lists = f"IVF{n_lists_for(n_vectors)}"
    coded = [f"{lists},PQ{m}x4fs" for m in (width // 2, width // 4, width // 8) if m and width % m == 0]
    return [*(["Flat", "SQfp16", "SQ8"] if n_vectors <= FLAT_LIMIT else []), *coded]


def _power_of_two(number: float) -> int:
    """The nearest power of two, by ratio."""
    power = round(float(np.log2(max(number, 1))))
    return 1 << power


def is_exact_factory(factory: str) -> bool:
    """Whether every vector is compared, at the precision at which the shards hold it."""
    return _without_ids(factory) in _EXACT


def index_bytes(factory: str, n_vectors: int, width: int) -> int:
    """Estimated memory of an index of a common type: Flat, SQ, PQ or RaBitQ codes, with or without lists."""
    code = 4 * width
    for part in factory.split(","):
        if match := re.fullmatch(r"PQ(\d+)(?:x(\d+)(?:fsr?)?)?", part):
            code = -(-int(match[1]) * int(match[2] or 8) // 8)
        elif match := re.fullmatch(r"SQ(?:fp|bf)?(\d+)", part):
            code = width * int(match[1]) // 8
        elif part.startswith("RaBitQ"):
            code = width // 8 + 8
    return n_vectors * (code + 8) + n_lists_of(factory) * 4 * width


def n_lists_of(factory: str) -> int:
    """The number of inverted lists in a factory string; 0 without lists."""
    match = re.search(r"IVF(\d+)", factory)
    return int(match[1]) if match else 0


def training_size(factory: str, points_per_list: int = TRAINING_POINTS_PER_LIST) -> int:
    """The most training vectors that a factory string uses; 0 for a type without training."""
    return 0 if _without_ids(factory) in _UNTRAINED else max(n_lists_of(factory), 1024) * points_per_list


def _without_ids(factory: str) -> str:
    return re.sub(r"^IDMap2?,", "", factory)


SCAN = "scan"  # no FAISS index: requested, or no factory string fits
# For each number of a row: float32 and float16 while it is gathered, float32 and codes inside FAISS.
_BLOCK_BYTES = 10
_SCAN_BYTES = 6  # for each number of a row that is multiplied with queries
# For each document: the locations, twice while it is read, and a name.
_DOCUMENT_BYTES = 256


@dataclass(frozen=True, slots=True)
class BuildSizes:
    """How much of the vectors is in memory at one time while an index is built."""

    points_per_list: int = TRAINING_POINTS_PER_LIST  # training vectors
    block_chunks: int = 16_384  # vectors added at once
    scan_chunks: int = 32_768  # compared at once, when the recall is measured


SMALL = BuildSizes(MIN_POINTS_PER_LIST, 2_048, 2_048)


@dataclass(frozen=True, slots=True)
class Size:
    """The size of the data under an index."""

    n_documents: int
    n_chunks: int
    width: int


@dataclass(frozen=True, slots=True)
class IndexOption:
    """One type of index, and the memory that building it takes."""

    factory: str  # or `SCAN`
    index_bytes: int
    work_bytes: int  # beyond the index: the largest of training before it is filled, adding blocks, measuring recall
    sizes: BuildSizes
    fits: bool

    @property
    def needed_bytes(self) -> int:
        """Memory of index and work together."""
        return self.index_bytes + self.work_bytes


def index_options(factory: str, size: Size, left_bytes: int | None) -> tuple[IndexOption, ...]:
    """The options down to the first that fits; `SCAN` always fits.

    Raises:
        BudgetExceeded: `factory` is a factory string that does not fit.
    """
    scanning = IndexOption(SCAN, 0, 0, SMALL, fits=True)
    if factory == SCAN:
        return (scanning,)
    options: list[IndexOption] = []
    for tried in factory_options(size.n_chunks, size.width) if factory == AUTO else [factory]:
        options.append(_option(tried, size, left_bytes))
        if options[-1].fits:
            return tuple(options)
    if factory != AUTO:
        raise _does_not_fit(options[-1], size, left_bytes)
    return (*options, scanning)


def check_factory_option(factory: str, width: int) -> None:
    """Refuse a factory string that FAISS does not know, before anything is read or encoded.

    Raises:
        IndexMismatch: FAISS does not know the factory string, or cannot build it at this width.
    """
    if factory not in (AUTO, SCAN):
        from engine.store.ann import check_factory  # loads FAISS

        check_factory(factory, width)


def describe_options(options: Sequence[IndexOption], left_bytes: int | None) -> list[str]:
    """One line for each option: its memory, and whether it was chosen or why not."""
    lines = []
    for option in options:
        if option.factory == SCAN:
            lines.append("> no FAISS index: queries scan the mapped shards, exactly and slowly")
            continue
        need = f"{option.factory} ({_precision(option.factory)}) takes {megabytes(option.needed_bytes)} to build"
        if not option.fits:
            assert left_bytes is not None
            lines.append(f"  {need}, {megabytes(max(0, left_bytes))} are left")
        else:
            lines.append(f"> {need}" + (", in small blocks" if option.sizes == SMALL else ""))
    return lines


def _precision(factory: str) -> str:
    if is_exact_factory(factory):
        return "exact"
    return f"codes{' in lists' if n_lists_of(factory) else ''}, rescored exactly from the shards"


def _option(factory: str, size: Size, left_bytes: int | None) -> IndexOption:
    held = index_bytes(factory, size.n_chunks, size.width)
    for sizes in (BuildSizes(), SMALL):
        work = _work_bytes(factory, size, sizes, held)
        fits = left_bytes is None or held + work <= left_bytes
        if fits:
            break
    return IndexOption(factory, held, work, sizes, fits)


def _work_bytes(factory: str, size: Size, sizes: BuildSizes, held: int) -> int:
    n_training = min(training_size(factory, sizes.points_per_list), size.n_chunks)
    training = 4 * size.width * (n_training + n_lists_of(factory)) - held
    block = _BLOCK_BYTES * size.width * min(sizes.block_chunks, size.n_chunks)
    documents = _DOCUMENT_BYTES * size.n_documents
    if is_exact_factory(factory):
        return block + documents
    n_scanned = min(sizes.scan_chunks, size.n_chunks)
    scanned = (_SCAN_BYTES * size.width + 4 * QUERY_BLOCK) * n_scanned
    query_bytes = 8 * size.width * min(PASS_CHUNKS, size.n_chunks)  # query chunks, one by one and together
    return max(training, block, scanned + query_bytes + 2 * size.width * size.n_documents) + documents


def _does_not_fit(option: IndexOption, size: Size, left_bytes: int | None) -> BudgetExceeded:
    *types, smallest = factory_options(size.n_chunks, size.width)
    fitting = (name for name in types if index_bytes(name, size.n_chunks, size.width) <= (left_bytes or 0))
    return BudgetExceeded(
        f"a {option.factory} index over {size.n_chunks:,} vectors {size.width} wide takes "
        f"{option.needed_bytes / 1e6:,.1f} MB while it is built, --memory leaves {max(0, left_bytes or 0) / 1e6:,.1f} "
        f"MB for it; allow {-(-(option.needed_bytes - (left_bytes or 0)) // 1_000_000):,} MB more, or use "
        f"--factory auto, or a smaller one, for example {next(fitting, smallest)}"
    )


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


class MemoryWatch:
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
                f"{self.folder} would grow by {megabytes(needed_bytes)}, {self._bound()} leaves "
                f"{megabytes(max(0, left))}; make room for {megabytes(needed_bytes - left)} more, or index fewer "
                "documents"
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
        left = megabytes(max(0, self.left_bytes()))
        return BudgetExceeded(
            f"{what} needs {megabytes(needed_bytes)}, {self._bound()} leaves {left}; what was committed is safe: make "
            "room and run the same command again to go on"
        )

    def _bound(self) -> str:
        return "the disk" if self.limit_bytes is None else f"--disk {megabytes(self.limit_bytes)}"


def commit_bytes(documents: Sequence[Document], encoded: Sequence[EncodedDocument], words: WordTables) -> int:
    """The most bytes that a commit can write: rows in float16, term counts, and texts without compression."""
    texts = sum(len(document.text.encode()) for document in documents)
    rows = sum(2 * len(document.document) * (1 + len(document.sections) + len(document.chunks)) for document in encoded)
    spans = sum(16 * len(document.chunks) for document in encoded)
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
