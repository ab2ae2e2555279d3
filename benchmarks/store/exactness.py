"""Checks on a real index that the parts of a score sum to it, and that a certified ranking is the true one.

The truth is the equation of `engine.scoring.evidence`, document by document, chunk by chunk and term by term, from
stored vectors, texts and the pinned reference. With the search it shares only the code that segments words, and finds
titles and common sentences.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, log1p
from pathlib import Path
from typing import TypeAlias

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.prepare import check_vectors
from benchmarks.program import program
from benchmarks.speed.recall import sampled_queries
from benchmarks.store.records import ExactnessRecord
from engine import Index, Scoring
from engine.encoders.encoder import Vectors
from engine.result import Status
from engine.store.writer import Writer
from engine.text.spans import Chunk, Span
from engine.words.common_sentences import blanked, common_stretches
from engine.words.segmenter import Terms, WordSegmenter
from engine.words.statistics import TermStatistics
from engine.words.titles import title_span
from indexer.generation.new_generation import publish_generation

Counted: TypeAlias = tuple[Counter[int], int]  # terms, and the number of their occurrences, those in the title once

EXACT, APPROXIMATE = "Flat", "auto"
K = 10  # targets of a query
ALPHA = 0.05  # of the words
TITLE_SHARE = 0.15  # of the occurrences in a text, by which its title counts more
ROUNDING = 1e-6  # a similarity above its threshold by less counts as not above it
TIE = 1e-6  # closer scores can change places: the search rounds them to float32


@dataclass
class Tally:
    """Counts and errors over all queries of one generation, named as in `ExactnessRecord`."""

    n_queries: int = 0
    n_hits: int = 0
    largest_sum_error: float = 0.0  # |sum of parts - score|
    n_certified: int = 0
    n_ranked_otherwise: int = 0  # certified rankings that differ from the truth, ties aside
    largest_score_error: float = 0.0  # of certified hits, against the truth


class DoubleLoop:
    """The scores of an index by the equation; holds its vectors and words in memory."""

    def __init__(self, index: Index, scoring: Scoring) -> None:
        snapshot = index.snapshot
        names = snapshot.doc_ids()
        self._scoring = scoring
        self._vectors = {name: index.stored_query(name).vectors for name in names}
        self._keys = dict(zip(names, snapshot.content_keys(np.arange(len(names))).tolist(), strict=True))
        reference = snapshot.reference
        self._whole = {name: index.document(name).text for name in names}
        self._stretches = {name: common_stretches(text, reference.common) for name, text in self._whole.items()}
        self._texts: dict[str, dict[str, Counted]] = {}
        self._segmenter = None if snapshot.language is None else WordSegmenter(snapshot.language)
        if self._segmenter is not None:
            self._titles = {name: title_span(index.document(name)) for name in names}
            for name, text in self._whole.items():
                self._texts[name] = text_of(self._segmenter.segment(text), self._titles[name])
        ends = np.append(reference.starts[1:], len(reference.rows))
        chunks = [reference.vectors[start:end] for start, end in zip(reference.starts, ends, strict=True)]
        self._sample = list(zip(reference.hashes.tolist(), chunks, reference.documents, strict=True))
        statistics = reference.statistics
        self._probability = {"words": _probabilities(statistics.words), "pairs": _probabilities(statistics.pairs)}

    def scores(self, doc_id: str) -> dict[str, float]:
        """The score of every other document."""
        targets = [name for name in self._vectors if name != doc_id]
        scoring, own = self._scoring, self._query_text(doc_id)
        components = [
            (scoring.chunk_weight, self._chunks(doc_id, targets)),
            (scoring.document_weight, self._documents(doc_id, targets)),
        ]
        if own is not None:
            for kind, weight in (("words", scoring.word_weight), ("pairs", scoring.pair_weight)):
                score = likelihood(own[kind], self._probability[kind])
                components.append((weight, [score(self._texts[name][kind]) for name in targets]))
        total = sum(weight for weight, _ in components)
        return {
            name: sum(weight / total * values[number] ** scoring.root for weight, values in components)
            for number, name in enumerate(targets)
        }

    def _query_text(self, doc_id: str) -> dict[str, Counted] | None:
        """The terms of a query without its common sentences."""
        if self._segmenter is None or not self._stretches[doc_id]:
            return self._texts.get(doc_id)
        terms = self._segmenter.segment(blanked(self._whole[doc_id], self._stretches[doc_id]))
        return text_of(terms, self._titles[doc_id])

    def _chunks(self, doc_id: str, targets: list[str]) -> list[float]:
        query, power = self._vectors[doc_id], self._scoring.power
        best = _best(query.chunks, [self._vectors[name].chunks for name in targets])
        sample = _best(query.chunks, [rows for key, rows, _ in self._sample if key != self._keys[doc_id]])
        values, room = np.zeros(len(targets)), 0.0
        for i, chunk in enumerate(query.chunk_spans):
            theta = self._theta(sample[i])
            weight = chunk.n_tokens**0.5 * self._kept(doc_id, chunk)
            room += weight * (1 - theta) ** power
            values += weight * _excess(best[i], theta) ** power
        return list(values / room)

    def _kept(self, doc_id: str, chunk: Chunk) -> float:
        """The share of a chunk's characters that is in no common sentence."""
        inside = sum(
            max(0, min(span.stop, chunk.stop) - max(span.start, chunk.start)) for span in self._stretches[doc_id]
        )
        return max(0.0, 1 - inside / max(1, chunk.stop - chunk.start))

    def _documents(self, doc_id: str, targets: list[str]) -> list[float]:
        query = self._vectors[doc_id].document.astype(np.float64)
        cosines = np.array([self._vectors[name].document @ query for name in targets])
        theta = self._theta(np.array([row @ query for key, _, row in self._sample if key != self._keys[doc_id]]))
        return list((_excess(cosines, theta) / (1 - theta)) ** self._scoring.power)

    def _theta(self, similarities: NDArray[np.float64]) -> float:
        m = min(self._scoring.exceeding, len(similarities) // 5)
        return min(1.0, max(0.0, float(np.sort(similarities)[-m - 1]))) if m else 0.0


def text_of(found: Terms, title: Span | None) -> dict[str, Counted]:
    """Count the terms of a text; those of the title count more, so that it adds `TITLE_SHARE` of all occurrences."""
    counted = {}
    for kind, terms, spans in (("words", found.words, found.word_spans), ("pairs", found.pairs, found.pair_spans)):
        inside = [title is not None and title.start <= start and stop <= title.stop for start, stop in spans.tolist()]
        more = round(TITLE_SHARE * len(terms) / max(1, sum(inside)))
        counts: Counter[int] = Counter()
        for term, is_inside in zip(terms.tolist(), inside, strict=True):
            counts[term] += 1 + more * is_inside
        counted[kind] = counts, len(terms)
    return counted


def likelihood(query: Counted, probability: Callable[[int], float]) -> Callable[[Counted], float]:
    """s(q, d) of `engine.words.likelihood` for the counts and length of any d, by a loop over the terms both have."""

    def summed(counts: Counter[int], length: int) -> float:
        return sum(
            (1 + log(query[0][term])) * log1p(ALPHA * counts[term] / (length * probability(term)))
            for term in query[0].keys() & counts.keys()
        )

    own = summed(*query) or 1.0
    return lambda target: min(1.0, summed(*target) / own)


def _probabilities(statistics: TermStatistics) -> Callable[[int], float]:
    counts = dict(zip(statistics.terms.tolist(), statistics.counts.tolist(), strict=True))
    return lambda term: counts.get(term, 1) / max(1, statistics.total)


def _best(chunks: Vectors, documents: Sequence[NDArray[np.floating]]) -> NDArray[np.float64]:
    """(I, N) the best match of each chunk in each document."""
    best = np.empty((len(chunks), len(documents)))
    for column, rows in enumerate(documents):
        cosines = chunks.astype(np.float64) @ rows.astype(np.float64).T
        best[:, column] = cosines.max(axis=1)
    return best


def _excess(similarities: NDArray[np.float64], theta: float) -> NDArray[np.float64]:
    above = np.minimum(similarities, 1.0) - theta
    return np.where(above > ROUNDING, above, 0.0)


def examine(index: Index, queries: list[str], n_truth: int) -> Tally:
    """Search with every query; compare scores with sums of parts, and `n_truth` certified rankings with the truth."""
    tally, scoring = Tally(), Scoring()
    truth = DoubleLoop(index, scoring) if n_truth else None
    for number, doc_id in enumerate(queries):
        result = index.search_id(doc_id, k=K, scoring=scoring)
        tally.n_queries += 1
        for hit in result.hits:
            document = hit.breakdown.document
            parts = [part.contribution for pair in hit.breakdown.pairs for part in pair.parts]
            words = [pair.words for pair in hit.breakdown.pairs]
            summed = sum(parts) + sum(words) + (document.contribution if document else 0.0)
            errors = abs(summed - hit.score), abs(sum(hit.breakdown.components.values()) - hit.score)
            tally.n_hits += 1
            tally.largest_sum_error = max(tally.largest_sum_error, *errors)
        if result.status is Status.CERTIFIED and truth is not None and number < n_truth:
            _compare(tally, [(hit.doc_id, hit.score) for hit in result.hits], truth.scores(doc_id))
    return tally


def _compare(tally: Tally, found: list[tuple[str, float]], truth: dict[str, float]) -> None:
    expected = sorted((score for score in truth.values() if score > 0), reverse=True)[:K]
    errors = [abs(score - truth[doc_id]) for doc_id, score in found]
    tally.n_certified += 1
    tally.largest_score_error = max(tally.largest_score_error, *errors, 0.0)
    is_same = len(found) == len(expected) and all(
        abs(truth[doc_id] - score) < TIE for (doc_id, _), score in zip(found, expected, strict=True)
    )
    tally.n_ranked_otherwise += not is_same


@program
@click.argument("path", metavar="INDEX", type=click.Path(path_type=Path))
@click.option("--queries", "n_queries", default=500, type=click.IntRange(1), help="Documents to search with.")
@click.option("--truth", "n_truth", default=500, help="Documents of these that are compared with the double loop.")
@measurement()
def main(run: Measurement, path: Path, n_queries: int, n_truth: int) -> None:
    """Check INDEX under an exact and an approximate generation; it is copied, not changed.

    \b
    Example:
        python -m benchmarks study exactness papers.lm --queries 500
    """
    check_vectors(path)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(path, Path(folder) / "copy.lm"))
        for factory in (EXACT, APPROXIMATE):
            with Writer(copy) as writer:
                published = publish_generation(writer, factory)
            started = time.perf_counter()
            with Index.open(copy) as index:
                queries = sampled_queries(index.snapshot.doc_ids(), n_queries, run.seed)
                tally = examine(index, queries, n_truth if published.is_exact else 0)
                n_documents = index.n_documents
            record = ExactnessRecord(
                index=path.stem.partition("@")[0],
                factory=published.factory,
                n_documents=n_documents,
                k=K,
                **vars(tally),
                seconds=round(time.perf_counter() - started, 1),
                origin=run.origin,
            )
            run.keep(record)
            click.echo("\n".join(record.promises))
