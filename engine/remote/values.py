"""Converts the values of a search to frames and back, and checks each before use. Sends nothing.

Of a prepared query, a frame holds only the values that ranking reads: vectors, thresholds, terms and weights. The
text of the query stays with the search, which makes the breakdown.

Letters in shapes: I query chunks, R documents, Q terms, C chunks of a document, D width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument
from engine.errors import QueryError
from engine.remote.frames import Frame, FrameError
from engine.scoring.evidence import COMPONENTS, Components, Scoring, Thresholds
from engine.scoring.similarity import Matches
from engine.search.partition import Ranked, Ranks, Selection, Shown
from engine.search.query import Prepared
from engine.search.scorer import Exact
from engine.text.document import Document
from engine.text.section_kinds import SectionKind
from engine.text.spans import Coverage, Section
from engine.words.likelihood import QueryTerms

MOST_RANKED = 2_000_000  # documents that one round can rank
_LONGEST_FILTER, _MOST_NAMES, _LONGEST_NAME = 65_536, 10_000, 4_096
_MOST_SKIP = (1 << len(SectionKind)) - 1  # bits of kinds of sections
_KINDS = ("words", "pairs")

Packed = tuple[dict[str, Any], dict[str, NDArray[Any]]]


def pack_query(prepared: Prepared, scoring: Scoring, selection: Selection, n_most: int) -> Packed:
    """A query with its scoring, its selection and the number of documents requested."""
    head: dict[str, Any] = {
        "scoring": asdict(scoring),
        "selection": asdict(selection),
        "n_most": n_most,
        "weights": dict(prepared.weights),
        "document_threshold": prepared.limits.document,
        "skip": prepared.skip,
        "terms": [kind for kind in _KINDS if getattr(prepared, kind) is not None],
    }
    arrays: dict[str, NDArray[Any]] = {
        "document": prepared.vectors.document.astype(np.float32),
        "chunks": prepared.vectors.chunks.astype(np.float32),
        "chunk_weights": prepared.chunk_weights,
        "chunk_thresholds": prepared.limits.chunks.astype(np.float32),
        "chunk_shares": prepared.limits.weights,
    }
    for kind in head["terms"]:
        terms: QueryTerms = getattr(prepared, kind)
        arrays |= {f"{kind}_terms": terms.terms, f"{kind}_weights": terms.weights, f"{kind}_rates": terms.rates}
        if terms.counts is not None:
            arrays[f"{kind}_counts"] = terms.counts
    return head, arrays


def unpack_query(frame: Frame, width: int) -> tuple[Prepared, Scoring, Selection, int]:
    """The query that was packed; its sections, spans and text are empty.

    Args:
        frame: with `pack_query`'s values.
        width: D of the index; 0 for words alone.

    Raises:
        FrameError: a value is missing, or does not fit.
        QueryError: a constant of the score is out of its range.
    """
    n_chunks = len(frame.array("chunk_weights", np.float64, (None,)))
    document = frame.array("document", np.float32, (width if n_chunks else None,))
    chunks = frame.array("chunks", np.float32, (n_chunks, width if n_chunks else None))
    nothing = np.empty((0, chunks.shape[1]), np.float32)
    limits = Thresholds(
        frame.array("chunk_thresholds", np.float32, (n_chunks,)),
        float(frame.value("document_threshold", (int, float))),
        frame.array("chunk_shares", np.float64, (n_chunks,)),
    )
    prepared = Prepared(
        EncodedDocument(document, nothing, chunks, (), Coverage(0, 0)),
        frame.array("chunk_weights", np.float64, (n_chunks,)),
        limits,
        _terms(frame, "words"),
        _terms(frame, "pairs"),
        _weights(frame),
        "",
        skip=frame.count("skip", _MOST_SKIP),
    )
    return prepared, scoring_of(frame), selection_of(frame), frame.count("n_most", MOST_RANKED)


def _terms(frame: Frame, kind: str) -> QueryTerms | None:
    if kind not in frame.value("terms", list):
        return None
    terms = frame.array(f"{kind}_terms", np.uint32, (None,))
    if (np.diff(terms.astype(np.int64)) <= 0).any():
        raise FrameError(f"the {kind} of the query do not rise")
    weights, rates = (frame.array(f"{kind}_{name}", np.float64, terms.shape) for name in ("weights", "rates"))
    has_counts = f"{kind}_counts" in frame.arrays
    return QueryTerms(
        terms, weights, rates, frame.array(f"{kind}_counts", np.float64, terms.shape) if has_counts else None
    )


def _weights(frame: Frame) -> dict[str, float]:
    given = frame.value("weights", dict)
    if set(given) != set(COMPONENTS) or not all(isinstance(one, int | float) for one in given.values()):
        raise FrameError("the weights are not those of the components")
    return {name: float(weight) for name, weight in given.items()}


def scoring_of(frame: Frame) -> Scoring:
    """The constants of the score.

    Raises:
        FrameError: the constants have another form.
        QueryError: a constant is out of its range.
    """
    given = frame.value("scoring", dict)
    kinds = {one.name: type(one.default) for one in fields(Scoring)}
    if set(given) != set(kinds) or not all(isinstance(given[name], kinds[name] | int) for name in kinds):
        raise FrameError("the constants of the score are not those of this version")
    return Scoring(**given)


def selection_of(frame: Frame) -> Selection:
    """The documents that a search can find.

    Raises:
        FrameError: the selection has another form.
        QueryError: the filter is too long.
    """
    given = frame.value("selection", dict)
    where, without, exact = (given.get(name) for name in ("where", "without", "exact"))
    if not (where is None or isinstance(where, str)) or not isinstance(exact, bool):
        raise FrameError("the selection has another form")
    if len(where or "") > _LONGEST_FILTER:
        raise QueryError(f"the filter has {len(where or ''):,} characters; at most {_LONGEST_FILTER:,} can be used")
    return Selection(where, names(without), exact)


def names(given: object) -> tuple[str, ...]:
    """A list of names.

    Raises:
        FrameError: the value is not a list of names, or is too long.
    """
    if not isinstance(given, list) or len(given) > _MOST_NAMES:
        raise FrameError(f"there is no list of at most {_MOST_NAMES:,} names")
    if not all(isinstance(one, str) and len(one) <= _LONGEST_NAME for one in given):
        raise FrameError("a name is no text, or too long")
    return tuple(given)


def pack_ranks(ranks: Ranks) -> Packed:
    """The best documents of a partition."""
    head, arrays = pack_ranked(ranks.best)
    counts = ("n_found", "n_evident", "n_searched", "is_exact", "is_complete")
    return head | {name: getattr(ranks, name) for name in counts}, arrays


def pack_ranked(best: Ranked) -> Packed:
    """Ranked documents, in order."""
    exact = best.exact
    arrays: dict[str, NDArray[Any]] = {
        "positions": exact.positions,
        "scores": exact.scores,
        "similarities": exact.matches.similarities,
        "matches": exact.matches.chunks.astype(np.int32),
        **{name: getattr(exact.components, name) for name in COMPONENTS},
    }
    if exact.cosines is not None:
        arrays["cosines"] = exact.cosines.astype(np.float32)
    return {"doc_ids": list(best.doc_ids)}, arrays


def unpack_ranks(frame: Frame, n_chunks: int, n_most: int, n_documents: int) -> Ranks:
    """The best documents of a partition; arguments and errors are those of `unpack_ranked`."""
    return Ranks(
        unpack_ranked(frame, n_chunks, n_most, n_documents),
        frame.count("n_found"),
        frame.count("n_evident"),
        frame.count("n_searched"),
        frame.value("is_exact", bool),
        frame.value("is_complete", bool),
    )


def unpack_ranked(frame: Frame, n_chunks: int, n_most: int, n_documents: int) -> Ranked:
    """The ranking that was packed.

    Args:
        frame: with `pack_ranked`'s values.
        n_chunks: I of the query.
        n_most: documents requested.
        n_documents: of the partition.

    Raises:
        FrameError: a value is missing, or does not fit.
    """
    positions = frame.array("positions", np.int64, (None,))
    n = len(positions)
    doc_ids = frame.value("doc_ids", list)
    if n > n_most or len(doc_ids) != n or not all(isinstance(one, str) for one in doc_ids):
        raise FrameError(f"{len(doc_ids)} names of {n} documents; at most {n_most} were wanted")
    if n and not 0 <= positions.min() <= positions.max() < n_documents:
        raise FrameError(f"a position is not among {n_documents:,} documents")
    scores = frame.array("scores", np.float64, (n,))
    order = list(zip((-scores).tolist(), doc_ids, strict=True))
    if len(set(positions.tolist())) < n or order != sorted(order) or (n and not 0 < scores.min() <= scores.max() <= 1):
        raise FrameError("the documents are not ranked by their scores")
    matches = Matches(
        frame.array("similarities", np.float32, (n_chunks, n)),
        frame.array("matches", np.int32, (n_chunks, n)).astype(np.int64),
    )
    components = Components(*(frame.array(name, np.float64, (n,)) for name in COMPONENTS))
    cosines = frame.array("cosines", np.float32, (n,)) if "cosines" in frame.arrays else None
    return Ranked(Exact(positions, scores, components, matches, cosines), tuple(doc_ids))


def pack_shown(shown: Sequence[Shown]) -> Packed:
    """Documents as hits show them."""
    counts = [len(one.spans) for one in shown]
    spans = np.concatenate([np.empty((0, 4), np.int32), *(one.spans for one in shown)])
    rows = [
        _document(one.document) | {"coverage": asdict(one.coverage), "has_vectors": one.has_vectors} for one in shown
    ]
    return {"documents": rows, "n_chunks": counts}, {"spans": spans.astype(np.int32)}


def unpack_shown(frame: Frame, n_documents: int) -> list[Shown]:
    """The documents that were packed.

    Args:
        frame: with `pack_shown`'s values.
        n_documents: the number of documents requested.

    Raises:
        FrameError: a value is missing, or does not fit.
    """
    rows, counts = frame.value("documents", list), frame.value("n_chunks", list)
    spans = frame.array("spans", np.int32, (None, 4))
    if not len(rows) == len(counts) == n_documents or sum(counts) != len(spans) or min(counts, default=0) < 0:
        raise FrameError(f"{len(rows)} documents came, not {n_documents}")
    ends = np.cumsum(counts, dtype=np.int64)
    try:
        return [
            Shown(document_of(row), Coverage(**row["coverage"]), spans[end - count : end], bool(row["has_vectors"]))
            for row, count, end in zip(rows, counts, ends.tolist(), strict=True)
        ]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise FrameError(f"a document has another form ({error})") from error


_PLAIN = ("doc_id", "title", "text", "source")


def _document(document: Document) -> dict[str, Any]:
    return {
        **{name: getattr(document, name) for name in _PLAIN},
        "metadata": dict(document.metadata),
        "sections": [[getattr(section, one.name) for one in fields(Section)] for section in document.sections],
        "pages": list(document.pages),
    }


def document_of(row: Mapping[str, Any]) -> Document:
    """A document, rebuilt from plain values."""
    if not all(isinstance(row[name], str) for name in _PLAIN):
        raise FrameError("a document has a field that is no text")
    sections = tuple(Section(heading, tuple(path), *rest) for heading, path, *rest in row["sections"])
    doc_id, title, text, source = (row[name] for name in _PLAIN)
    return Document(doc_id, title, text, sections, dict(row["metadata"]), source, tuple(row["pages"]))
