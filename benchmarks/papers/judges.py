"""The judges of comparisons: matching of pairs, classes by a probe, or retrieval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from benchmarks.datasets import Dataset, checksum, open_dataset, read_qrels, read_queries
from benchmarks.metrics import PRIMARY
from benchmarks.pairs.comparing import Comparer, Comparison, Side, encoded_sides
from benchmarks.pairs.judging import accuracy_threshold, is_correct
from benchmarks.pairs.scorer import Pair
from benchmarks.pairs.splitting import Split, documents_of
from benchmarks.papers.comparison import Conditions, Judged, Made, Order
from benchmarks.papers.encoders import PairData
from benchmarks.papers.orders import reordered_vector
from benchmarks.prepare import prepared_documents, prepared_index
from benchmarks.probing import encoder_vectors, open_labelled, part_of
from benchmarks.quick import Size, quick_part
from benchmarks.runs import Case
from benchmarks.systems import DocumentCosine, Evidence, Settings
from benchmarks.tasks import retrieval
from benchmarks.tasks.probe import RIGHT, ProbeDetails, ProbeTrial, documents_to_probe, measure
from engine.encoders.encoder import Encoder, SegmentedDocument, Vectors
from engine.encoders.loading import load_encoder
from engine.encoders.trainable import TrainableEncoder
from engine.errors import TrainingError


@dataclass(frozen=True)
class Matching:
    """Pairs of documents, classified as match or mismatch by the threshold of best accuracy on valid."""

    data: PairData
    metric = RIGHT

    def open(self, conditions: Conditions) -> MatchingBench:
        """See `Judge.open`."""
        return MatchingBench(self.data, conditions)


class MatchingBench:
    """The pairs; a value is 1 if a pair of test is classified correctly, or the share of orders in which it is."""

    def __init__(self, data: PairData, conditions: Conditions) -> None:
        """Draw the pairs; see `PairData.open`."""
        self._conditions = conditions
        self._pairs = data.open(conditions)
        self.settings: Settings = {
            **data.settings(conditions),
            "n_test_pairs": len(self._pairs.splits[Split.TEST]),
        }

    def judge(self, made: Made) -> Judged:
        """See `Bench.judge`."""
        encoder = load_encoder(made.folder, device=self._conditions.device, dtype=torch.float32)
        comparer = Comparer(encoder, Comparison(made.comparison))
        sides = encoded_sides(encoder, comparer, self._pairs.documents)
        valid, test = self._pairs.splits[Split.VALID], self._pairs.splits[Split.TEST]

        def scores(pairs: Sequence[Pair], sides: Mapping[str, Side]) -> list[float]:
            return [comparer.score(sides[pair.first], sides[pair.second]) for pair in pairs]

        threshold = accuracy_threshold(scores(valid, sides), [pair.is_match for pair in valid])
        labels = [pair.is_match for pair in test]
        read = self._reordered(encoder, comparer, made.order) if made.order else [sides]
        correct = np.mean([is_correct(scores(test, one), labels, threshold) for one in read], axis=0)
        return Judged(
            [
                Case(id=f"{pair.first} {pair.second}", values={RIGHT: round(float(one), 6)}, group=pair.first)
                for pair, one in zip(test, correct, strict=True)
            ]
        )

    def _reordered(self, encoder: Encoder, comparer: Comparer, order: Order) -> Iterator[dict[str, Side]]:
        """The documents of test in each of several orders; the orders are the same for all variants with one unit."""
        if not isinstance(encoder, TrainableEncoder) or comparer.comparison is not Comparison.COSINE:
            raise TrainingError("only encoders with trainable parameters, compared by cosine, read in another order")
        nothing = np.empty((0, 0), np.float16), np.empty(0)  # the empty chunks of a side
        documents = {id_: self._pairs.documents[id_] for id_ in documents_of(self._pairs.splits[Split.TEST])}
        segmented = {doc_id: encoder.segment(document) for doc_id, document in documents.items()}
        for number in range(order.n_orders):
            yield {
                doc_id: Side(self._vector(encoder, document, order, number), *nothing)
                for doc_id, document in segmented.items()
            }

    def _vector(self, encoder: TrainableEncoder, document: SegmentedDocument, order: Order, number: int) -> Vectors:
        rng = np.random.default_rng([self._conditions.draw_seed, number, *document.document.doc_id.encode()])
        return reordered_vector(encoder, document, order, rng)


_N_DRAWS = 10  # of few labels, as in the paper
_VALID_SHARE = 5  # valid, which chooses the classifier's C, has a fifth of the documents of test


@dataclass(frozen=True)
class Probing:
    """Classes of documents by a linear probe over frozen vectors; a case of the scale is a document of each class.

    With all labels a value is 1 if a document of test is classified correctly. With few labels a value is the
    accuracy of a draw of labels: cases are the draws, and significance tests cover only the chance of drawing.
    """

    dataset: str  # of `benchmarks.probing`
    labels: int = 0  # for each class; 0 for all labels of the part

    @property
    def metric(self) -> str:
        """See `Judge.metric`."""
        return f"{RIGHT} from {self.labels} labels a class" if self.labels else RIGHT

    def open(self, conditions: Conditions) -> ProbingBench:
        """See `Judge.open`."""
        return ProbingBench(self, conditions)


class ProbingBench:
    """A part of a corpus with classes."""

    def __init__(self, judge: Probing, conditions: Conditions) -> None:
        """Draw the part.

        Raises:
            DatasetError: the corpus is missing.
        """
        scale, seed = conditions.scale, conditions.draw_seed
        sizes = {"train": scale.n_test, "valid": max(1, scale.n_test // _VALID_SHARE), "test": scale.n_test}
        corpus = part_of(open_labelled(judge.dataset, conditions.data), sizes, seed)
        self._judge, self._conditions = judge, conditions
        self._trial = ProbeTrial(
            corpus=corpus,
            shots=(judge.labels,) if judge.labels else (),
            n_draws=_N_DRAWS,
            max_words=scale.max_words,
            is_quick=conditions.is_quick,
            origin=replace(conditions.origin, seed=seed),
        )
        self.settings: Settings = {
            "dataset": f"{corpus.name}@{corpus.checksum}",
            "n_labelled": len(corpus.splits["train"]),
            "n_test_documents": len(corpus.splits["test"]),
            "labels": judge.labels,
        }

    def judge(self, made: Made) -> Judged:
        """See `Bench.judge`."""
        conditions, trial, metric = self._conditions, self._trial, self._judge.metric
        documents = documents_to_probe(trial)
        with prepared_documents(self._name(), documents, made.folder, conditions.work, conditions.log) as ready:
            run = measure(encoder_vectors(ready), trial)
        few = run.details_as(ProbeDetails).few_shot.get(str(self._judge.labels))
        if few is None:
            return Judged(run.cases)
        return Judged([Case(id=str(draw), values={metric: value}) for draw, value in enumerate(few[RIGHT])])

    def _name(self) -> str:
        """The name under which vectors are stored, with all values that determine the documents."""
        corpus = self._trial.corpus
        sizes = "x".join(str(len(ids)) for ids in corpus.splits.values())
        seed = self._conditions.draw_seed
        return f"{corpus.name}@{corpus.checksum}-first{self._trial.max_words}-{sizes}-seed{seed}"


_DEPTH = 100
_DOCUMENTS_PER_QUERY = 8  # of a part, including queries and their targets
_SYSTEMS = {"document": DocumentCosine, "evidence": Evidence}


@dataclass(frozen=True)
class Retrieving:
    """Targets of some queries, ranked by document vectors or by longmatch's score; a case of the scale is a query.

    Unless `is_whole`, a part of the corpus is used: eight documents for each query, truncated to the words of the
    scale.
    """

    dataset: str  # of `benchmarks.datasets`
    split: str = "valid"
    system: str = "document"  # or "evidence"
    is_whole: bool = False
    metric = PRIMARY

    def open(self, conditions: Conditions) -> RetrievingBench:
        """See `Judge.open`."""
        return RetrievingBench(self, conditions)


class RetrievingBench:
    """A corpus or a part of it, and its queries."""

    def __init__(self, judge: Retrieving, conditions: Conditions) -> None:
        """Write the part.

        Raises:
            DatasetError: the corpus is missing, or the split has no query.
        """
        whole = open_dataset(judge.dataset, conditions.data)
        corpus = whole if judge.is_whole and not conditions.is_quick else _part(whole, judge.split, conditions)
        qrels = read_qrels(corpus, judge.split)
        queries = read_queries(corpus, qrels)
        self._judge, self._conditions = judge, conditions
        self._trial = retrieval.Trial(corpus, judge.split, qrels, queries, _DEPTH, conditions.origin)
        self.settings: Settings = {
            "dataset": f"{whole.name}@{checksum(whole)}",
            "split": judge.split,
            "system": judge.system,
            "part": checksum(corpus),
            "n_queries": len(qrels),
        }

    def judge(self, made: Made) -> Judged:
        """See `Bench.judge`; cases hold rankings."""
        conditions = self._conditions
        with prepared_index(self._trial.dataset, made.folder, conditions.work, conditions.log) as ready:
            system = _SYSTEMS[self._judge.system](ready.index, ready.encoder)
            run, _ = retrieval.measure(system, ready.cost, self._trial)
        return Judged(run.cases, run.k)


def _part(whole: Dataset, split: str, conditions: Conditions) -> Dataset:
    """The part, in one folder for each size: the name of a part has dataset, split and seed, but no size."""
    scale = conditions.scale
    size = Size(n_queries=scale.n_test, n_documents=_DOCUMENTS_PER_QUERY * scale.n_test, n_words=scale.max_words)
    folder = conditions.work / "papers" / f"part-{size.n_queries}x{size.n_documents}x{size.n_words}"
    return quick_part(whole, split, folder, seed=conditions.draw_seed, size=size)
