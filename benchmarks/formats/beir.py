"""Folders of BEIR, and datasets of ir_datasets, which are first written as files of a task."""

from __future__ import annotations

import gzip
import importlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.formats.lines import FormatError, columns, read_lines, whole_number
from benchmarks.formats.trec import Qrels
from benchmarks.packages import require
from engine.document import Document
from engine.readers import Unreadable, read_file

_QRELS = ("query-id", "corpus-id", "score")
_WITHOUT_TEXT = "it holds no text"  # the reason in the message of the reader


@dataclass(frozen=True)
class BeirFolder:
    """The files of a set; all exist."""

    corpus: Path
    queries: Path
    qrels: Mapping[str, Path]  # by split


def is_beir(folder: Path) -> bool:
    """Whether judgments are in a folder qrels, as in BEIR; reads no file."""
    return (folder / "qrels").is_dir()


def open_beir(folder: Path) -> BeirFolder:
    """Find the files of a set.

    Raises:
        FormatError: a file is missing.
    """
    qrels = {path.stem: path for path in sorted((folder / "qrels").glob("*.tsv"))}
    if not qrels:
        raise FormatError(f"{folder / 'qrels'} holds no SPLIT.tsv; unpack the whole set, as its authors give it out")
    return BeirFolder(_plain_or_packed(folder / "corpus.jsonl"), _plain_or_packed(folder / "queries.jsonl"), qrels)


def read_texts(path: Path) -> Iterator[Document]:
    """Stream the documents of a corpus, or the queries, in the order of the file.

    Some corpora of BEIR have documents with neither title nor text. No search can
    find them, so they are skipped.

    Raises:
        FormatError: a line cannot be read; a corpus without it would be another corpus.
    """
    for document in read_file(path):
        if not isinstance(document, Unreadable):
            yield document
        elif document.reason != _WITHOUT_TEXT:
            raise FormatError(f"{document.source}: {document.reason}")


def read_qrels(path: Path) -> Qrels:
    """Read the judgments of one split, in the order of the file.

    Raises:
        FormatError: the header is missing, a line has other columns, its score is not an integer, or two lines judge
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


PREFIX = "irds:"
SPLIT = "test"
_KINDS = ("docs", "queries", "qrels")


class IrdsText(Protocol):
    """A document or a query of ir_datasets."""

    def default_text(self) -> str:
        """The whole text in one string."""
        ...


class IrdsJudgment(Protocol):
    """A judgment of ir_datasets."""

    query_id: str
    doc_id: str
    relevance: int


class IrdsDataset(Protocol):
    """The interface of ir_datasets that is used here."""

    def docs_iter(self) -> Iterable[IrdsText]:
        """All documents."""
        ...

    def queries_iter(self) -> Iterable[IrdsText]:
        """All queries."""
        ...

    def qrels_iter(self) -> Iterable[IrdsJudgment]:
        """All judgments."""
        ...


def open_irds(name: str, folder: Path) -> Path:
    """Write the dataset of an id into a folder, unless it exists; ir_datasets can download the texts.

    Args:
        name: the id, as in the catalog of ir_datasets, without `PREFIX`.
        folder: the parent of the folders of all such datasets.

    Returns:
        The folder of this dataset.

    Raises:
        MissingExtra: ir_datasets is not installed.
        FormatError: the id is unknown, lacks documents, queries or judgments, or cannot be downloaded.
    """
    target = folder / name.replace("/", "-")
    if (target / "corpus.jsonl.gz").is_file():
        return target
    require(f"reading {PREFIX}{name}", {"ir_datasets": "ir_datasets"}, "irds")
    try:
        dataset = importlib.import_module("ir_datasets").load(name)
        missing = [kind for kind in _KINDS if not getattr(dataset, f"has_{kind}")()]
        if missing:
            raise FormatError(f"{PREFIX}{name} has no {', '.join(missing)}; name a subset that has, as {name}/test")
        write_irds(dataset, target)
    except KeyError as error:
        raise FormatError(f"{PREFIX}{name} is not an id of ir_datasets; see https://ir-datasets.com") from error
    except (OSError, RuntimeError) as error:
        raise FormatError(f"{PREFIX}{name} cannot be read ({error}); check the network, or ~/.ir_datasets") from error
    return target


def write_irds(dataset: IrdsDataset, folder: Path) -> None:
    """Write corpus, queries, judgments and the split `SPLIT`; queries without a relevant target are left out."""
    folder.mkdir(parents=True, exist_ok=True)
    qrels: dict[str, dict[str, int]] = {}
    for judgment in dataset.qrels_iter():
        qrels.setdefault(judgment.query_id, {})[judgment.doc_id] = judgment.relevance
    kept = {query_id: targets for query_id, targets in qrels.items() if any(value > 0 for value in targets.values())}
    rows = [f"{query_id}\t{doc_id}\t{value}\n" for query_id in kept for doc_id, value in kept[query_id].items()]
    (folder / "qrels.tsv").write_text("query_id\tdoc_id\trelevance\n" + "".join(rows), "utf-8")
    (folder / "splits.json").write_text(json.dumps({SPLIT: list(kept)}, indent=1) + "\n", "utf-8")
    _write_lines(folder / "queries.jsonl.gz", (_line(query, "query_id") for query in dataset.queries_iter()))
    _write_lines(folder / "corpus.jsonl.gz", (_line(document, "doc_id") for document in dataset.docs_iter()))


def _line(text: IrdsText, id_field: str) -> Mapping[str, object]:
    """One line of a corpus; a text with a field `text` does not repeat the title."""
    body = getattr(text, "text", None)
    section = {"heading": "", "text": body if isinstance(body, str) else text.default_text().strip()}
    title = str(getattr(text, "title", "") or "")
    return {"id": str(getattr(text, id_field)), "title": title, "sections": [section], "meta": {}}


def _write_lines(path: Path, lines: Iterator[Mapping[str, object]]) -> None:
    part = path.with_name(path.name + ".unfinished")
    with gzip.open(part, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    part.replace(path)
