"""Measures how many documents a reference needs: in corpora of one kind, and in one index that holds them all.

Every query is compared with all documents once. A reference is some of these documents, so the scores under every
size and m come from the same similarities.

Letters in shapes: I query chunks, N documents, R documents of a sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.behaviour.recorded import is_indexed
from benchmarks.behaviour.records import SampleRecord, SampleRow
from benchmarks.datasets import Qrels, checksum, read_qrels, read_queries
from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.metrics import evaluate
from benchmarks.options import log
from benchmarks.prepare import prepared_index
from benchmarks.program import program
from benchmarks.significance import randomization_p
from engine.encoders.encoder import Vectors
from engine.encoders.files import BUNDLED_NAME
from engine.index import Index
from engine.scoring.evidence import Components, Scoring, chunk_component, combine, margin, thresholds
from engine.scoring.evidence import reference_threshold as threshold
from engine.scoring.similarity import best_chunks
from engine.search.query import Prepared, Query, as_stored
from engine.store.reference import sample_order
from engine.text.document import Document
from engine.words.counts import WordTables, counted
from engine.words.likelihood import query_terms, scores
from engine.words.statistics import Statistics, TermStatistics
from engine.words.titles import title_span

SIZES = ((100, 2), (200, 4), (400, 2), (400, 4), (400, 8), (400, 20), (800, 4), (800, 8), (800, 16))
LARGER = ((1_600, 4), (1_600, 8), (1_600, 32), (3_200, 8), (3_200, 16))
DEPTH = 100
DEFAULT = (400, 8)  # the product's: documents of the sample, and m
_NOTE = (
    "nDCG@10 of the evidence score on {split} queries ({counts}).{mixed} m: documents of the sample above a threshold. "
    "p: paired randomisation test over all queries against {default[0]} documents and m = {default[1]} in the same "
    "index, not adjusted."
)
_MIXED_NOTE = (
    " Alone: each corpus in its own index. Mixed: one index of all {n_documents:,} documents, with one reference drawn "
    "from all of them."
)
_BLOCK = 512  # documents compared at a time


@dataclass(frozen=True)
class Corpus:
    """An index with all vectors, its queries and their judgments, and its term counts in memory."""

    name: str
    index: Index
    queries: list[Document]
    qrels: Qrels
    words: WordTables


@dataclass(frozen=True)
class Universe:
    """The documents that are searched: of one corpus, or of several."""

    corpora: Sequence[Corpus]
    names: list[tuple[str, str]]  # (N,) corpus and doc_id
    order: NDArray[np.int64]  # (N,) documents in the order of the draw
    statistics: Statistics

    @classmethod
    def of(cls, corpora: Sequence[Corpus]) -> Universe:
        """Join corpora; their statistics of words are added up."""
        names = [(one.name, doc_id) for one in corpora for doc_id in one.index.snapshot.doc_ids()]
        parts = [one.index.snapshot.reference.statistics for one in corpora]
        statistics = Statistics(_sum([part.words for part in parts]), _sum([part.pairs for part in parts]))
        return cls(corpora, names, sample_order([f"{corpus}/{name}" for corpus, name in names]), statistics)


@dataclass(frozen=True)
class Compared:
    """A query, compared with all documents of a universe."""

    prepared: Prepared
    chunks: Vectors  # (I, N) best matches
    documents: Vectors  # (N,) cosines of document vectors
    words: NDArray[np.float64]  # (N,) components that do not depend on the sample
    pairs: NDArray[np.float64]


def _sum(parts: Sequence[TermStatistics]) -> TermStatistics:
    """The counts of several corpora."""
    terms, places = np.unique(np.concatenate([part.terms for part in parts]), return_inverse=True)
    counts = np.bincount(places, np.concatenate([part.counts for part in parts]).astype(np.float64))
    return TermStatistics(terms, counts.astype(np.uint32), sum(part.total for part in parts))


def compare(universe: Universe, home: Corpus, query: Document, scoring: Scoring) -> Compared:
    """Compare a query of one of the corpora with all documents."""
    index = home.index
    if is_indexed(index, query):
        encoded = index.stored_query(query.doc_id)
    else:
        encoded = Query(query, as_stored(index.encoder.encode([query])[0]))
    prepared = index.searcher(scoring).prepare(encoded)
    chunks, documents, words, pairs = [], [], [], []
    tables = counted([prepared.text.terms], [title_span(query)])
    word_terms = query_terms(tables.words, universe.statistics.words)
    pair_terms = query_terms(tables.pairs, universe.statistics.pairs)
    for corpus in universe.corpora:
        snapshot = corpus.index.snapshot
        for first in range(0, snapshot.n_documents, _BLOCK):
            block = np.arange(first, min(first + _BLOCK, snapshot.n_documents))
            chunks.append(best_chunks(prepared.vectors.chunks, *snapshot.chunk_vectors(block)))
        documents.append(snapshot.document_vectors @ prepared.vectors.document)
        words.append(scores(word_terms, corpus.words.words))
        pairs.append(scores(pair_terms, corpus.words.pairs))
    joined = (np.concatenate(parts) for parts in (documents, words, pairs))
    return Compared(prepared, np.concatenate(chunks, axis=1), *joined)


def rank(
    universe: Universe, home: Corpus, query: Document, found: Compared, sample: NDArray[np.int64], exceeding: int
) -> list[str]:
    """The best documents by the whole score, with thresholds from a sample; those of other corpora get a prefix.

    The query's own document in the corpus `home` is left out of the sample (R,) and the ranking; `exceeding` is m.
    """
    scoring = Scoring()
    own = universe.names.index((home.name, query.doc_id)) if (home.name, query.doc_id) in universe.names else -1
    others = sample[sample != own]
    limits = thresholds(
        threshold(found.chunks[:, others], exceeding),
        float(threshold(found.documents[None, others], exceeding)[0]),
        found.prepared.chunk_weights,
        scoring,
    )
    components = Components(
        chunk_component(found.chunks, limits, scoring),
        margin(found.documents, limits.document, scoring.power),
        found.words,
        found.pairs,
    )
    total = combine(components, scoring.weights(), scoring.root)
    best = [number for number in np.argsort(-total, kind="stable")[: DEPTH + 1].tolist() if number != own]
    return [
        doc_id if corpus == home.name else f"{corpus}/{doc_id}"
        for corpus, doc_id in (universe.names[number] for number in best[:DEPTH])
    ]


def rows_of(universe: Universe, home: Corpus, sizes: Sequence[tuple[int, int]]) -> Iterator[SampleRow]:
    """The rows of the queries of one corpus."""
    fitting = [(size, m) for size, m in sizes if size < len(universe.names)]
    runs: dict[tuple[int, int], dict[str, list[str]]] = {size: {} for size in fitting}
    for query in home.queries:
        found = compare(universe, home, query, Scoring())
        for n_sample, exceeding in fitting:
            ranking = rank(universe, home, query, found, universe.order[:n_sample], exceeding)
            runs[n_sample, exceeding][query.doc_id] = ranking
    for (n_sample, exceeding), run in runs.items():
        values = evaluate(home.qrels, run, depth=DEPTH)["nDCG@10"]
        per_query = [round(value, 4) for value in values.values()]
        yield SampleRow(home.name, len(universe.corpora) > 1, n_sample, exceeding, per_query)


def samples_table(records: Sequence[SampleRecord]) -> str:
    """A row for each size and m, a column for each corpus alone and, if there are several, in the mixed index."""
    return "\n\n".join(_one(record) for record in records)


def _one(record: SampleRecord) -> str:
    n_queries = {row.corpus: len(row.per_query) for row in record.rows}
    found = {(row.n_sample, row.exceeding, row.is_mixed, row.corpus): row.per_query for row in record.rows}
    several = len(n_queries) > 1
    ways = {False: ", alone", True: ", mixed"} if several else {False: ""}
    head = ["Documents, m", *(f"{corpus}{way}" for way in ways.values() for corpus in n_queries)]
    head += [f"{what}{way}" for way in ways.values() for what in (("mean", "p") if several else ("p",))]
    rows = []
    for size in sorted({(row.n_sample, row.exceeding) for row in record.rows}):
        figures, sums = list[str](), list[str]()
        for is_mixed in ways:
            own, default = (
                [found.get((*one, is_mixed, corpus), []) for corpus in n_queries] for one in (size, DEFAULT)
            )
            figures += [f"{np.mean(values):.3f}" if values else "" for values in own]
            mean, p = _summary(own, [] if size == DEFAULT else default, record.origin.seed)
            sums += [mean, p] if several else [p]
        rows.append([f"{size[0]:,}, {size[1]}", *figures, *sums])
    counts = ", ".join(f"{corpus} {n}" for corpus, n in n_queries.items())
    mixed = _MIXED_NOTE.format(n_documents=record.n_documents) if several else ""
    note = _NOTE.format(split=record.split, counts=counts, mixed=mixed, default=DEFAULT)
    return "\n".join([*markdown(head, rows), "", note, "", *origins([record])])


def _summary(own: Sequence[Sequence[float]], default: Sequence[Sequence[float]], seed: int) -> tuple[str, str]:
    """The mean over corpora, and p over all queries; "" where a corpus is too small for the sample."""
    if not all(own):
        return "", ""
    mean = f"{np.mean([np.mean(values) for values in own]):.3f}"
    if not default or not all(default):
        return mean, ""
    return mean, p_cells([randomization_p(np.concatenate(own), np.concatenate(default), seed=seed)])[0]


@program
@click.argument("names", nargs=-1, required=True, metavar="DATASET...")
@click.option("--encoder", default=BUNDLED_NAME, help="Encoder of the indexes.")
@click.option("--split", default="valid", help="Split to search with.")
@click.option("--queries", "n_queries", type=click.IntRange(1), help="First queries of each corpus; all by default.")
@measurement(
    seed="Seed of the table's tests, and of --quick.", quick="A small seeded part of each DATASET", encodes=True
)
def main(run: Measurement, names: tuple[str, ...], encoder: str, split: str, n_queries: int | None) -> None:
    """Measure nDCG@10 by the size of the reference, in each DATASET alone and in all of them as one index.

    \b
    Example:
        python -m benchmarks study sample_sizes proposals clscisumm --split valid
    """
    with ExitStack() as stack:
        corpora, labels = [], []
        for dataset in [run.dataset(name, split) for name in names]:
            qrels = dict(islice(read_qrels(dataset, split).items(), n_queries))
            queries = list(read_queries(dataset, qrels).values())
            ready = stack.enter_context(prepared_index(dataset, encoder, run.work, log))
            words = ready.index.snapshot.words(np.arange(ready.index.snapshot.n_documents))
            labels.append(f"{dataset.name}@{checksum(dataset)}")
            corpora.append(Corpus(dataset.name, ready.index, queries, qrels, words))
        rows = [row for corpus in corpora for row in rows_of(Universe.of([corpus]), corpus, SIZES)]
        mixed = Universe.of(corpora)
        for corpus in corpora if len(corpora) > 1 else []:
            log(f"{corpus.name} in {len(mixed.names):,} documents of {len(corpora)} corpora")
            rows += rows_of(mixed, corpus, (*SIZES, *LARGER))
        record = SampleRecord(
            datasets=labels,
            encoder=ready.encoder,
            split=split,
            n_documents=len(mixed.names),
            rows=rows,
            seconds=run.seconds,
            origin=run.origin,
        )
    run.publish([record], samples_table)
