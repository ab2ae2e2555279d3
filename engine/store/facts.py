"""Counts, encoder, reference and generations of an index as plain values, for `longmatch show`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from engine.store.snapshot import Snapshot


def index_facts(snapshot: Snapshot) -> dict[str, Any]:
    """The values that `longmatch show --json` prints."""
    rows = [(part, part.generation_row) for part in snapshot.parts]
    generations = [None if row is None else row._asdict() for _, row in rows]
    n_fresh = sum(int(part.is_fresh(row.through_chunk if row is not None else 0).sum()) for part, row in rows)
    return {
        **snapshot.totals(),
        "encoder": snapshot.meta.get("encoder"),
        "language": snapshot.language,
        "reference": None if snapshot.reference_row is None else asdict(snapshot.reference_row),
        "generation": generations[0] if len(rows) == 1 else None,
        "fresh_documents": n_fresh,
        **({} if len(rows) == 1 else {"partitions": _partitions(snapshot.parts, generations)}),
        "format": snapshot.meta["format"],
    }


def _partitions(parts: Sequence[Snapshot], generations: Sequence[dict[str, Any] | None]) -> list[dict[str, Any]]:
    return [
        {
            "folder": part.folder.name,
            "documents": part.n_documents,
            "chunks": part.n_chunks,
            "generation": generation,
        }
        for part, generation in zip(parts, generations, strict=True)
    ]
