"""Measures encoding on demand: quality and encoded tokens, by the number of candidates and of queries."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np

from benchmarks.baselines.pretrained import load_given
from benchmarks.datasets import Dataset, DatasetError, Qrels, checksum, read_documents, read_qrels, read_queries
from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.metrics import evaluate, means
from benchmarks.options import log
from benchmarks.prepare import label_of, prepared_index
from benchmarks.program import program
from benchmarks.record_file import Recorded
from benchmarks.significance import randomization_p
from engine.encoders.encoder import EncodedDocument, Encoder, SegmentedDocument
from engine.encoders.files import BUNDLED_NAME
from engine.errors import EngineError
from engine.index import Index
from engine.scoring.evidence import Scoring
from engine.search.request import Request
from engine.text.document import Document
from engine.views import Hit
from indexer.building.builder import EncodeNow, build
from indexer.origin import Origin

CANDIDATES = (20, 50, 200)
FEWEST = CANDIDATES[0]  # number of candidates of a run that encodes
DEPTH = 100  # of rankings
_DEEPER = 300  # hits that other rules order
_MARKS = (1, 10, 100)  # tokens are counted after these numbers of queries, and after all queries
_RULES = ("scaled", "candidates first")
_QUERIES_HELP = (
    f"Search with the first of them only, and encode {FEWEST} candidates of each in an index without vectors."
)
_NOTE = (
    "p: paired randomisation test of nDCG@10 against all documents encoded, or against words where not all documents "
    "were encoded, adjusted by Holm's method within a corpus. The encoder is named if it is not the bundled one. "
    "Tokens: share of all tokens that were encoded after 1, 10, 100 and all queries, including the sample for "
    "thresholds. Scaled, candidates first: nDCG@10 and Recall@100 of the same hits ranked by two other rules, which "
    "the text explains."
)


@dataclass(frozen=True)
class DemandRow:
    """One number of candidates, over all queries one after another."""

    way: str  # "words", "N candidates" or "all"
    candidates: int | None  # None where none were encoded for queries
    metrics: dict[str, float]  # means of the product's rule, in [0, 1]
    other_rules: dict[str, dict[str, float]]  # means by rule, of the same hits in another order
    per_query: list[float]  # nDCG@10 of the product's rule
    tokens: dict[str, int]  # tokens encoded so far, the sample included, by number of queries
    documents: dict[str, int]  # documents that have vectors, by number of queries


@dataclass(frozen=True)
class DemandRecord(Recorded, kind="demand"):
    """Quality and cost by the number of candidates."""

    task: str
    dataset: str  # name@checksum
    encoder: str  # name@fingerprint
    split: str
    n_queries: int
    n_documents: int
    n_tokens: int  # of all documents
    sample_documents: int  # encoded before the first query
    sample_tokens: int
    rows: list[DemandRow]
    seconds: float
    origin: Origin
    is_encoded: bool = False  # candidates of the first queries were encoded; else vectors were looked up

    @property
    def name(self) -> str:
        """The name of the file, without suffix."""
        first = f"-{self.encoder.partition('@')[0]}-first{self.n_queries}" if self.is_encoded else ""
        return f"demand-{self.task}-{self.split}{first}"


def is_indexed(index: Index, document: Document) -> bool:
    """Whether an index holds a document with this doc_id and text."""
    try:
        return index.document(document.doc_id).text == document.text
    except EngineError:
        return False


class RecordedEncoder(Encoder):
    """Returns the stored vectors of documents by doc_id; other documents go to the encoder of the first index.

    The indexes have all vectors, and stay open.
    """

    def __init__(self, *indexes: Index) -> None:
        self.encoder = indexes[0].encoder
        self.homes = {name: index for index in indexes for name in index.snapshot.doc_ids()}
        self.name, self.width = self.encoder.name, self.encoder.width

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the encoder that made the vectors."""
        return self.encoder.fingerprint

    def save_pretrained(self, folder: Path) -> None:
        """Save the encoder that made the vectors."""
        self.encoder.save_pretrained(folder)

    def recorded(self, document: Document) -> EncodedDocument | None:
        """The stored vectors; None where there are none of this text."""
        home = self.homes.get(document.doc_id)
        return home.stored_query(document.doc_id).vectors if home and is_indexed(home, document) else None

    def segment(self, document: Document) -> SegmentedDocument:
        """Segment a document; a recorded one gets no token ids, since nothing reads them."""
        vectors = self.recorded(document)
        if vectors is None:
            return self.encoder.segment(document)
        return SegmentedDocument(document, vectors.chunk_spans, (), vectors.coverage)

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        """Look the vectors of each document up, or encode it."""
        found = ((one, None if one.token_ids else self.recorded(one.document)) for one in documents)
        return [vectors or self.encoder.encode_segmented([one])[0] for one, vectors in found]


