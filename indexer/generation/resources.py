"""The type and size of a FAISS index, and the size and kind of file system of a folder.

Never imports FAISS. The kind of a file system is known on Linux only.
"""

import re
from pathlib import Path

import numpy as np

AUTO = "auto"
SCAN = "scan"  # no FAISS index: queries scan the mapped shards
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


def factory_for(n_vectors: int, width: int) -> str:
    """The factory string for `n_vectors`, or `SCAN` where the width cannot be divided.

    Few vectors are searched exactly. Many go to inverted lists of 4-bit product codes, the quickest type at equal
    recall, because their exact similarities are read from the shards afterwards.
    """
    if n_vectors <= FLAT_LIMIT:
        return "Flat"
    n_codes = next((n for n in (width // 2, width // 4, width // 8) if n and width % n == 0), None)
    return SCAN if n_codes is None else f"IVF{n_lists_for(n_vectors)},PQ{n_codes}x4fs"


def _power_of_two(number: float) -> int:
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


def training_size(factory: str) -> int:
    """The most training vectors that a factory string uses; 0 for a type without training."""
    return 0 if _without_ids(factory) in _UNTRAINED else max(n_lists_of(factory), 1024) * TRAINING_POINTS_PER_LIST


def _without_ids(factory: str) -> str:
    return re.sub(r"^IDMap2?,", "", factory)


def check_factory_option(factory: str, width: int) -> None:
    """Refuse a factory string that FAISS does not know, before anything is read or encoded."""
    if factory not in (AUTO, SCAN):
        from engine.store.ann import check_factory  # loads FAISS

        check_factory(factory, width)


def folder_bytes(folder: Path) -> int:
    """Size of all files below a folder; 0 where there is none."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


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
