"""Plants the same passage in some documents of a corpus, and measures its share of the scores."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np
import xxhash
from numpy.typing import NDArray

from benchmarks.behaviour.recorded import RecordedEncoder
from benchmarks.behaviour.records import BoilerplateRecord, BoilerplateRow
from benchmarks.datasets import checksum, open_dataset, read_documents
from benchmarks.markdown import markdown, origins
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.prepare import prepared_documents
from benchmarks.program import program
from engine.document import Coverage, Document, Section
from engine.encoders.backbone.weights import BUNDLED_NAME
from engine.encoders.encoder import EncodedDocument, Encoder, Vectors, unit
from engine.index import Index
from engine.result import Result
from engine.scoring.evidence import chunk_component, chunk_weights, reference_threshold, thresholds
from engine.scoring.similarity import best_chunks
from indexer.building.builder import build
from indexer.building.corpus import read_corpus

LICENCE = Path(__file__).resolve().parents[2] / "LICENSE"
SHARES = (0.0, 0.001, 0.005, 0.02, 0.2)
HITS = 10
CROWD = 20  # M of the rule that was used before there was a reference
_HEADING = "Licence"
_NOTE = (
    "Queries are documents that have the passage; values are means over their first 10 hits. Share of score, of "
    "words: share of the score, and of its word part, that comes from the section with the passage. Share of "
    "passages: the same share of the chunk component, with the thresholds of the reference, and with the (M+1)-th "
    "best of all documents as threshold (M = 20), the rule before there was a reference. Hits unchanged: share of the "
    "first 10 hits of an index without the passage that are also found with it."
)


def passage() -> str:
    """Two sections of the licence of this project, some 200 words."""
    text = LICENCE.read_text("utf-8")
    start, stop = text.index("7. Disclaimer of Warranty"), text.index("9. Accepting Warranty")
    return " ".join(text[start:stop].split())


def planted(document: Document, text: str) -> Document:
    """A document with one more section at its end."""
    whole = document.text.rstrip() + "\n\n"
    sections = (*document.sections, Section(_HEADING, (_HEADING,), len(whole), len(whole) + len(text)))
    sections = (*sections[:-2], replace(sections[-2], stop=len(whole)), sections[-1])
    return replace(document, text=whole + text, sections=sections, pages=())


class PlantingEncoder(RecordedEncoder):
    """Looks vectors up, and adds those of the passage to documents that end with it."""

    def __init__(self, indexes: Sequence[Index], text: str) -> None:
        """Read from indexes that stay open; encode the passage."""
        super().__init__(*indexes)
        self._text = text
        (self._passage,) = self.encoder.encode(
            [Document("passage", "", text, (Section("", (), 0, len(text)),), {}, "")]
        )

    def recorded(self, document: Document) -> EncodedDocument | None:
        """The stored vectors of a document, with those of the passage if the document ends with it."""
        if not document.text.endswith(self._text):
            return super().recorded(document)
        own = self.homes[document.doc_id].stored_query(document.doc_id).vectors
        added, start = self._passage, len(document.text) - len(self._text)
        number = len(document.sections) - 1
        spans = tuple(
            replace(chunk, section=number, start=chunk.start + start, stop=chunk.stop + start)
            for chunk in added.chunk_spans
        )
        n_tokens = [chunk.n_tokens for chunk in (*own.chunk_spans, *spans)]
        chunks = np.concatenate([own.chunks, added.chunks])
        whole: Vectors = unit((np.array(n_tokens, np.float32)[:, None] * chunks).sum(axis=0, keepdims=True))[0]
        return EncodedDocument(
            whole,
            np.concatenate([own.sections, added.sections]),
            chunks,
            (*own.chunk_spans, *spans),
            Coverage(sum(n_tokens), sum(n_tokens)),
        )


@dataclass(frozen=True)
class Taken:
    """The shares of the passage in the scores of one query, means over its first hits, in [0, 1]."""

    score: float  # share of the whole score
    passages: float  # share of the chunk component under the reference
    crowd: float  # share of the chunk component where thresholds are the (M+1)-th best of all documents
    words: float  # share of the contribution of words


def taken(index: Index, doc_id: str, result: Result) -> Taken:
    """Measure one query, a document that ends with the passage."""
    number = len(result.query.sections) - 1
    scores, words = [], []
    for hit in result.hits:
        mine = [pair for pair in hit.breakdown.pairs if pair.query_section == number]
        scores.append(sum(pair.contribution for pair in mine) / hit.score)
        all_words = sum(pair.words for pair in hit.breakdown.pairs)
        words.append(sum(pair.words for pair in mine) / all_words if all_words else 0.0)
    passages, crowd = _of_chunks(index, doc_id, number)
    return Taken(_mean(scores), passages, crowd, _mean(words))


def _of_chunks(index: Index, doc_id: str, section: int) -> tuple[float, float]:
    """The share of the chunk component, under the reference and under the (M+1)-th best of all documents."""
    searcher = index.searcher()
    query = index.stored_query(doc_id)
    prepared = searcher.prepare(query)
    others = np.flatnonzero(searcher.allowed(None, doc_id))
    blocks = np.array_split(others, max(1, len(others) // 500))
    best = np.concatenate(
        [best_chunks(prepared.vectors.chunks, *index.snapshot.chunk_vectors(block)) for block in blocks], axis=1
    )
    is_planted = np.array([chunk.section == section for chunk in prepared.vectors.chunk_spans])
    weights = chunk_weights(np.array([chunk.n_tokens for chunk in prepared.vectors.chunk_spans]))
    crowd = thresholds(reference_threshold(best, CROWD), 0.0, weights, searcher.scoring)
    shares = []
    for limits in (prepared.limits, crowd):
        whole = chunk_component(best, limits, searcher.scoring)
        part = chunk_component(
            best, replace(limits, weights=np.where(is_planted, limits.weights, 0.0)), searcher.scoring
        )
        top = np.argsort(-whole, kind="stable")[:HITS]
        top = top[whole[top] > 0]
        shares.append(_mean((part[top] / whole[top]).tolist()))
    return shares[0], shares[1]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else 0.0


def measure(
    documents: Sequence[Document], encoder: Encoder, share: float, queries: Sequence[str], hosts: NDArray[np.int64]
) -> tuple[BoilerplateRow, dict[str, list[str]]]:
    """Plant, index and search; returns the row, and the hits of each query.

    Args:
        documents: of the corpus.
        encoder: has the vectors of the documents, with and without the passage.
        share: of the documents that get the passage.
        queries: doc_ids of the queries; they have the passage if any document has it.
        hosts: documents in the order in which they get the passage, the queries first.
    """
    text = passage()
    n_planted = max(len(queries), round(share * len(documents))) if share else 0
    # The first hosts, the queries, have the passage, and further hosts up to the share of the documents.
    chosen = set(hosts[:n_planted].tolist())
    made = [planted(one, text) if number in chosen else one for number, one in enumerate(documents)]
    names = {documents[number].doc_id for number in chosen}
    with tempfile.TemporaryDirectory(prefix="longmatch-") as folder:
        path = Path(folder) / "planted.lm"
        build(path, made, encoder=encoder, factory="scan")
        hits: dict[str, list[str]] = {}
        rows: list[Taken] = []
        n_hosts = []
        with Index.open(path, encoder=encoder) as index:
            for doc_id in queries:
                result = index.search_id(doc_id, k=HITS)
                hits[doc_id] = [hit.doc_id for hit in result.hits]
                n_hosts.append(_mean([hit.doc_id in names for hit in result.hits]))
                if share:
                    rows.append(taken(index, doc_id, result))
    means = {
        name: round(_mean([getattr(row, name) for row in rows]), 4) for name in ("score", "passages", "crowd", "words")
    }
    return BoilerplateRow(share, n_planted, round(_mean(n_hosts), 4), 1.0, **means), hits


def _read(name: str, data: Path) -> tuple[str, list[Document]]:
    """A dataset, or the readable documents of a file below `data`, with a label that has their checksum."""
    if (data / name).is_file():
        documents = [one for one in read_corpus([str(data / name)]) if isinstance(one, Document)]
        digest = xxhash.xxh3_64_hexdigest((data / name).read_bytes())
        return f"{Path(name).parent.name or Path(name).name}@{digest[:12]}", documents
    dataset = open_dataset(name, data)
    return f"{dataset.name}@{checksum(dataset)}", list(read_documents(dataset))


def _corpus(
    names: Sequence[str], n_documents: int, encoder: str, data: Path, work: Path, stack: ExitStack
) -> Iterator[tuple[str, Index, list[Document]]]:
    """For each corpus its name with a checksum, its index, and its documents, up to `n_documents` in all."""
    left = n_documents
    for name in names:
        label, everything = _read(name, data)
        documents = everything[:left]
        part = label if len(documents) == len(everything) else f"{label}-{len(documents)}"
        ready = stack.enter_context(prepared_documents(part, documents, encoder, work, log))
        left -= len(documents)
        yield label, ready.index, documents


def boilerplate_table(records: Sequence[BoilerplateRecord]) -> str:
    """A row for each share of documents that have the passage."""
    head = ["Corpus", "Planted in", "Share of score", "Share of passages"]
    head += ["Share of passages, (M+1)-th best of all", "Share of words"]
    rows = [
        [
            f"{', '.join(record.corpora)} ({record.n_documents:,})",
            f"{row.share:.1%}, {row.n_planted:,}",
            *(f"{value:.1%}" for value in (row.score, row.passages, row.crowd, row.words)),
            f"{row.hosts:.0%}",
            f"{row.overlap:.0%}",
        ]
        for record in records
        for row in record.rows
    ]
    return "\n".join(
        [*markdown([*head, "Hits with the passage", "Hits unchanged"], rows), "", _NOTE, "", *origins(records)]
    )


@program
@click.argument("names", nargs=-1, required=True, metavar="DATASET|FILE...")
@click.option("--documents", "n_documents", default=5_000, type=click.IntRange(10), help="Documents to read.")
@click.option("--queries", "n_queries", default=40, type=click.IntRange(1), help="Queries to draw.")
@click.option("--encoder", default=BUNDLED_NAME, help="Encoder of the indexes.")
@measurement(seed="Seed of the documents that get the passage.", encodes=True)
def main(run: Measurement, names: tuple[str, ...], n_documents: int, n_queries: int, encoder: str) -> None:
    """Plant a passage in documents of one or more DATASETs, and record the share of the scores that it takes.

    \b
    Example:
        python -m benchmarks study boilerplate proposals clscisumm news20/corpus.jsonl.gz
    """
    started = time.perf_counter()
    with ExitStack() as stack:
        parts = list(_corpus(names, n_documents, encoder, run.data, run.work, stack))
        documents = [one for _, _, some in parts for one in some]
        looked_up = PlantingEncoder([index for _, index, _ in parts], passage())
        hosts = np.random.default_rng(run.seed).permutation(len(documents))
        rows: list[BoilerplateRow] = []
        before: Mapping[str, list[str]] = {}
        for share in SHARES:
            log(f"planted in {share:.1%} of {len(documents):,} documents")
            n_asked = min(n_queries, max(1, round(share * len(documents)))) if share else n_queries
            queries = [documents[number].doc_id for number in hosts[:n_asked]]
            row, hits = measure(documents, looked_up, share, queries, hosts)
            before = before or hits
            same = [len(set(hits[one]) & set(before[one])) / max(1, len(before[one])) for one in queries]
            rows.append(replace(row, overlap=round(_mean(same), 4)))
        record = BoilerplateRecord(
            corpora=[label for label, _, _ in parts],
            n_documents=len(documents),
            n_queries=n_queries,
            encoder=encoder,
            rows=rows,
            seconds=round(time.perf_counter() - started, 1),
            origin=run.origin,
        )
    run.publish([record], boilerplate_table)
