"""Pairs of a user's own: a tab-separated file of two doc_ids and a label, with or without splits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from benchmarks.formats.lines import FormatError, columns, read_lines
from benchmarks.pairs.given_pairs import GivenPairs
from benchmarks.pairs.scorer import Pair
from benchmarks.pairs.splitting import Edge, Split, undirected

COLUMNS = ("id1", "id2", "label")
SPLIT = "split"
FORM = "id1 <tab> id2 <tab> label [<tab> split], label 0 or 1, split train, valid or test"


def read_pair_file(path: Path, doc_ids: Collection[str]) -> GivenPairs:
    """Read a file whose first line names the columns id1, id2, label and, where splits are given, split.

    Args:
        path: of the file, in UTF-8; may be gzipped.
        doc_ids: of the corpus.

    Raises:
        FormatError: it cannot be read, or a line has another form, names a document that is not in the corpus or a
            pair that stands above.
    """
    known, seen = set(doc_ids), dict[Edge, str]()
    names: list[str] = []
    pairs: list[Pair] = []
    splits: list[Split | None] = []
    for place, line in read_lines(path):
        if not names:
            names = _checked_names(path, line.split("\t"))
            continue
        row = dict(zip(names, columns(place, line, names), strict=True))
        pair = _pair(place, row, known)
        edge = undirected(pair.first, pair.second)
        if edge in seen:
            raise FormatError(
                f"{place} has the pair {pair.first}, {pair.second} that stands in {seen[edge]}, in this or the other "
                "order; leave one of them out"
            )
        seen[edge] = place
        pairs.append(pair)
        splits.append(_split(place, row))
    return GivenPairs(str(path), pairs, splits)


def _checked_names(path: Path, names: list[str]) -> list[str]:
    if missing := [column for column in COLUMNS if column not in names]:
        raise FormatError(f"{path} lacks the column {missing[0]}; its lines must be: {FORM}")
    return names


def _pair(place: str, row: Mapping[str, str], known: Collection[str]) -> Pair:
    first, second, label = (row[column] for column in COLUMNS)
    if label not in ("0", "1") or first == second:
        raise FormatError(f"{place} has the ids {first!r}, {second!r} and the label {label!r}; it must be: {FORM}")
    if strangers := [doc_id for doc_id in (first, second) if doc_id not in known]:
        raise FormatError(
            f"{place} names {strangers[0]!r}, which is none of {len(known)} documents of the corpus; add it there, or "
            "leave the pair out"
        )
    return Pair(first, second, label == "1")


def _split(place: str, row: Mapping[str, str]) -> Split | None:
    name = row.get(SPLIT)
    if name is None:
        return None
    if name not in list(Split):
        raise FormatError(f"{place} has the split {name!r}; it must be one of {', '.join(Split)}")
    return Split(name)
