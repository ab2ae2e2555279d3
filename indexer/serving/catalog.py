"""What the index holds, for people who write filters: its size, its metadata fields and their values."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from engine.index import Index
from engine.result import recorded_encoder
from engine.store.lookup import stored_fields, stored_values
from indexer.serving.answers import as_json
from indexer.serving.settings import Settings


def description(index: Index, settings: Settings) -> bytes:
    """Name, size, encoder, limits and metadata fields.

    Args:
        index: opened for this thread.
    """
    snapshot = index.snapshot
    encoder = recorded_encoder(snapshot)
    return as_json(
        {
            "name": Path(snapshot.folder).name,
            "documents": snapshot.n_documents,
            "documents_with_vectors": index.facts["encoded"],
            "encoder": None if encoder is None else encoder.name,
            "language": snapshot.language,
            "max_bytes": settings.max_bytes,
            "fields": [
                asdict(field) | {"types": list(field.types), "examples": list(field.examples)}
                for field in stored_fields(snapshot.folder)
            ],
        }
    )


def values(index: Index, field: str, containing: str, limit: int) -> bytes:
    """The values of a metadata field, the commonest first.

    Args:
        index: opened for this thread.
    """
    found = stored_values(index.snapshot.folder, field, containing=containing, limit=limit)
    return as_json({"field": field, "values": [{"value": value, "documents": count} for value, count in found]})
