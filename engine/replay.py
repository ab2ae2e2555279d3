"""Repeats a search from its recorded result, and shows what changed between two results. Reads no query files.

Results are compared in the form of `engine.report.contract`, so that either can come from a file.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from engine.errors import DocumentError, QueryError
from engine.index import Index
from engine.report.contract import VERSION, section_places
from engine.search.request import Request
from engine.text.cleaning import safe
from engine.text.document import Document
from engine.text.segmentation import Section

TOLERANCE = 1e-6  # scores are float32; a smaller difference is ignored
N_CAUSES = 3  # section pairs named for each hit
_REST = ("", "")

Values: TypeAlias = Mapping[str, Any]
Presence: TypeAlias = Callable[[str], bool]  # whether a doc_id is in an index


@dataclass(frozen=True, slots=True)
class Cause:
    """A section pair whose contribution changed; contributions of parts of long sections are summed."""

    query_section: str  # headings; "" for the sum of the pairs that the older result does not list
    target_section: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class HitChange:
    """A hit that differs."""

    doc_id: str
    title: str
    rank_before: int | None  # None where it was not among the hits
    rank_after: int | None
    score_before: float | None
    score_after: float | None
    note: str
    causes: tuple[Cause, ...]  # the largest differences first


@dataclass(frozen=True, slots=True)
class Differences:
    """All that differs between two results."""

    query: str  # title
    n_hits: int  # documents that are hits of either result
    reasons: tuple[str, ...]  # other changes: of query, encoder, index, parameters
    changes: tuple[HitChange, ...]  # in the order of the new ranks, then of the old ranks

    @property
    def is_equal(self) -> bool:
        """Whether ranks, scores and parts of all hits are the same."""
        return not self.changes


def compare_results(
    before: Values, after: Values, *, was_there: Presence | None = None, is_there: Presence | None = None
) -> Differences:
    """Compare two results of one query.

    Args:
        before: from `Result.to_dict`, with any number of parts.
        after: from `Result.to_dict`, with all parts.
        was_there: whether the older index has a document; None if that is not known.
        is_there: whether the newer index has a document; None if that is not known.
    """
    old = {hit["id"]: hit for hit in before["hits"]}
    new = {hit["id"]: hit for hit in after["hits"]}
    names = [*new, *(name for name in old if name not in new)]
    compared = (_change(old.get(name), new.get(name), was_there, is_there) for name in names)
    changes = tuple(change for change in compared if change is not None)
    return Differences(after["query"]["title"], len(names), tuple(_reasons(before, after)), changes)


def _change(
    old: Values | None, new: Values | None, was_there: Presence | None, is_there: Presence | None
) -> HitChange | None:
    shown = new or old
    assert shown is not None, "a name comes from one of the two"
    causes = _causes(old, new)
    is_same = (
        old is not None
        and new is not None
        and old["rank"] == new["rank"]
        and abs(old["score"] - new["score"]) <= TOLERANCE
        and not causes
    )
    if is_same:
        return None
    return HitChange(
        shown["id"],
        shown["title"],
        None if old is None else old["rank"],
        None if new is None else new["rank"],
        None if old is None else old["score"],
        None if new is None else new["score"],
        _note(old, new, was_there, is_there, has_causes=bool(causes)),
        causes[:N_CAUSES],
    )


def _note(
    old: Values | None, new: Values | None, was_there: Presence | None, is_there: Presence | None, *, has_causes: bool
) -> str:
    if new is None:
        assert old is not None
        return "removed from the index" if is_there is not None and not is_there(old["id"]) else "no longer a hit"
    if old is None:
        return "added to the index" if was_there is not None and not was_there(new["id"]) else "was no hit"
    if old.get("content") != new.get("content"):
        return "content changed"
    if old["has_vectors"] != new["has_vectors"]:
        return "has vectors now" if new["has_vectors"] else "has no vectors now"
    return "" if has_causes else "same score, moved by other hits"


def _causes(old: Values | None, new: Values | None) -> tuple[Cause, ...]:
    """Section pairs that differ, the largest difference first; for a hit of one result alone, its strongest pairs."""
    before = _contributions(old, None)
    after = _contributions(new, _listed(old))
    keys = before.keys() | after.keys()
    causes = [Cause(*key, before.get(key, 0.0), after.get(key, 0.0)) for key in keys]
    differing = [cause for cause in causes if abs(cause.after - cause.before) > TOLERANCE]
    differing.sort(key=lambda cause: (-abs(cause.after - cause.before), cause.query_section, cause.target_section))
    return tuple(differing)


def _listed(hit: Values | None) -> set[tuple[int, int]] | None:
    """The section pairs that a hit lists, by number; None where it lists all."""
    if hit is None or all(part["kind"] != "rest" for part in hit["parts"]):
        return None
    return {section_places(part) for part in hit["parts"] if part["kind"] == "section_pair"}


def _contributions(hit: Values | None, listed: set[tuple[int, int]] | None) -> dict[tuple[str, str], float]:
    """Contributions summed by headings; section pairs that are not listed are part of the rest."""
    sums: dict[tuple[str, str], float] = {}
    for part in [] if hit is None else hit["parts"]:
        key = _REST
        if part["kind"] == "section_pair" and (listed is None or section_places(part) in listed):
            key = (_name(part["query_section"]), _name(part["target_section"]))
        sums[key] = sums.get(key, 0.0) + part["contribution"]
    return sums


def _name(section: Values) -> str:
    return section["heading"] or f"section {section['index'] + 1}"


def _reasons(before: Values, after: Values) -> Iterator[str]:
    """The changes other than those of hits, in words; with both values, except for the content of the query."""
    if before["query"].get("content") != after["query"].get("content"):
        yield "the query has another content"
    for name in ("status", "language", "reference"):
        if before[name] != after[name]:
            yield f"{name}: {before[name]}, now {after[name]}"
    old, new = before.get("provenance"), after.get("provenance")
    if old is None or new is None:
        return
    if old["version"] != new["version"]:
        yield f"longmatch: {old['version']}, now {new['version']}"
    if old["encoder"] != new["encoder"]:
        yield f"encoder: {_encoder(old['encoder'])}, now {_encoder(new['encoder'])}"
    yield from _index_reasons(old["index"] or {}, new["index"] or {})
    for name, value in old["parameters"].items():
        if value != new["parameters"].get(name):
            yield f"{name}: {value}, now {new['parameters'].get(name)}"


def _index_reasons(old: Values, new: Values) -> Iterator[str]:
    for name, label in (("n_documents", "documents"), ("generation", "generation")):
        if old.get(name) != new.get(name):
            before, now = ("none" if state.get(name) is None else f"{state[name]:,}" for state in (old, new))
            yield f"{label}: {before}, now {now}"
    if old.get("fingerprint") != new.get("fingerprint"):
        yield f"index: fingerprint {str(old.get('fingerprint'))[:12]}, now {str(new.get('fingerprint'))[:12]}"


def _encoder(state: Values | None) -> str:
    return "none" if state is None else f"{state['name']} ({state['fingerprint'][:12]})"


def differences_text(differences: Differences) -> str:
    """Differences as lines for a terminal."""
    if differences.is_equal:
        lines = [f"equal: {differences.query}: {differences.n_hits} hits with the same ranks, scores and parts"]
        return "\n".join(map(safe, [*lines, *(f"       {reason}" for reason in differences.reasons)]))
    lines = [f"different: {differences.query}: {len(differences.changes)} of {differences.n_hits} hits"]
    lines += [f"       {reason}" for reason in differences.reasons]
    for change in differences.changes:
        note = f"  ({change.note})" if change.note else ""
        ranks = f"{_rank(change.rank_before)} -> {_rank(change.rank_after)}"
        scores = f"{_score(change.score_before)} -> {_score(change.score_after)}"
        lines.append(f"  {ranks:>8}  {scores}  {change.title}  {change.doc_id}{note}")
        for cause in change.causes:
            pair = f"{cause.query_section} -> {cause.target_section}" if cause.query_section else "other section pairs"
            difference = f"{cause.after - cause.before:+.4f}"
            lines.append(f"            {difference}  {pair}  ({cause.before:.4f} -> {cause.after:.4f})")
    return "\n".join(map(safe, lines))


def _rank(rank: int | None) -> str:
    return "-" if rank is None else str(rank)


def _score(score: float | None) -> str:
    return "     -" if score is None else f"{score:.4f}"


def recorded_results(path: Path) -> list[dict[str, Any]]:
    """The results in a file: an envelope, one result, or one result per line."""
    try:
        results = _parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DocumentError(f"{path} cannot be read ({error.strerror}); name a file of results") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise DocumentError(f"{path} is not JSON of results ({error}); {_WRITE}") from error
    for result in results:
        version = result.get("schema") if isinstance(result, dict) else None
        if version != VERSION:
            raise DocumentError(f"{path} has the schema {version!r}, not {VERSION!r}; {_WRITE}")
    return results


_WRITE = "write results: longmatch query INDEX DOCUMENT --format json -o FILE"


@contextmanager
def as_written() -> Iterator[None]:
    """Refuse a result that was edited: a value is missing, or of another type."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DocumentError(f"a result is not as it was written ({type(error).__name__}: {error}); {_WRITE}") from error


