"""Learns a linear map of chunk vectors by the joint score; the encoder itself stays as it is.

A step reads some queries. Each is ranked among a relevant document and documents that words rank high. The
chunk component of the score has its gradient, thresholds included; words and document vectors are constants.

Letters in shapes: I query chunks, T documents of a query, J their chunks, R documents of the reference, C their
chunks, D width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import kl_div, log_softmax, normalize, softmax

from benchmarks.gaps.corpus import CHUNK_WEIGHT, SCORING, Case, Corpus
from benchmarks.gaps.maps import LinearMap
from engine.training.tasks.evidence import rise

_FEWEST_FOR_ONE = 5  # documents of a sample for each one above the threshold, as `engine.scoring.evidence`
_LEAST = 1e-4  # added to a component: its root has no finite gradient at 0


class Target(StrEnum):
    """What a map is trained for."""

    JOINT = "joint"  # the joint score ranks a relevant document first
    GAPS = "gaps"  # the same, queries weighted by how far words fail
    TEACHER = "teacher"  # chunks alone rank as the joint score of the untrained map


@dataclass(frozen=True)
class Lesson:
    """How a map is learned."""

    target: Target
    is_diagonal: bool = False  # one factor for each dimension, in place of a matrix
    learning_rate: float = 3e-4
    decay: float = 0.01  # towards the identity
    temperature: float = 0.03  # of scores
    softening: float = 0.03  # of thresholds, see `engine.training.tasks.evidence.rise`
    queries: int = 8  # of a step
    negatives: int = 7  # of a query
    pool: int = 30  # documents ranked highest by words that negatives are drawn from
    query_chunks: int = 16
    reference: int = 80  # documents that thresholds are taken from


@dataclass(frozen=True)
class Example:
    """A query, and some documents to rank."""

    case: Case
    documents: list[int]  # positions, the relevant one first


def learn(corpora: Sequence[Corpus], lesson: Lesson, n_steps: int, *, seed: int = 0) -> Iterator[tuple[int, LinearMap]]:
    """Train a map on the train queries of corpora in turn, beginning with the identity.

    Args:
        corpora: whose split "train" is read.
        lesson: how.
        n_steps: updates.
        seed: of all draws.

    Yields:
        After each update its number from 1 on, and the map.
    """
    draw = np.random.default_rng(seed)
    torch.manual_seed(seed)
    width = corpora[0].chunks.shape[1]
    change = torch.zeros(width if lesson.is_diagonal else (width, width), requires_grad=True)
    optimizer = torch.optim.AdamW([change], lr=lesson.learning_rate, weight_decay=lesson.decay)
    streams = [_examples(corpus, lesson, draw) for corpus in corpora]
    references = [ReferenceSample(corpus, lesson.reference, draw) for corpus in corpora]
    for step in range(1, n_steps + 1):
        number = step % len(corpora)
        corpus, reference = corpora[number], references[number]
        matrix = _matrix(change)
        reference.follow(matrix)
        losses = [_loss(corpus, next(streams[number]), lesson, matrix, reference, draw) for _ in range(lesson.queries)]
        optimizer.zero_grad()
        torch.stack(losses).mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        yield step, LinearMap(_matrix(change.detach()).numpy().copy(), np.zeros(width, np.float32))


def _matrix(change: Tensor) -> Tensor:
    return torch.diag(1 + change) if change.dim() == 1 else torch.eye(len(change)) + change


def _examples(corpus: Corpus, lesson: Lesson, draw: np.random.Generator) -> Iterator[Example]:
    """Train queries in a new order each time round, each with one relevant document and hard ones."""
    position_of = {doc_id: at for at, doc_id in enumerate(corpus.doc_ids)}
    judged = corpus.qrels["train"]
    while True:
        for number in draw.permutation(len(corpus.cases["train"])).tolist():
            case = corpus.cases["train"][number]
            relevant = [
                position_of[doc_id]
                for doc_id, relevance in judged[case.query_id].items()
                if relevance > 0 and doc_id in position_of and position_of[doc_id] != case.position
            ]
            if not relevant:
                continue
            left_out = {case.position, *relevant}
            ranked = [at for at in np.argsort(-case.words, kind="stable").tolist() if at not in left_out][: lesson.pool]
            hard = draw.permutation(ranked)[: lesson.negatives].tolist()
            yield Example(case, [int(draw.choice(relevant)), *hard])


class ReferenceSample:
    """Some documents of the reference, and as large a share of them above a threshold."""

    def __init__(self, corpus: Corpus, n_documents: int, draw: np.random.Generator) -> None:
        """Draw them.

        Args:
            corpus: whose reference they are drawn from.
            n_documents: at most.
            draw: of the documents.
        """
        self.numbers = draw.permutation(len(corpus.reference_starts))[:n_documents]
        rows = [corpus.reference[corpus.reference_rows(number)] for number in self.numbers.tolist()]
        self.rows = torch.from_numpy(np.concatenate(rows))  # (C, D)
        self._document = torch.from_numpy(np.repeat(np.arange(len(rows)), [len(one) for one in rows]))
        self.exceeding = max(1, round(corpus.exceeding * len(rows) / len(corpus.reference_starts)))
        self._mapped = self.rows

    def as_drawn(self) -> ReferenceSample:
        """The same sample, with thresholds of the identity."""
        drawn = copy(self)
        drawn._mapped = self.rows
        return drawn

    def follow(self, matrix: Tensor) -> None:
        """Map the rows by a matrix (D, D); the sample gives thresholds of this map from now on."""
        with torch.no_grad():
            self._mapped = normalize(self.rows @ matrix, dim=1)

    def thresholds(self, queries: Tensor, matrix: Tensor, case: Case) -> Tensor:
        """Thresholds of mapped query chunks, with their gradient.

        Args:
            queries: (I, D) unit rows, mapped.
            matrix: (D, D) of the map, the one that `follow` was called with.
            case: the query, which is left out.

        Returns:
            (I,) in [0, 1], the best similarity inside the (m+1)-th best document.
        """
        is_other = np.isin(self.numbers, case.reference)
        n_above = min(self.exceeding, int(is_other.sum()) // _FEWEST_FOR_ONE)
        if not n_above:
            return torch.zeros(len(queries))
        with torch.no_grad():
            products = queries @ self._mapped.T  # (I, C)
            best = torch.full((len(queries), len(self.numbers)), -1.0)
            best.scatter_reduce_(1, self._document.expand(len(queries), -1), products, "amax")
            best[:, torch.from_numpy(~is_other)] = -1.0
            at_threshold = best.topk(n_above + 1, dim=1).values[:, -1:]
            row = (products == at_threshold).float().argmax(dim=1)
        return (queries * normalize(self.rows[row] @ matrix, dim=1)).sum(dim=1).clamp(0, 1)


def chunks_add(
    corpus: Corpus, example: Example, matrix: Tensor, sample: ReferenceSample, softening: float, chosen: Sequence[int]
) -> Tensor:
    """What chunks add to the scores of the documents of an example (T,), with gradients to the matrix.

    Args:
        corpus: of the example.
        example: the query and its documents.
        matrix: (D, D) of the map.
        sample: that gives thresholds; it follows the map.
        softening: of thresholds, see `engine.training.tasks.evidence.rise`; 0 is the score of search.
        chosen: rows of the query's chunks that are read.
    """
    case = example.case
    queries, weights = torch.from_numpy(case.chunks[chosen]), torch.from_numpy(case.weights[chosen]).float()
    rows = [corpus.chunks[corpus.rows(at)] for at in example.documents]
    targets, sizes = torch.from_numpy(np.concatenate(rows)), [len(one) for one in rows]
    mapped = normalize(queries @ matrix, dim=1)
    products = mapped @ normalize(targets @ matrix, dim=1).T  # (I, J)
    best = torch.stack([one.amax(dim=1) for one in torch.split(products, sizes, dim=1)], dim=1)  # (I, T)
    theta = sample.thresholds(mapped, matrix, case)
    room = weights * (1 - theta) ** SCORING.power
    chunks = (room / room.sum().clamp(min=1e-9)) @ rise(best, theta[:, None], SCORING.power, softening)
    return CHUNK_WEIGHT * (chunks + _LEAST) ** SCORING.root


def _loss(
    corpus: Corpus,
    example: Example,
    lesson: Lesson,
    matrix: Tensor,
    sample: ReferenceSample,
    draw: np.random.Generator,
) -> Tensor:
    case = example.case
    chosen = draw.permutation(len(case.chunks))[: lesson.query_chunks].tolist()
    added = chunks_add(corpus, example, matrix, sample, lesson.softening, chosen) / lesson.temperature
    rest = torch.from_numpy(case.rest[example.documents]).float() / lesson.temperature
    if lesson.target is Target.TEACHER:
        with torch.no_grad():
            identity = torch.eye(len(matrix))
            drawn = sample.as_drawn()
            before = chunks_add(corpus, example, identity, drawn, lesson.softening, chosen) / lesson.temperature
        return kl_div(log_softmax(added / CHUNK_WEIGHT, dim=0), softmax(rest + before, dim=0), reduction="sum")
    loss = -log_softmax(rest + added, dim=0)[0]
    if lesson.target is Target.GAPS:
        words = torch.from_numpy(case.words[example.documents]).float() / lesson.temperature
        loss = loss * (1 - softmax(words, dim=0)[0])
    return loss
