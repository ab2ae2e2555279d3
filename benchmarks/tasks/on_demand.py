"""Measures encoding on demand: quality and encoded tokens, by the number of candidates and of queries."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from benchmarks.datasets import Dataset, checksum, read_documents, read_qrels, read_queries
from benchmarks.markdown import case_tables
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.metrics import evaluate, means
from benchmarks.prepare import prepared_index
from benchmarks.program import log, program
from benchmarks.runs import Case, Run
from benchmarks.significance import holm, randomization_p
from engine.encoders.encoder import EncodedDocument, Encoder, SegmentedDocument
from engine.encoders.files import BUNDLED_NAME
from engine.errors import EngineError
from engine.index import Index
from engine.search.request import Request
from engine.text.document import Document
from indexer.building.builder import EncodeNow, build

CANDIDATES = (20, 50, 200)
DEPTH = 100  # of rankings
MEASURES = ("nDCG@10", "Recall@100")
_MARKS = (1, 10, 100)  # tokens are counted after these numbers of queries, and after all queries
_NOTE = (
    "p: paired randomisation test of nDCG@10 against all documents encoded, adjusted by Holm's method within a corpus. "
    "Tokens: share of all tokens that were encoded after so many queries, including the sample for thresholds."
)


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


@contextmanager
def index_for_once(documents: Sequence[Document], encoder: Encoder | None, encode: EncodeNow) -> Iterator[Index]:
    """An index of documents as `encode` leaves it, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="longmatch-") as place:
        build(Path(place) / "x.lm", documents, encoder=encoder, encode=encode)
        with Index.open(Path(place) / "x.lm", encoder=encoder, store=False) as index:
            yield index


def encoded_so_far(index: Index) -> int:
    """Tokens of the documents with vectors."""
    snapshot = index.snapshot
    return int(snapshot.tokens[snapshot.has_vectors].sum())


def ranked(index: Index, queries: Sequence[Document], candidates: int) -> tuple[dict[str, list[str]], dict[int, int]]:
    """Search with all queries, one after another; vectors encoded for a query stay for the next ones.

    Returns:
        The targets of each query, best first, and the tokens encoded after some numbers of queries.
    """
    rankings: dict[str, list[str]] = {}
    n_tokens: dict[int, int] = {}
    for number, query in enumerate(queries, start=1):
        request = Request(k=DEPTH + 1, with_itself=True, candidates=candidates)
        result = index.search(query.doc_id if is_indexed(index, query) else query, request)
        rankings[query.doc_id] = [hit.doc_id for hit in result.hits if hit.doc_id != query.doc_id][:DEPTH]
        if number in (*_MARKS, len(queries)):
            n_tokens[number] = encoded_so_far(index)
    return rankings, n_tokens


def measure(
    full: Index,
    documents: Sequence[Document],
    queries: Sequence[Document],
    qrels: Mapping[str, Mapping[str, int]],
    seed: int,
) -> dict[str, dict[str, float]]:
    """The values of each way: words alone, some candidates a query, all; `full` has the vectors of all documents."""
    recorded = RecordedEncoder(full)
    with index_for_once(documents, recorded, "none") as words:
        found = {"words": ranked(words, queries, 0)}
    for n in CANDIDATES:
        log(f"{n} candidates")
        with index_for_once(documents, recorded, "later") as later:
            found[f"{n} candidates"] = ranked(later, queries, n)
    found["all"] = ranked(full, queries, 0)
    judged = {way: evaluate(qrels, rankings, depth=DEPTH) for way, (rankings, _) in found.items()}
    base = list(judged["all"]["nDCG@10"].values())
    p_values = holm(
        [randomization_p(list(judged[way]["nDCG@10"].values()), base, seed=seed) for way in found if way != "all"]
    )
    n_all = int(full.snapshot.tokens.sum())
    rows: dict[str, dict[str, float]] = {}
    for (way, (_, n_tokens)), p in zip(found.items(), [*p_values.tolist(), None], strict=True):
        mean = means(judged[way])
        rows[way] = {
            "nDCG@10": round(mean["nDCG@10"], 4),
            **({} if p is None else {"p": round(p, 5)}),
            "Recall@100": round(mean["Recall@100"], 4),
            **{
                f"tokens after {'all' if number == len(queries) else number}, %": round(100 * n / n_all, 1)
                for number, n in n_tokens.items()
            },
        }
    return rows


def judged_queries(dataset: Dataset, split: str, seed: int) -> tuple[list[Document], Mapping[str, Mapping[str, int]]]:
    """The queries of a split in the order of the seed, and their judgments."""
    qrels = read_qrels(dataset, split)
    queries = list(read_queries(dataset, qrels).values())
    random.Random(seed).shuffle(queries)
    return queries, {query.doc_id: qrels[query.doc_id] for query in queries}


@program
@click.argument("name", metavar="DATASET")
@click.option("--encoder", default=BUNDLED_NAME, help="Encoder of the index.")
@click.option("--split", default="test", help="Split to search with.")
@measurement(seed="Seed of the order of queries, and of --quick.", quick="A small seeded part of DATASET", encodes=True)
def main(run: Measurement, name: str, encoder: str, split: str) -> None:
    """Measure encoding on demand on DATASET; vectors are looked up in an index that has them all.

    \b
    Example:
        python -m benchmarks study on_demand proposals
    """
    dataset = run.dataset(name, split)
    queries, qrels = judged_queries(dataset, split, run.seed)
    with prepared_index(dataset, encoder, run.work, log=log) as ready:
        rows = measure(ready.index, list(read_documents(dataset)), queries, qrels, run.seed)
        n_tokens = int(ready.index.snapshot.tokens.sum())
    demand = Run(
        task="demand",
        dataset=f"{dataset.name}@{checksum(dataset)}",
        system="encoded",
        encoder=ready.encoder,
        split=split,
        n_tokens=n_tokens,
        seconds=run.seconds,
        details={"note": _NOTE},
        origin=run.origin,
        cases=[Case(id=f"{dataset.name} ({len(queries)}), {way}", values=values) for way, values in rows.items()],
    )
    run.publish([demand], case_tables)
