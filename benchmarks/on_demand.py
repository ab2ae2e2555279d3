"""Measures encoding on demand: quality and encoded tokens, by the number of candidates and of queries asked."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np

from benchmarks.baselines.pretrained import load_given
from benchmarks.datasets import (
    Dataset,
    DatasetError,
    Qrels,
    checksum,
    open_dataset,
    read_documents,
    read_qrels,
    read_queries,
)
from benchmarks.demand.record import DemandRecord, DemandRow
from benchmarks.demand.recorded import RecordedEncoder
from benchmarks.demand.table import demand_table
from benchmarks.metrics import evaluate, means
from benchmarks.options import data_option, log, work_option
from benchmarks.prepare import label_of, prepared_index
from benchmarks.program import origin_of, program
from benchmarks.quick import quick_part
from benchmarks.record_file import RESULTS, write_record
from engine.document import Document
from engine.encoders.backbone.weights import BUNDLED_NAME
from engine.encoders.encoder import Encoder
from engine.errors import EngineError
from engine.index import Index
from engine.result import Hit
from engine.scoring.evidence import Scoring
from engine.search.allowance import Allowance
from indexer.building.builder import EncodeNow, build

CANDIDATES = (20, 50, 200)
FEWEST = CANDIDATES[0]  # the candidates of a run that encodes
DEPTH = 100  # of rankings
_DEEPER = 300  # hits that other rules order
_MARKS = (1, 10, 100)  # queries after which tokens are counted, and after all


@dataclass(frozen=True)
class Asked:
    """What every way is asked alike."""

    queries: list[Document]
    qrels: Qrels


@contextmanager
def later_index(full: Index, documents: Sequence[Document], encode: EncodeNow) -> Iterator[Index]:
    """An index of documents as `encode` leaves it, whose vectors are looked up in the full one."""
    with _index_for_once(documents, RecordedEncoder(full), encode) as index:
        yield index


@contextmanager
def _index_for_once(documents: Sequence[Document], encoder: Encoder | None, encode: EncodeNow) -> Iterator[Index]:
    folder = Path(tempfile.mkdtemp(prefix="longmatch-"))
    try:
        build(folder / "x.lm", documents, encoder=encoder, encode=encode)
        with Index.open(folder / "x.lm", encoder=encoder, store=False) as index:
            yield index
    finally:
        shutil.rmtree(folder)


@dataclass(frozen=True)
class Measured:
    """All ways of one corpus."""

    rows: list[DemandRow]
    encoder: str  # name@fingerprint
    n_documents: int
    n_tokens: int  # of all documents
    sample: tuple[int, int]  # tokens and documents that are encoded before the first query


def looked_up(dataset: Dataset, encoder: str, work: Path, documents: Sequence[Document], asked: Asked) -> Measured:
    """Measure all numbers of candidates; vectors come from an index that has all, which is built where it is missing.

    Args:
        dataset: of the documents.
        encoder: its name.
        work: folder of the index that has all vectors.
        documents: of the dataset.
        asked: the queries.
    """
    with prepared_index(dataset, encoder, work, log=log) as ready:
        full = ready.index
        with later_index(full, documents, "none") as words:
            rows = [measure(words, asked, "words", None)]
        for candidates in CANDIDATES:
            log(f"{dataset.name}: {candidates} candidates")
            with later_index(full, documents, "later") as later:
                sample = encoded_so_far(later)
                rows.append(measure(later, asked, f"{candidates} candidates", candidates))
        rows.append(measure(full, asked, "all", None))
        return Measured(rows, ready.encoder, full.n_documents, int(full.snapshot.tokens.sum()), sample)


def encoded(label: str, encoder_name: str, work: Path, documents: Sequence[Document], asked: Asked) -> Measured:
    """Measure words, and `FEWEST` candidates that are encoded; vectors stay in an index of the work folder.

    Where that index is there already, tokens are counted after the last query only.

    Args:
        label: of documents and queries; another one for others.
        encoder_name: as `load_given` takes it.
        work: folder of the index; made where it is missing.
        documents: of the corpus.
        asked: the queries.

    Raises:
        DatasetError: a document could not be indexed.
    """
    encoder = load_given(encoder_name)
    named = label_of(encoder_name, encoder.fingerprint)
    with _index_for_once(documents, None, "none") as words:
        rows = [measure(words, asked, "words", None)]
    work.mkdir(parents=True, exist_ok=True)
    path = work / f"{label}-later-{named}.lm"
    is_resumed = path.exists()
    report = build(path, documents, encoder=encoder, encode="later")
    if report.failures:
        first = report.failures[0]
        raise DatasetError(
            f"{len(report.failures)} documents were not indexed, the first is {first.doc_id!r}: {first.reason}; "
            "mend them, or leave them out of the corpus"
        )
    with Index.open(path, encoder=encoder, log=log) as index:
        sample = _sample(index)
        row = measure(index, asked, f"{FEWEST} candidates", FEWEST)
        if is_resumed:
            last = str(len(asked.queries))
            row = replace(row, tokens={last: row.tokens[last]}, documents={last: row.documents[last]})
        return Measured([*rows, row], named, index.n_documents, int(index.snapshot.tokens.sum()), sample)


def measure(index: Index, asked: Asked, way: str, candidates: int | None) -> DemandRow:
    """Search with all queries of an index, one after another; what one encoded stays for the next."""
    run: dict[str, list[str]] = {}
    others: dict[str, dict[str, list[str]]] = {"scaled": {}, "candidates first": {}}
    tokens: dict[str, int] = {}
    documents: dict[str, int] = {}
    is_partial = candidates is not None
    marks = [mark for mark in _MARKS if mark < len(asked.queries)]
    for number, query in enumerate(asked.queries, start=1):
        hits = _hits(index, query, _DEEPER if is_partial else DEPTH, Allowance(candidates or 0))
        run[query.doc_id] = [hit.doc_id for hit in hits[:DEPTH]]
        if is_partial:
            others["scaled"][query.doc_id] = [hit.doc_id for hit in scaled(hits)[:DEPTH]]
            others["candidates first"][query.doc_id] = [hit.doc_id for hit in candidates_first(hits)[:DEPTH]]
        if number in marks or number == len(asked.queries):
            tokens[str(number)], documents[str(number)] = encoded_so_far(index)
    values = evaluate(asked.qrels, run, depth=DEPTH)
    return DemandRow(
        way=way,
        candidates=candidates,
        metrics=_rounded(asked.qrels, run),
        other_rules={rule: _rounded(asked.qrels, other) for rule, other in others.items() if other},
        per_query=[round(value, 4) for value in values["nDCG@10"].values()],
        tokens=tokens,
        documents=documents,
    )


def scaled(hits: Sequence[Hit]) -> list[Hit]:
    """Hits in the order of another rule: a document without vectors has its words counted as the whole score."""
    words = Scoring().weights(vectors=True)
    share = words["words"] + words["pairs"]
    return sorted(hits, key=lambda hit: (-hit.score / (1 if hit.has_vectors else share), hit.doc_id))


def candidates_first(hits: Sequence[Hit]) -> list[Hit]:
    """Hits in the order of another rule: documents with vectors before all others."""
    return sorted(hits, key=lambda hit: (not hit.has_vectors, -hit.score, hit.doc_id))


def _hits(index: Index, query: Document, k: int, allowance: Allowance) -> list[Hit]:
    try:
        is_indexed = index.document(query.doc_id).text == query.text
    except EngineError:
        is_indexed = False
    if is_indexed:
        found = index.search_id(query.doc_id, k=k, allowance=allowance)
    else:
        found = index.search(query, k=k + 1, allowance=allowance)
    return [hit for hit in found.hits if hit.doc_id != query.doc_id][:k]


def encoded_so_far(index: Index) -> tuple[int, int]:
    """Tokens and documents with vectors."""
    snapshot = index.snapshot
    with_vectors = snapshot.has_vectors
    return int(snapshot.tokens[with_vectors].sum()), int(with_vectors.sum())


def _sample(index: Index) -> tuple[int, int]:
    """Tokens and documents of the reference, which are encoded before the first query."""
    snapshot = index.snapshot
    in_sample = np.isin(snapshot.content_keys(np.arange(snapshot.n_documents)), snapshot.reference.hashes)
    return int(snapshot.tokens[in_sample].sum()), int(in_sample.sum())


def _rounded(qrels: Qrels, run: dict[str, list[str]]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in means(evaluate(qrels, run, depth=DEPTH)).items()}


def _asked(dataset: Dataset, split: str, seed: int, n_queries: int | None) -> Asked:
    """The queries of a split in the order of the seed, or the first of them."""
    qrels = dict(read_qrels(dataset, split))
    queries = list(read_queries(dataset, qrels).values())
    random.Random(seed).shuffle(queries)
    return Asked(queries[:n_queries], {query.doc_id: qrels[query.doc_id] for query in queries[:n_queries]})


@program
@click.argument("name", metavar="DATASET")
@click.option("--encoder", default=BUNDLED_NAME, show_default=True, help="Of the index.")
@click.option("--split", default="test", show_default=True, help="Whose queries are asked.")
@click.option(
    "--queries",
    "n_queries",
    type=click.IntRange(1),
    help=f"Search with the first of them only, and encode {FEWEST} candidates of each in an index without vectors.",
)
@click.option("--quick", is_flag=True, help="A small seeded part of DATASET; a record only where --out is given.")
@click.option("--seed", default=0, show_default=True, help="Of the order of queries, and of --quick.")
@data_option
@work_option
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the record; with --quick none.")
@click.pass_context
def main(
    context: click.Context,
    name: str,
    encoder: str,
    split: str,
    n_queries: int | None,
    quick: bool,
    seed: int,
    data: Path,
    work: Path,
    out: Path | None,
) -> None:
    """Measure encoding on demand on DATASET; vectors are looked up in an index that has all.

    With --queries nothing is looked up: an index of the work folder encodes the candidates of each query, and keeps
    their vectors, so that an interrupted run goes on. It needs a small part of the time of encoding all documents.

    \b
    Example:
        python -m benchmarks study on_demand proposals
        python -m benchmarks study on_demand rfc --encoder all-MiniLM-L6-v2 --queries 60
    """
    origin = origin_of(context, seed)
    folder = out or (None if quick else RESULTS)
    started = time.perf_counter()
    dataset = open_dataset(name, data)
    dataset = quick_part(dataset, split, work / "quick", seed=seed) if quick else dataset
    asked = _asked(dataset, split, seed, n_queries)
    documents = list(read_documents(dataset))
    if n_queries is None:
        found = looked_up(dataset, encoder, work, documents, asked)
    else:
        label = f"{dataset.name}@{checksum(dataset)}-seed{seed}-first{n_queries}"
        found = encoded(label, encoder, work, documents, asked)
    record = DemandRecord(
        task=dataset.name,
        dataset=f"{dataset.name}@{checksum(dataset)}",
        encoder=found.encoder,
        split=split,
        n_queries=len(asked.queries),
        n_documents=found.n_documents,
        n_tokens=found.n_tokens,
        sample_documents=found.sample[1],
        sample_tokens=found.sample[0],
        rows=found.rows,
        seconds=round(time.perf_counter() - started, 1),
        origin=origin,
        is_encoded=n_queries is not None,
    )
    if folder is not None:
        write_record(record, folder)
    click.echo(demand_table([record]))