def _parsed(text: str) -> list[Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        lines = [line for line in text.split("\n") if line.strip()]
        if len(lines) < 2:
            raise
        return [json.loads(line) for line in lines]
    return list(value["results"]) if isinstance(value, dict) and "results" in value else [value]


def check_replayable(recorded: Mapping[str, Any]) -> None:
    """Check that a result records the parameters of a search."""
    title, origin = recorded["query"]["title"], recorded.get("provenance")
    if origin is None:
        raise QueryError(f"the result of {title!r} records no parameters; search again")
    if "k" not in origin["parameters"]:
        raise QueryError(f"the result of {title!r} comes from a comparison; replay accepts results of searches")


def kept_query(recorded: Mapping[str, Any]) -> Document | None:
    """The query of a result that keeps its text; None where a file or the index holds it."""
    query = recorded["query"]
    document = query.get("document")
    if document is None:
        return None
    sections = tuple(Section(**section | {"path": tuple(section["path"])}) for section in document["sections"])
    return Document(query["id"], query["title"], document["text"], sections, source=query["source"])


def replay(index: Index, recorded: Mapping[str, Any], query: Document | None) -> Differences:
    """Repeat a search, and compare its result with the recorded one."""
    with as_written():
        request = Request.of(**recorded["provenance"]["parameters"])
    left_out = tuple(name for name in request.without if index.snapshot.position(name) is not None)
    result = index.search(recorded["query"]["id"] if query is None else query, replace(request, without=left_out))
    now = result.to_dict(n_pairs=None)
    with as_written():
        return compare_results(recorded, now, is_there=lambda doc_id: index.snapshot.position(doc_id) is not None)
