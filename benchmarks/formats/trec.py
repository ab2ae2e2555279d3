"""TREC's qrels and runs, read and written, so that trec_eval and similar tools can check every number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.formats.lines import FormatError, columns, read_lines, whole_number
from benchmarks.systems import Ranking

Qrels: TypeAlias = dict[str, dict[str, int]]  # query id, then target, to relevance

_QRELS = ("query", "iteration", "target", "relevance")
_RUN = ("query", "Q0", "target", "rank", "score", "tag")


def write_run(run: Mapping[str, Ranking], path: Path, tag: str) -> None:
    """Write a run; raises a `FormatError` for an id with white space.

    trec_eval sorts by the score as float32, sorts equal scores by name in descending order, and ignores the rank. So
    that every tool sees our order, a score that is not below the previous one is written one step of float32 below it.
    """
    lines = []
    for query_id, ranking in run.items():
        scores = _falling([score for _, score in ranking])
        for rank, ((target, _), score) in enumerate(zip(ranking, scores, strict=True), start=1):
            lines.append(f"{_id(query_id)} Q0 {_id(target)} {rank} {score:.9g} {_id(tag)}\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), "utf-8")


def read_run(path: Path) -> dict[str, Ranking]:
    """Read a run; each ranking is in the order of trec_eval, and the ranks in the file are ignored."""
    found: dict[str, dict[str, float]] = {}
    for place, line in read_lines(path):
        query_id, _, target, _, score, _ = columns(place, line, _RUN, None)
        ranking = found.setdefault(query_id, {})
        if target in ranking:
            raise FormatError(f"{place} ranks {target!r} for query {query_id!r} again; a target stands in a run once")
        ranking[target] = _score(place, score)
    return {query_id: _as_trec_eval(scores) for query_id, scores in found.items()}


def write_qrels(qrels: Mapping[str, Mapping[str, int]], path: Path) -> None:
    """Write judgments; raises a `FormatError` for an id with white space."""
    rows = ((query_id, target, relevance) for query_id in qrels for target, relevance in qrels[query_id].items())
    lines = [f"{_id(query_id)} 0 {_id(target)} {relevance}\n" for query_id, target, relevance in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), "utf-8")


def read_qrels(path: Path) -> Qrels:
    """Read judgments, in the order of the file; relevance 0 or below means not relevant."""
    qrels: Qrels = {}
    for place, line in read_lines(path):
        query_id, _, target, relevance = columns(place, line, _QRELS, None)
        judged = qrels.setdefault(query_id, {})
        if target in judged:
            raise FormatError(f"{place} judges {target!r} for query {query_id!r} again; keep one of its judgments")
        judged[target] = whole_number(place, "relevance", relevance)
    return qrels


def _falling(scores: Sequence[float]) -> list[np.float32]:
    falling: list[np.float32] = []
    for score in scores:
        written = np.float32(score)
        if falling and written >= falling[-1]:
            written = np.nextafter(falling[-1], np.float32(-np.inf))
        falling.append(written)
    return falling


def _as_trec_eval(scores: Mapping[str, float]) -> Ranking:
    # By bytes, as C compares names: the order of code points is the order of their UTF-8.
    return sorted(scores.items(), key=lambda item: (np.float32(item[1]), item[0]), reverse=True)


def _score(place: str, text: str) -> float:
    try:
        score = float(text)
    except ValueError:
        raise FormatError(f"{place} has the score {text!r}; it must be a number") from None
    if score != score:
        raise FormatError(f"{place} has the score {text!r}, which has no place in an order; it must be a number")
    return score


def _id(name: str) -> str:
    if not name or len(name.split()) != 1 or name != name.strip():
        raise FormatError(f"the id {name!r} is empty or holds white space; TREC's columns need an id without")
    return name
