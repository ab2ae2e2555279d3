"""Folders in the form of BEIR (Thakur et al. 2021, arXiv:2104.08663): corpus, queries, judgments by split.

    corpus.jsonl      {"_id": text, "title": text, "text": text, "metadata": {...}}, one document a line
    queries.jsonl     {"_id": text, "text": text}, one query a line
    qrels/SPLIT.tsv   query-id, corpus-id, score by tabs, below a header line

Both JSON files may be gzipped. BEIR's own sets are to be had at
https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets/NAME.zip (names and checksums in the README of
https://github.com/beir-cellar/beir), to be fetched and unpacked by hand. Each set keeps the licence of its authors,
which that README does not grant anew; BioASQ, Signal-1M, TREC-NEWS and Robust04 are given out by their owners only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.formats.lines import FormatError, columns, read_lines, whole_number
from benchmarks.formats.trec import Qrels
from engine.document import Document
from engine.readers import Unreadable, read_file

_QRELS = ("query-id", "corpus-id", "score")
_WITHOUT_TEXT = "it holds no text"  # as the reader says it


@dataclass(frozen=True)
class BeirFolder:
    """The files of a set, all of them there."""

    corpus: Path
    queries: Path
    qrels: Mapping[str, Path]  # by split


def is_beir(folder: Path) -> bool:
    """Whether judgments lie in a folder of their own, as BEIR has them; nothing is read."""
    return (folder / "qrels").is_dir()


def open_beir(folder: Path) -> BeirFolder:
    """Find the files of a set.

    Raises:
        FormatError: one is missing.
    """
    qrels = {path.stem: path for path in sorted((folder / "qrels").glob("*.tsv"))}
    if not qrels:
        raise FormatError(f"{folder / 'qrels'} holds no SPLIT.tsv; unpack the whole set, as its authors give it out")
    return BeirFolder(_plain_or_packed(folder / "corpus.jsonl"), _plain_or_packed(folder / "queries.jsonl"), qrels)


def read_texts(path: Path) -> Iterator[Document]:
    """Stream the documents of a corpus, or the queries, in the order of the file.

    Some corpora of BEIR hold documents with neither title nor text. Nothing can
    find them, so they are passed over.

    Raises:
        FormatError: a line cannot be read; a corpus with holes would be another corpus.
    """
    for document in read_file(path):
        if not isinstance(document, Unreadable):
            yield document
        elif document.reason != _WITHOUT_TEXT:
            raise FormatError(f"{document.source}: {document.reason}")


def read_qrels(path: Path) -> Qrels:
    """Read the judgments of one split, in the order of the file.

    Raises:
        FormatError: the header is missing, a line has other columns, its score is no whole number, or two lines judge
            one target differently.
    """
    qrels: Qrels = {}
    header = ""
    for place, line in read_lines(path):
        query_id, doc_id, score = columns(place, line, _QRELS)
        if not header:
            header = _checked_header(place, score)
            continue
        relevance = whole_number(place, "score", score)
        if qrels.setdefault(query_id, {}).setdefault(doc_id, relevance) != relevance:
            raise FormatError(
                f"{place} judges {doc_id!r} for query {query_id!r} as {relevance}, an earlier line as "
                f"{qrels[query_id][doc_id]}; keep one of them"
            )
    return qrels


def _checked_header(place: str, score: str) -> str:
    if score.lstrip("-").isdigit():
        raise FormatError(f"{place} is a judgment; the first line must be the header {', '.join(_QRELS)} by tabs")
    return score


def _plain_or_packed(path: Path) -> Path:
    for candidate in (path, path.with_name(path.name + ".gz")):
        if candidate.is_file():
            return candidate
    raise FormatError(f"{path.parent} holds neither {path.name} nor {path.name}.gz; unpack the whole set")
