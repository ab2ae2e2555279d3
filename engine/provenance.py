"""Where a result comes from: software, encoder, index and parameters, so that a search can be repeated."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

from engine.result import EncoderState, IndexState, Provenance

if TYPE_CHECKING:
    from engine.encoders.encoder import Encoder
    from engine.store.snapshot import Snapshot


def provenance(
    parameters: Mapping[str, Any],
    *,
    index: IndexState | None = None,
    encoder: EncoderState | None = None,
    is_indexed: bool = False,
) -> Provenance:
    """Record a search with the current time."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Provenance(_version(), now, encoder, index, parameters, is_indexed)


def encoder_state(encoder: Encoder) -> EncoderState:
    """Name and fingerprint of a loaded encoder."""
    return EncoderState(encoder.name, encoder.fingerprint)


def recorded_encoder(snapshot: Snapshot) -> EncoderState | None:
    """The encoder that an index was built with; nothing is loaded. None for an index of words alone."""
    built = snapshot.meta.get("encoder")
    return None if built is None else EncoderState(built["name"], built["fingerprint"])


def index_state(snapshot: Snapshot) -> IndexState:
    """Describe an index from the columns that every query has in memory; no document is read.

    A replaced document gets a new catalog id, so the ids identify the contents.
    """
    digest = hashlib.sha256(snapshot.locations.ids.astype("<i8").tobytes())
    encoder, reference = recorded_encoder(snapshot), snapshot.reference_row
    generations = [part.generation_row.id for part in snapshot.parts if part.generation_row is not None]
    for part in (encoder and encoder.fingerprint, snapshot.language, reference and reference.digest):
        digest.update(f"\0{part}".encode())
    number = max(map(int, generations), default=None)
    return IndexState(str(snapshot.folder), digest.hexdigest()[:32], snapshot.n_documents, number)


@cache
def _version() -> str:
    try:
        return metadata.version("longmatch")
    except metadata.PackageNotFoundError:  # a checkout that was not installed
        return "unknown"
