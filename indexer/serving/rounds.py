"""The rounds of a search over partitions: the server's side of `engine.remote`, one response frame for each request.

A round names the state of the index that the search began with. If the index was written since, the response is an
error, and the search begins again. Encodes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import numpy as np

from engine.errors import IndexChanged, QueryError
from engine.index import Index
from engine.provenance import index_state
from engine.remote.batches import pack_survey, pack_tops, several
from engine.remote.frames import Frame, FrameError, pack, unpack
from engine.remote.opening import is_here
from engine.remote.snapshot import PROTOCOL
from engine.remote.values import (
    MOST_RANKED,
    Packed,
    pack_ranks,
    pack_shown,
    scoring_of,
    selection_of,
    unpack_query,
)
from engine.store.snapshot import Snapshot

_MOST_SHOWN = 1_000
_MOST_LISTED = 10_000
_SHARED = ("encoder", "language", "partial_reference", "counts_titles", "partition", "schema_version", "section_kinds")


def answer(index: Index, subject: str, body: bytes) -> bytes:
    """Answer one round.

    Args:
        index: opened for this thread; all its files are here.
        subject: of the round.
        body: the frame.

    Raises:
        QueryError: the frame cannot be read, or there is no such round.
        IndexChanged: the documents are no longer those that the search began with.
    """
    if not is_here(index.snapshot):
        raise QueryError("partitions of this index are served themselves; connect to those servers")
    try:
        frame = unpack(body)
        if subject == "describe":
            return pack(_description(index))
        if subject not in _ROUNDS:
            raise QueryError(f"there is no round {subject!r:.40}; both sides need the same version of longmatch")
        if frame.value("state", str) != state_of(index):
            raise IndexChanged("the index was written since the search began; search again")
        return pack(*_ROUNDS[subject](index, frame))
    except FrameError as error:
        raise QueryError(f"{error}; both sides need the same version of longmatch") from error


def state_of(index: Index) -> str:
    """A fingerprint that changes with the documents, the encoder and the reference; equal for copies of a folder."""
    return index_state(index.snapshot).fingerprint


def _description(index: Index) -> dict[str, object]:
    snapshot = index.snapshot
    return {
        "protocol": PROTOCOL,
        "state": state_of(index),
        "n_documents": snapshot.n_documents,
        "n_chunks": snapshot.n_chunks,
        "is_complete": snapshot.is_complete,
        "meta": {name: snapshot.meta[name] for name in _SHARED if name in snapshot.meta},
        "reference": None if snapshot.reference_row is None else asdict(snapshot.reference_row),
        "facts": index.facts,
    }


def _reference(index: Index, _frame: Frame) -> Packed:
    row, home = index.snapshot.reference_row, index.snapshot.folder
    if row is None:
        raise QueryError("the index has no pinned reference; run on its machine: longmatch rebase INDEX")
    if "partition" in index.snapshot.meta:
        home = home.parent
    return {}, {"reference": np.fromfile(home / row.file, np.uint8)}


def _rank(index: Index, frame: Frame) -> Packed:
    prepared, scoring, selection, n_most = unpack_query(frame, index.snapshot.width)
    if not 1 <= n_most <= MOST_RANKED:
        raise FrameError(f"{n_most} documents are wanted")
    return pack_ranks(index.searcher(scoring).ranks(prepared, selection, n_most))


def _survey(index: Index, frame: Frame) -> Packed:
    searcher = index.searcher(scoring_of(frame))
    return pack_survey(searcher.survey(selection_of(frame)))


def _tops(index: Index, frame: Frame) -> Packed:
    queries = [unpack_query(one, index.snapshot.width) for one in several(frame, "queries")]
    own = frame.array("own", np.int64, (len(queries),)).tolist()
    if len({(scoring, selection, n_most) for _, scoring, selection, n_most in queries}) != 1:
        raise FrameError("there is no query, or they have different settings")
    _, scoring, selection, n_most = queries[0]
    if not 1 <= n_most <= MOST_RANKED:
        raise FrameError(f"{n_most} documents are wanted")
    asked = [(left_out, prepared) for left_out, (prepared, *_) in zip(own, queries, strict=True)]
    return pack_tops(index.searcher(scoring).exact_tops(asked, selection, n_most))


def _scores(index: Index, frame: Frame) -> Packed:
    prepared, scoring, _, _ = unpack_query(frame, index.snapshot.width)
    positions = frame.array("positions", np.int64, (None,))
    if len(positions) and not _are_within(index, positions.min(), positions.max()):
        raise FrameError("the score of a document is wanted that is not there")
    return {}, {"scores": index.searcher(scoring).prepared_scores(prepared, positions)}


def _show(index: Index, frame: Frame) -> Packed:
    positions = frame.array("positions", np.int64, (None,))
    if len(positions) > _MOST_SHOWN or (len(positions) and not _are_within(index, positions.min(), positions.max())):
        raise FrameError(f"{len(positions)} documents are wanted, or one that is not there")
    return pack_shown(index.searcher().show(positions))


def _are_within(index: Index, least: int, most: int) -> bool:
    return 0 <= least <= most < index.n_documents


def _vectors(index: Index, frame: Frame) -> Packed:
    position = frame.count("position", index.n_documents - 1)
    ((_, coverage),) = index.snapshot.documents(np.array([position]))
    found = index.snapshot.encoded(position, coverage)
    return {}, {"document": found.document, "sections": found.sections, "chunks": found.chunks}


def _find(index: Index, frame: Frame) -> Packed:
    position = index.snapshot.position(frame.value("doc_id", str))
    return {"is_there": position is not None, "position": position or 0}, {}


def _field(index: Index, frame: Frame) -> Packed:
    return {"has": index.snapshot.has_field(frame.value("key", str))}, {}


def _titles(index: Index, frame: Frame) -> Packed:
    first, n_most = frame.count("first"), frame.count("n_most", _MOST_LISTED)
    return {"rows": index.snapshot.titles()[first : first + n_most]}, {}


def _named(ask: Callable[[Snapshot, Frame], list[str]]) -> Callable[[Index, Frame], Packed]:
    return lambda index, frame: ({"names": ask(index.snapshot, frame)[:_MOST_LISTED]}, {})


_ROUNDS: dict[str, Callable[[Index, Frame], Packed]] = {
    "reference": _reference,
    "rank": _rank,
    "survey": _survey,
    "tops": _tops,
    "scores": _scores,
    "show": _show,
    "vectors": _vectors,
    "find": _find,
    "field": _field,
    "titles": _titles,
    "failures": lambda index, _: ({"rows": index.snapshot.failures()}, {}),
    "copies": _named(lambda snapshot, frame: snapshot.copies(frame.value("content_hash", str))),
    "similar": _named(lambda snapshot, frame: snapshot.similar_names(frame.value("doc_id", str))),
    "fields": _named(lambda snapshot, _: snapshot.field_names()),
}
