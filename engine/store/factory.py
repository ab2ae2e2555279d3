"""FAISS factory strings: which one `auto` stands for, and the size of an index of each type. Never imports FAISS.

Letters in shapes: D width.
"""

from __future__ import annotations

import re

import numpy as np

AUTO = "auto"
FLAT_LIMIT = 50_000  # vectors up to which an exact index is quick enough and needs no training
TRAINING_POINTS_PER_LIST = 64
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
