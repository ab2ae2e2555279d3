"""Classification probes as the task of a comparison: what a linear classifier learns from frozen vectors."""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks import probes
from benchmarks.papers.comparison import Conditions, Measured
from benchmarks.papers.pretrained_arm import PretrainedArm, Pretraining
from benchmarks.prepare import prepared_documents
from benchmarks.probing.frozen_vectors import encoder_vectors
from benchmarks.probing.labelled import LabelledCorpus, open_labelled, part_of
from benchmarks.systems import Settings

ACCURACY = "accuracy"
_N_DRAWS = 10  # of few labels, as in the paper
_VALID_SHARE = 5  # a fifth as many documents choose the classifier's C as test it


@dataclass(frozen=True)
class ProbeTask:
    """Classes of documents; a case of the scale is a document of each class.

    With all labels a value is 1 where a document of test is classified rightly. With few it is the
    accuracy of a draw of labels: cases are the draws, and tests say what is chance of drawing alone.
    """

    dataset: str  # of `benchmarks.probing.labelled`
    labels: int = 0  # a class; 0 for all of the part

    @property
    def metric(self) -> str:
        """See `Task.metric`."""
        return f"{ACCURACY} from {self.labels} labels a class" if self.labels else ACCURACY

    def open(self, conditions: Conditions) -> ProbeBench:
        """See `Task.open`."""
        return ProbeBench(self, conditions)


class ProbeBench:
    """A part of a corpus with classes."""

    def __init__(self, task: ProbeTask, conditions: Conditions) -> None:
        """Draw the part.

        Raises:
            DatasetError: a corpus is not there.
            EncoderError: the backbone cannot be found.
        """
        scale = conditions.scale
        self._pretraining = Pretraining(conditions)
        whole = open_labelled(task.dataset, conditions.data)
        n = scale.n_test
        sizes = {"train": n, "valid": max(1, n // _VALID_SHARE), "test": n}
        corpus = part_of(whole, sizes, conditions.origin.seed)
        self._trial = probes.ProbeTrial(
            corpus=corpus,
            shots=(task.labels,) if task.labels else (),
            n_draws=_N_DRAWS,
            max_words=scale.max_words,
            is_quick=conditions.is_quick,
            origin=conditions.origin,
        )
        self._task, self._conditions = task, conditions

    @property
    def settings(self) -> Settings:
        """See `Bench.settings`."""
        corpus = self._trial.corpus
        return {
            **self._pretraining.settings,
            "dataset": f"{corpus.name}@{corpus.checksum}",
            "n_labelled": len(corpus.splits["train"]),
            "n_test_documents": len(corpus.splits["test"]),
            "labels": self._task.labels,
        }

    def measure(self, arm: PretrainedArm) -> Measured:
        """See `Bench.measure`."""
        started = time.perf_counter()
        made, conditions, trial = self._pretraining.encoder(arm), self._conditions, self._trial
        documents = probes.documents_of(trial)
        with prepared_documents(_name(trial), documents, made.encoder, conditions.work, conditions.log) as ready:
            record = probes.measure(encoder_vectors(ready), trial)
        few = record.few_shot.get(str(self._task.labels))
        values = [float(one) for one in record.is_right] if few is None else few[ACCURACY]
        return made.measured(values, time.perf_counter() - started)


def _name(trial: probes.ProbeTrial) -> str:
    """Of the documents, for their vectors: with all that decides which they are."""
    corpus: LabelledCorpus = trial.corpus
    sizes = "x".join(str(len(corpus.splits[split])) for split in corpus.splits)
    return f"{corpus.name}@{corpus.checksum}-first{trial.max_words}-{sizes}-seed{trial.origin.seed}"
