"""Plants the same passage in some documents of a corpus, and measures its share of the scores."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
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
from engine.encoders.encoder import EncodedDocument, Encoder, Vectors, unit
from engine.encoders.files import BUNDLED_NAME
from engine.index import Index
from engine.scoring.evidence import chunk_component, chunk_weights, reference_threshold, thresholds
from engine.scoring.similarity import best_chunks
from engine.text.document import Document
from engine.text.spans import Coverage, Section
from engine.views import Result
from indexer.building.builder import build
from indexer.building.corpus import read_corpus

LICENCE = Path(__file__).resolve().parents[2] / "LICENSE"
SHARES = (0.0, 0.001, 0.005, 0.02, 0.2)
HITS = 10
CROWD = 20  # M of the rule that was used before there was a reference
_HEADING = "Licence"
_SHARES = ("score", "passages", "crowd", "words")  # of a row
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
    """Looks vectors up, and adds those of the passage `text` to documents that end with it."""

    def __init__(self, indexes: Sequence[Index], text: str) -> None:
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


def taken(index: Index, doc_id: str, result: Result) -> dict[str, float]:
    """The shares of a row for one query, a document that ends with the passage; means over its first hits."""
    number = len(result.query.sections) - 1
    scores, words = [], []
    for hit in result.hits:
        mine = [pair for pair in hit.breakdown.pairs if pair.query_section == number]
        scores.append(sum(pair.contribution for pair in mine) / hit.score)
        all_words = sum(pair.words for pair in hit.breakdown.pairs)
        words.append(sum(pair.words for pair in mine) / all_words if all_words else 0.0)
    passages, crowd = _of_chunks(index, doc_id, number)
    return {"score": _mean(scores), "passages": passages, "crowd": crowd, "words": _mean(words)}


def _of_chunks(index: Index, doc_id: str, section: int) -> tuple[float, float]:
    """The share of the chunk component, under the reference and under the (M+1)-th best of all documents."""
    searcher = index.searcher()
    prepared = searcher.prepare(index.stored_query(doc_id))
    others = np.flatnonzero(searcher.allowed(None, doc_id))
    blocks = np.array_split(others, max(1, len(others) // 500))
    best = np.concatenate(
        [best_chunks(prepared.vectors.chunks, *index.snapshot.chunk_vectors(block)) for block in blocks], axis=1
    )
    spans = prepared.vectors.chunk_spans
    is_planted = np.array([chunk.section == section for chunk in spans])
    weights = chunk_weights(np.array([chunk.n_tokens for chunk in spans]))
    crowd = thresholds(reference_threshold(best, CROWD), 0.0, weights, searcher.scoring)
    shares = []
    for limits in (prepared.limits, crowd):
        of_passage = replace(limits, weights=np.where(is_planted, limits.weights, 0.0))
        whole, part = (chunk_component(best, one, searcher.scoring) for one in (limits, of_passage))
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

    Documents get the passage in the order of `hosts`, the queries first, up to the share of all documents.
    """
    text = passage()
    n_planted = max(len(queries), round(share * len(documents))) if share else 0
    chosen = set(hosts[:n_planted].tolist())
    made = [planted(one, text) if number in chosen else one for number, one in enumerate(documents)]
    names = {documents[number].doc_id for number in chosen}
    with tempfile.TemporaryDirectory(prefix="longmatch-") as folder:
        path = Path(folder) / "planted.lm"
        build(path, made, encoder=encoder, factory="scan")
        hits: dict[str, list[str]] = {}
        shares: list[dict[str, float]] = []
        n_hosts = []
        with Index.open(path, encoder=encoder) as index:
            for doc_id in queries:
                result = index.search_id(doc_id, k=HITS)
                hits[doc_id] = [hit.doc_id for hit in result.hits]
                n_hosts.append(_mean([hit.doc_id in names for hit in result.hits]))
                if share:
                    shares.append(taken(index, doc_id, result))
    means = {name: round(_mean([one[name] for one in shares]), 4) for name in _SHARES}
    return BoilerplateRow(share, n_planted, round(_mean(n_hosts), 4), 1.0, **means), hits


def _read(name: str, data: Path) -> tuple[str, list[Document]]:
    """A dataset, or the readable documents of a file below `data`, with a label that has their checksum."""
    if (data / name).is_file():
        documents = [one for one in read_corpus([str(data / name)]) if isinstance(one, Document)]
        digest = xxhash.xxh3_64_hexdigest((data / name).read_bytes())
        return f"{Path(name).parent.name or Path(name).name}@{digest[:12]}", documents
    dataset = open_dataset(name, data)
    return f"{dataset.name}@{checksum(dataset)}", list(read_documents(dataset))


def boilerplate_table(records: Sequence[BoilerplateRecord]) -> str:
    """A row for each share of documents that have the passage."""
    head = ["Corpus", "Planted in", "Share of score", "Share of passages"]
    head += ["Share of passages, (M+1)-th best of all", "Share of words", "Hits with the passage", "Hits unchanged"]
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
    return "\n".join([*markdown(head, rows), "", _NOTE, "", *origins(records)])


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
    with ExitStack() as stack:
        labels, indexes, documents = list[str](), list[Index](), list[Document]()
        for name in names:
            label, everything = _read(name, run.data)
            some = everything[: n_documents - len(documents)]
            part = label if len(some) == len(everything) else f"{label}-{len(some)}"
            ready = stack.enter_context(prepared_documents(part, some, encoder, run.work, log))
            labels.append(label)
            indexes.append(ready.index)
            documents += some
        looked_up = PlantingEncoder(indexes, passage())
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
            corpora=labels,
            n_documents=len(documents),
            n_queries=n_queries,
            encoder=encoder,
            rows=rows,
            seconds=run.seconds,
            origin=run.origin,
        )
    run.publish([record], boilerplate_table)
