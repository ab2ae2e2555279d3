"""Parts: a small seeded part of a dataset, and the title, the lead or the first words of a document.

A part of a dataset is a dataset of its own, for `--quick`, and for programs that are too slow for the whole. A
measurement of a quick part takes a minute or two; it shows that the programs work, and nothing about the systems."""

from __future__ import annotations

import hashlib
import heapq
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.datasets import (
    QUERIES,
    Dataset,
    DatasetError,
    Qrels,
    checksum,
    open_dataset,
    read_documents,
    read_qrels,
    read_queries,
)
from benchmarks.formats.trec import write_json_lines
from engine.text.document import Document
from engine.text.segmentation import Section, divide

WHOLE = "whole"
LEAD_WORDS = 200  # about an abstract
PARTS = (WHOLE, "title", "lead")
_WORD = re.compile(r"\S+")


def part_of(document: Document, part: str) -> Document:
    """A query of a part of a document: its title, its first `LEAD_WORDS` words, or the whole.

    A document without a title is searched with its first ten words.
    """
    if part == WHOLE:
        return document
    if part == "lead":
        return first_words(document, LEAD_WORDS)
    text = document.title.strip() or first_words(document, 10).text
    return replace(document, text=text, sections=divide(text), pages=(), pins=())


def first_words(document: Document, n_words: int) -> Document:
    """The document up to the end of its n-th word, `n_words` at least 1; the whole document where it is not longer.

    A word is a run of characters that are not space. Sections that begin later are
    dropped, and the one in which the cut falls ends there.
    """
    last = next(islice(_WORD.finditer(document.text), n_words - 1, None), None)
    if last is None or not document.text[last.end() :].strip():
        return document
    stop = last.end()
    sections = tuple(
        replace(section, stop=min(section.stop, stop)) for section in document.sections if section.start < stop
    )
    pages = tuple(page for page in document.pages if page < stop)
    return replace(document, text=document.text[:stop], sections=sections, pages=pages, pins=())


SUFFIX = "_quick"  # of the part's name, and so of the names of its records


@dataclass(frozen=True)
class Size:
    """How much of a dataset is kept."""

    n_queries: int = 20
    n_targets: int = 5  # relevant targets of a query
    n_documents: int = 300  # queries and targets included
    n_words: int | None = 300  # first words of a document, title and headings included; None for all


def quick_part(
    dataset: Dataset, split: str, folder: Path, *, seed: int, size: Size | None = None, suffix: str = SUFFIX
) -> Dataset:
    """Write some queries of a split, some of their relevant targets, and documents that are neither.

    Queries, targets and the others are those whose ids have the lowest hashes, so
    the same seed gives the same part, whatever the order of the files. Judgments of
    documents that are not kept are left out, and judgments of 0 and below.
    """
    size = size or Size()
    place = _hash_order(seed)
    corpus = {document.doc_id for document in read_documents(dataset)}
    qrels = _chosen_qrels(read_qrels(dataset, split), corpus, place, size)
    if not qrels:
        raise DatasetError(
            f"dataset {dataset.name}: no query of split {split!r} has a relevant target in its corpus; "
            "name another split: --split"
        )
    queries = read_queries(dataset, qrels)
    needed = {doc_id for targets in qrels.values() for doc_id in targets} | (qrels.keys() & corpus)
    kept = set(heapq.nsmallest(size.n_documents, corpus, key=lambda doc_id: (doc_id not in needed, place(doc_id))))
    path = folder / f"{checksum(dataset)}-{split}-seed{seed}" / f"{dataset.name}{suffix}"
    path.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder) as name:
        made = Path(name)
        documents = (document for document in read_documents(dataset) if document.doc_id in kept)
        write_json_lines(made / "corpus.jsonl.gz", (_line(document, size.n_words) for document in documents))
        if dataset.queries:
            write_json_lines(made / QUERIES, (_line(query, size.n_words) for query in queries.values()))
        rows = [f"{query_id}\t{doc_id}\t{qrels[query_id][doc_id]}" for query_id in qrels for doc_id in qrels[query_id]]
        (made / "qrels.tsv").write_text("\n".join(["query_id\tdoc_id\trelevance", *rows]) + "\n", "utf-8")
        (made / "splits.json").write_text(json.dumps({split: list(qrels)}), "utf-8")
        for file in made.iterdir():  # another process may read the same part, so no file is written in place
            file.replace(path / file.name)
    return open_dataset(str(path))


_PART_TARGETS = 5  # relevant targets of a query in a part of whole documents


def sized_part(
    dataset: Dataset,
    split: str,
    folder: Path,
    n_documents: int,
    *,
    seed: int,
    n_queries: int | None = None,
    n_words: int | None = None,
) -> Dataset:
    """A part with a given number of documents, and by default a tenth as many queries, named by its size.

    See `quick_part`.
    """
    n_queries = n_documents // 10 if n_queries is None else n_queries
    size = Size(n_queries=n_queries, n_targets=_PART_TARGETS, n_documents=n_documents, n_words=n_words)
    suffix = f"_{n_documents}documents" + (f"_{n_words}words" if n_words else "")
    return quick_part(dataset, split, folder, seed=seed, size=size, suffix=suffix)


def _hash_order(seed: int) -> Callable[[str], bytes]:
    return lambda doc_id: hashlib.sha256(f"{seed} {doc_id}".encode()).digest()


def _chosen_qrels(qrels: Qrels, corpus: set[str], place: Callable[[str], bytes], size: Size) -> Qrels:
    findable = {
        query_id: [doc_id for doc_id, rel in targets.items() if rel > 0 and doc_id in corpus and doc_id != query_id]
        for query_id, targets in qrels.items()
    }
    chosen = set(heapq.nsmallest(size.n_queries, (query_id for query_id in qrels if findable[query_id]), key=place))
    return {
        query_id: {doc_id: targets[doc_id] for doc_id in heapq.nsmallest(size.n_targets, findable[query_id], key=place)}
        for query_id, targets in qrels.items()
        if query_id in chosen
    }


def _line(document: Document, n_words: int | None) -> Mapping[str, object]:
    """The first words of a document, or all, as a line of a corpus; sections without a text are left out."""
    document = document if n_words is None else first_words(document, n_words)
    title = document.title if document.text.startswith(document.title) else ""
    parted = (_parted(document, section, title) for section in document.sections)
    sections = [{"heading": heading, "text": body} for heading, body in parted if body]
    return {"id": document.doc_id, "title": title, "sections": sections}


def _parted(document: Document, section: Section, title: str) -> tuple[str, str]:
    """Heading and text of a section; sections that were joined keep their headings in the text."""
    text = document.text[section.start : section.stop]
    text = (text.removeprefix(title) if section.start == 0 else text).strip()
    if section.heading and text.startswith(section.heading):
        return section.heading, text.removeprefix(section.heading).strip()
    return "", text


def sample_documents(documents: Iterable[Document], n: int, seed: int) -> list[Document]:
    """Draw at most `n` documents from a stream, each as likely as any other, in the order of the stream.

    Algorithm R of Vitter (1985): the i-th document takes the place of a random kept one with probability n / i. No more
    than `n` are in memory.
    """
    rng = np.random.default_rng(seed)
    kept: list[tuple[int, Document]] = []
    for number, document in enumerate(documents):
        if number < n:
            kept.append((number, document))
        elif (place := int(rng.integers(number + 1))) < n:
            kept[place] = (number, document)
    return [document for _, document in sorted(kept, key=lambda numbered: numbered[0])]
