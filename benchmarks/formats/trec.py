"""Lines of text files, plain or gzipped, and TREC's qrels and runs, read and written as trec_eval reads them."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.systems import Ranking
from engine.errors import EngineError


class FormatError(EngineError):
    """Raised when a file does not have its public format; names file and line."""


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Stream the lines of a file in UTF-8, decompressed for ".gz"; blank lines are skipped.

    Returns: for each line its place "FILE:NUMBER", counted from 1, and its text without the end of line.
    """
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                if text.strip():
                    yield f"{path}:{number}", text
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}:{number} is not UTF-8 (byte {error.start}); convert the file to UTF-8") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FormatError(f"{path} is not a whole gzip file ({error}); fetch or pack it again") from error
    except OSError as error:
        raise FormatError(f"{path} cannot be read ({error.strerror or error}); name a file that is there") from error


def columns(place: str, line: str, names: Sequence[str], separator: str | None = "\t") -> list[str]:
    """Split a line into as many columns as there are names, or raise a `FormatError`; None is white space."""
    found = line.split(separator)
    if len(found) != len(names):
        between = "tabs" if separator else "white space"
        raise FormatError(
            f"{place} has {len(found)} columns, not {len(names)}; it must be {', '.join(names)} by {between}"
        )
    return found


def whole_number(place: str, name: str, text: str) -> int:
    """The integer in a column, or a `FormatError`."""
    try:
        return int(text)
    except ValueError:
        raise FormatError(f"{place} has the {name} {text!r}; it must be a whole number") from None


def write_json_lines(path: Path, values: Iterable[Mapping[str, object]]) -> None:
    """Write a gzip file, one value a line, whose bytes depend only on the values, not on the time."""
    part = path.with_name(path.name + ".unfinished")
    with (
        part.open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=0) as packed,
        TextIOWrapper(packed, "utf-8", newline="\n") as text,
    ):
        text.writelines(json.dumps(value, ensure_ascii=False) + "\n" for value in values)
    part.replace(path)


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
