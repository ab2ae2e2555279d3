"""Retrieval as the task of a comparison: which documents of a seeded part of a corpus are found by their vectors."""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks import retrieval
from benchmarks.datasets import checksum, open_dataset, read_qrels, read_queries
from benchmarks.metrics import PRIMARY
from benchmarks.papers.comparison import Conditions, Measured
from benchmarks.papers.pretrained_arm import PretrainedArm, Pretraining
from benchmarks.prepare import prepared_index
from benchmarks.quick import Size, quick_part
from benchmarks.systems import DocumentCosine, Settings

_DEPTH = 100
_DOCUMENTS_PER_QUERY = 8  # of the part; queries and their targets among them


@dataclass(frozen=True)
class RetrievalTask:
    """Targets of some queries by the cosine of document vectors; a case of the scale is a query."""

    dataset: str  # of `benchmarks.datasets`
    split: str = "valid"

    @property
    def metric(self) -> str:
        """See `Task.metric`."""
        return PRIMARY

    def open(self, conditions: Conditions) -> RetrievalBench:
        """See `Task.open`."""
        return RetrievalBench(self, conditions)


class RetrievalBench:
    """A part of a corpus, and its queries."""

    def __init__(self, task: RetrievalTask, conditions: Conditions) -> None:
        """Write the part.

        Raises:
            DatasetError: a corpus is not there, or the split has no query that can be asked.
            EncoderError: the backbone cannot be found.
        """
        scale, seed = conditions.scale, conditions.origin.seed
        self._pretraining = Pretraining(conditions)
        whole = open_dataset(task.dataset, conditions.data)
        size = Size(n_queries=scale.n_test, n_documents=_DOCUMENTS_PER_QUERY * scale.n_test, n_words=scale.max_words)
        # Parts of another size have a folder of their own: the name of a part tells dataset, split and seed alone.
        sized = conditions.work / "papers" / f"part-{size.n_queries}x{size.n_documents}x{size.n_words}"
        part = quick_part(whole, task.split, sized, seed=seed, size=size)
        qrels = read_qrels(part, task.split)
        queries = read_queries(part, qrels)
        self._trial = retrieval.Trial(part, task.split, qrels, queries, _DEPTH, conditions.origin)
        self._whole = f"{whole.name}@{checksum(whole)}"
        self._conditions = conditions

    @property
    def settings(self) -> Settings:
        """See `Bench.settings`."""
        return {
            **self._pretraining.settings,
            "dataset": self._whole,
            "split": self._trial.split,
            "part": checksum(self._trial.dataset),
            "n_queries": len(self._trial.qrels),
        }

    def measure(self, arm: PretrainedArm) -> Measured:
        """See `Bench.measure`; a value is the metric of a query."""
        started = time.perf_counter()
        made, conditions = self._pretraining.encoder(arm), self._conditions
        with prepared_index(self._trial.dataset, made.encoder, conditions.work, conditions.log) as ready:
            run, _ = retrieval.measure(DocumentCosine(ready.index, ready.encoder), ready.cost, self._trial)
        return made.measured(run.values(PRIMARY), time.perf_counter() - started)