@dataclass(frozen=True)
class Judged:
    """The queries, the same for every way, and their judgments."""

    queries: list[Document]
    qrels: Qrels


@dataclass(frozen=True)
class Measured:
    """The results of all ways on one corpus."""

    rows: list[DemandRow]
    encoder: str  # name@fingerprint
    n_documents: int
    n_tokens: int  # of all documents
    sample: tuple[int, int]  # tokens and documents that are encoded before the first query


@contextmanager
def index_for_once(documents: Sequence[Document], encoder: Encoder | None, encode: EncodeNow) -> Iterator[Index]:
    """An index of documents as `encode` leaves it, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="longmatch-") as place:
        build(Path(place) / "x.lm", documents, encoder=encoder, encode=encode)
        with Index.open(Path(place) / "x.lm", encoder=encoder, store=False) as index:
            yield index


def looked_up(dataset: Dataset, encoder: str, work: Path, documents: Sequence[Document], judged: Judged) -> Measured:
    """Measure all numbers of candidates; vectors come from an index in `work` with all of them, built if missing."""
    with prepared_index(dataset, encoder, work, log=log) as ready:
        full = ready.index
        recorded = RecordedEncoder(full)
        with index_for_once(documents, recorded, "none") as words:
            rows = [measure(words, judged, "words", None)]
        for candidates in CANDIDATES:
            log(f"{dataset.name}: {candidates} candidates")
            with index_for_once(documents, recorded, "later") as later:
                sample = encoded_so_far(later)
                rows.append(measure(later, judged, f"{candidates} candidates", candidates))
        rows.append(measure(full, judged, "all", None))
        return Measured(rows, ready.encoder, full.n_documents, int(full.snapshot.tokens.sum()), sample)


def encoded(label: str, encoder_name: str, work: Path, documents: Sequence[Document], judged: Judged) -> Measured:
    """Measure words, and `FEWEST` candidates that are encoded; vectors stay in an index of the work folder.

    Where that index is there already, tokens are counted after the last query only. Other documents or queries need
    another label.

    Raises:
        DatasetError: a document could not be indexed.
    """
    encoder = load_given(encoder_name)
    named = label_of(encoder_name, encoder.fingerprint)
    with index_for_once(documents, None, "none") as words:
        rows = [measure(words, judged, "words", None)]
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
        row = measure(index, judged, f"{FEWEST} candidates", FEWEST)
        if is_resumed:
            last = str(len(judged.queries))
            row = replace(row, tokens={last: row.tokens[last]}, documents={last: row.documents[last]})
        return Measured([*rows, row], named, index.n_documents, int(index.snapshot.tokens.sum()), sample)


def measure(index: Index, judged: Judged, way: str, candidates: int | None) -> DemandRow:
    """Search an index with all queries, one after another; vectors encoded for a query stay for the next ones."""
    runs: dict[str, dict[str, list[str]]] = {rule: {} for rule in ("", *(_RULES if candidates is not None else ()))}
    tokens, documents = dict[str, int](), dict[str, int]()
    for number, query in enumerate(judged.queries, start=1):
        hits = _hits(index, query, DEPTH if candidates is None else _DEEPER, candidates or 0)
        orders = {"": hits, "scaled": scaled(hits), "candidates first": candidates_first(hits)}
        for rule, run in runs.items():
            run[query.doc_id] = [hit.doc_id for hit in orders[rule][:DEPTH]]
        if number in (*_MARKS, len(judged.queries)):
            tokens[str(number)], documents[str(number)] = encoded_so_far(index)
    values = {rule: evaluate(judged.qrels, run, depth=DEPTH) for rule, run in runs.items()}
    rounded = {rule: {name: round(mean, 4) for name, mean in means(found).items()} for rule, found in values.items()}
    return DemandRow(
        way=way,
        candidates=candidates,
        metrics=rounded.pop(""),
        other_rules=rounded,
        per_query=[round(value, 4) for value in values[""]["nDCG@10"].values()],
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


def _hits(index: Index, query: Document, k: int, candidates: int) -> list[Hit]:
    request = Request(k=k + 1, with_itself=True, candidates=candidates)
    found = index.search(query.doc_id if is_indexed(index, query) else query, request)
    return [hit for hit in found.hits if hit.doc_id != query.doc_id][:k]


def encoded_so_far(index: Index) -> tuple[int, int]:
    """Tokens and documents with vectors."""
    snapshot = index.snapshot
    return int(snapshot.tokens[snapshot.has_vectors].sum()), int(snapshot.has_vectors.sum())


def _sample(index: Index) -> tuple[int, int]:
    """Tokens and documents of the reference, which are encoded before the first query."""
    snapshot = index.snapshot
    in_sample = np.isin(snapshot.content_keys(np.arange(snapshot.n_documents)), snapshot.reference.hashes)
    return int(snapshot.tokens[in_sample].sum()), int(in_sample.sum())


def _judged(dataset: Dataset, split: str, seed: int, n_queries: int | None) -> Judged:
    """The queries of a split in the order of the seed, or the first of them."""
    qrels = dict(read_qrels(dataset, split))
    queries = list(read_queries(dataset, qrels).values())
    random.Random(seed).shuffle(queries)
    return Judged(queries[:n_queries], {query.doc_id: qrels[query.doc_id] for query in queries[:n_queries]})


def demand_table(records: Sequence[DemandRecord]) -> str:
    """A row for each corpus and number of candidates."""
    head = ["Corpus", "Setting", "nDCG@10", "p", "Recall@100", "Tokens after 1 / 10 / 100 / all"]
    head += [rule.capitalize() for rule in _RULES]
    rows: list[list[str]] = []
    for record in records:
        base = next((row for row in record.rows if row.way == "all"), record.rows[0])
        p_values = [
            None if row is base else randomization_p(row.per_query, base.per_query, seed=record.origin.seed)
            for row in record.rows
        ]
        name = record.encoder.partition("@")[0]
        queries = f"{record.n_queries}{'' if name == BUNDLED_NAME else f', {name}'}"
        for row, p in zip(record.rows, p_cells(p_values), strict=True):
            ndcg, recall = (f"{row.metrics[measure]:.3f}" for measure in ("nDCG@10", "Recall@100"))
            shares = " / ".join(f"{tokens / record.n_tokens:.0%}" for tokens in row.tokens.values())
            others = (_other(row.other_rules.get(rule)) for rule in _RULES)
            rows.append([f"{record.task} ({queries})", row.way, ndcg, p, recall, shares, *others])
    return "\n".join([*markdown(head, rows), "", _NOTE, "", *origins(records)])


def _other(found: dict[str, float] | None) -> str:
    return "" if found is None else f"{found['nDCG@10']:.3f}, {found['Recall@100']:.3f}"


@program
@click.argument("name", metavar="DATASET")
@click.option("--encoder", default=BUNDLED_NAME, help="Encoder of the index.")
@click.option("--split", default="test", help="Split to search with.")
@click.option("--queries", "n_queries", type=click.IntRange(1), help=_QUERIES_HELP)
@measurement(seed="Seed of the order of queries, and of --quick.", quick="A small seeded part of DATASET", encodes=True)
def main(run: Measurement, name: str, encoder: str, split: str, n_queries: int | None) -> None:
    """Measure encoding on demand on DATASET; vectors are looked up in an index that has them all.

    With --queries nothing is looked up: an index of the work folder encodes the candidates of each query, and keeps
    their vectors, so that an interrupted run goes on. It needs a small part of the time of encoding all documents.

    \b
    Example:
        python -m benchmarks study on_demand proposals
        python -m benchmarks study on_demand rfc --encoder all-MiniLM-L6-v2 --queries 60
    """
    dataset = run.dataset(name, split)
    judged = _judged(dataset, split, run.seed, n_queries)
    documents = list(read_documents(dataset))
    label = f"{dataset.name}@{checksum(dataset)}"
    if n_queries is None:
        found = looked_up(dataset, encoder, run.work, documents, judged)
    else:
        found = encoded(f"{label}-seed{run.seed}-first{n_queries}", encoder, run.work, documents, judged)
    record = DemandRecord(
        task=dataset.name,
        dataset=label,
        encoder=found.encoder,
        split=split,
        n_queries=len(judged.queries),
        n_documents=found.n_documents,
        n_tokens=found.n_tokens,
        sample_documents=found.sample[1],
        sample_tokens=found.sample[0],
        rows=found.rows,
        seconds=run.seconds,
        origin=run.origin,
        is_encoded=n_queries is not None,
    )
    run.publish([record], demand_table)
