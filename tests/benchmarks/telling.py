"""Functions that tests run in processes of their own."""

from __future__ import annotations

import json
from pathlib import Path


def tell_sum(one: int, other: int, answer: Path) -> None:
    answer.write_text(json.dumps({"sum": one + other}))


def fail(_answer: Path) -> None:
    raise ValueError("no numbers")


def tell_blas_threshold(folder: Path, answer: Path) -> None:
    """Measure a flat index of FAISS, then write the size of queries from which FAISS uses BLAS in this process."""
    import faiss

    from benchmarks.speed.vectors.index_types import Candidate, Conditions, Library
    from benchmarks.speed.vectors.measuring import measure

    candidate = Candidate(Library.FAISS, "Flat", ("",))
    measure(candidate, folder, Conditions(10, 1, 1, 0), folder / "flat", folder / "told.json")
    answer.write_text(json.dumps(faiss.cvar.distance_compute_blas_threshold))


def write_hungry_build(folder: Path, answer: Path) -> None:
    """Build an index that takes 64 MiB meanwhile; write seconds, bytes of the index and the peak in MiB as JSON."""
    from benchmarks.speed.vectors.collection import rows_in_memory
    from benchmarks.speed.vectors.measuring import build_and_write
    from tests.benchmarks.speed.vectors.scan import Hungry

    measured = build_and_write(Hungry(), rows_in_memory(folder), folder / "hungry")
    answer.write_text(json.dumps(measured))
