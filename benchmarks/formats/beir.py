"""Folders of BEIR, and datasets of ir_datasets, which are first written as files of a task."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.formats.trec import FormatError, Qrels, columns, read_lines, whole_number, write_json_lines
from benchmarks.packages import require
from engine.readers import Unreadable, read_file
from engine.readers.fields import Fields
from engine.text.document import Document

_QRELS = ("query-id", "corpus-id", "score")
_FIELDS = Fields(id="_id")  # which judgments name
_WITHOUT_TEXT = "it holds no text"  # the reason in the message of the reader


def is_beir(folder: Path) -> bool:
    """Whether judgments are in a folder qrels, as in BEIR; reads no file."""
    return (folder / "qrels").is_dir()


def open_beir(folder: Path) -> tuple[Path, Path]:
    """Find the files of corpus and queries."""
    if not any((folder / "qrels").glob("*.tsv")):
        raise FormatError(f"{folder / 'qrels'} holds no SPLIT.tsv; unpack the whole set, as its authors give it out")
    return _plain_or_packed(folder / "corpus.jsonl"), _plain_or_packed(folder / "queries.jsonl")


def read_texts(path: Path) -> Iterator[Document]:
    """Stream the documents of a corpus, or the queries; those with neither title nor text are skipped."""
    for document in read_file(path, fields=_FIELDS):
        if not isinstance(document, Unreadable):
            yield document
        elif document.reason != _WITHOUT_TEXT:
            raise FormatError(f"{document.source}: {document.reason}")


def read_qrels(path: Path) -> Qrels:
    """Read the judgments of one split, in the order of the file."""
    qrels: Qrels = {}
    header = ""
    for place, line in read_lines(path):
        query_id, doc_id, score = columns(place, line, _QRELS)
        if not header:
            header = score
            if score.lstrip("-").isdigit():
                raise FormatError(
                    f"{place} is a judgment; the first line must be the header {', '.join(_QRELS)} by tabs"
                )
            continue
        relevance = whole_number(place, "score", score)
        if qrels.setdefault(query_id, {}).setdefault(doc_id, relevance) != relevance:
            raise FormatError(
                f"{place} judges {doc_id!r} for query {query_id!r} as {relevance}, an earlier line as "
                f"{qrels[query_id][doc_id]}; keep one of them"
            )
    return qrels


def _plain_or_packed(path: Path) -> Path:
    for candidate in (path, path.with_name(path.name + ".gz")):
        if candidate.is_file():
            return candidate
    raise FormatError(f"{path.parent} holds neither {path.name} nor {path.name}.gz; unpack the whole set")


PREFIX = "irds:"
SPLIT = "test"
_KINDS = ("docs", "queries", "qrels")


def open_irds(name: str, folder: Path) -> Path:
    """Write the dataset of an id, without `PREFIX`, into a folder, unless it exists; ir_datasets can download texts."""
    target = folder / name.replace("/", "-")
    if (target / "corpus.jsonl.gz").is_file():
        return target
    require(f"reading {PREFIX}{name}", {"ir_datasets": "ir_datasets"}, "irds")
    try:
        dataset = importlib.import_module("ir_datasets").load(name)
        missing = [kind for kind in _KINDS if not getattr(dataset, f"has_{kind}")()]
        if missing:
            raise FormatError(f"{PREFIX}{name} has no {', '.join(missing)}; name a subset that has, as {name}/test")
        _write_irds(dataset, target)
    except KeyError as error:
        raise FormatError(f"{PREFIX}{name} is not an id of ir_datasets; see https://ir-datasets.com") from error
    except (OSError, RuntimeError) as error:
        raise FormatError(f"{PREFIX}{name} cannot be read ({error}); check the network, or ~/.ir_datasets") from error
    return target


def _write_irds(dataset: Any, folder: Path) -> None:  # noqa: ANN401 - ir_datasets has no types
    """Write corpus, queries, judgments and the split `SPLIT`; queries without a relevant target are left out."""
    folder.mkdir(parents=True, exist_ok=True)
    qrels: dict[str, dict[str, int]] = {}
    for judgment in dataset.qrels_iter():
        qrels.setdefault(judgment.query_id, {})[judgment.doc_id] = judgment.relevance
    kept = {query_id: targets for query_id, targets in qrels.items() if any(value > 0 for value in targets.values())}
    rows = [f"{query_id}\t{doc_id}\t{value}\n" for query_id in kept for doc_id, value in kept[query_id].items()]
    (folder / "qrels.tsv").write_text("query_id\tdoc_id\trelevance\n" + "".join(rows), "utf-8")
    (folder / "splits.json").write_text(json.dumps({SPLIT: list(kept)}, indent=1) + "\n", "utf-8")
    write_json_lines(folder / "queries.jsonl.gz", (_line(query, query.query_id) for query in dataset.queries_iter()))
    write_json_lines(folder / "corpus.jsonl.gz", (_line(document, document.doc_id) for document in dataset.docs_iter()))


def _line(text: Any, own_id: str) -> Mapping[str, object]:  # noqa: ANN401
    """One line of a corpus; a text with a field `text` does not repeat the title."""
    body = getattr(text, "text", None)
    section = {"heading": "", "text": body if isinstance(body, str) else text.default_text().strip()}
    return {"id": own_id, "title": str(getattr(text, "title", "") or ""), "sections": [section], "meta": {}}
