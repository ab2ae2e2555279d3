"""Pair matching as the task of a comparison: encoders trained on pairs tell which others match."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from benchmarks.cut import first_words
from benchmarks.matching import Trial, measure
from benchmarks.pairs.judging import is_correct
from benchmarks.pairs.preparing import Asked, prepared_pairs
from benchmarks.pairs.scorer import Budget
from benchmarks.pairs.splitting import PairSplits, Split, SplitRule, documents_of, pairs_checksum
from benchmarks.papers.comparison import Conditions, Measured
from benchmarks.papers.encoder_arm import EncoderArm, size_of
from benchmarks.prepare import encoder_label
from benchmarks.systems import Settings
from engine.encoders.backbone.weights import resolve_backbone, weights_sha256

ACCURACY = "accuracy"


@dataclass(frozen=True)
class MatchingTask:
    """Pairs of a corpus; a case of the scale is a pair that matches, with one that does not.

    No document stands in two splits. The threshold is that of best accuracy on valid.
    """

    dataset: str  # of `benchmarks.datasets`
    protocol: str = "aan"  # of `benchmarks.pairs.building`

    @property
    def metric(self) -> str:
        """See `Task.metric`."""
        return ACCURACY

    def open(self, conditions: Conditions) -> MatchingBench:
        """See `Task.open`."""
        return MatchingBench(self, conditions)


class MatchingBench:
    """Pairs of a corpus, and their documents."""

    def __init__(self, task: MatchingTask, conditions: Conditions) -> None:
        """Read the corpus and draw its pairs.

        Raises:
            DatasetError: the corpus is not there, or too few pairs are left.
            EncoderError: the backbone cannot be found.
        """
        scale, seed = conditions.scale, conditions.origin.seed
        most = max(scale.n_train, scale.n_test)
        asked = Asked(task.protocol, SplitRule.DOCUMENT, None, seed, most)
        prepared = prepared_pairs(task.dataset, conditions.data, asked)
        splits = _cut(
            prepared.splits, {Split.TRAIN: scale.n_train, Split.VALID: scale.n_test, Split.TEST: scale.n_test}
        )
        named = {doc_id for pairs in splits.values() for doc_id in documents_of(pairs)}
        self.conditions = conditions
        self.trial = Trial(
            task=prepared.task,
            dataset=prepared.dataset,
            protocol=task.protocol,
            rule=asked.rule,
            documents={
                doc_id: first_words(document, scale.max_words)
                for doc_id, document in prepared.documents.items()
                if doc_id in named
            },
            splits=splits,
            n_lost=prepared.n_lost,
            budget=Budget(),  # gives way to the arm's
            is_quick=conditions.is_quick,
            origin=conditions.origin,
        )
        self._backbone = backbone_label(conditions.encoder)

    @property
    def settings(self) -> Settings:
        """See `Bench.settings`."""
        trial = self.trial
        return {
            "dataset": trial.dataset,
            "protocol": trial.protocol,
            "split_rule": trial.rule.value,
            "pairs": pairs_checksum(trial.splits),
            "n_test_pairs": len(trial.splits[Split.TEST]),
            "backbone": self._backbone,
        }

    @property
    def groups(self) -> list[int]:
        """Of each pair of test the number of its first document: pairs of one are not independent."""
        firsts = [pair.first for pair in self.trial.splits[Split.TEST]]
        number = {doc_id: at for at, doc_id in enumerate(dict.fromkeys(firsts))}
        return [number[doc_id] for doc_id in firsts]

    def measure(self, arm: EncoderArm) -> Measured:
        """See `Bench.measure`; a value is 1 where a pair of test is called right."""
        started = time.perf_counter()
        scorer = arm.scorer(self.conditions)
        trial = self.trial
        budget = arm.budget(self.conditions.scale)
        record = measure(scorer, replace(trial, budget=budget))
        correct = is_correct(record.scores, record.labels, record.at_accuracy.threshold)
        course = record.course
        assert course is not None
        return Measured(
            values=[float(one) for one in correct],
            groups=self.groups,
            encoder=record.encoder,
            begins_with=str(record.settings["begins_with"]),
            size=size_of(scorer.trained),
            n_train=len(trial.splits[Split.TRAIN]),
            n_steps=course.pretraining_steps + course.n_steps,
            best_step=course.best_step,
            seconds=time.perf_counter() - started,
        )


def backbone_label(encoder: str) -> str:
    """An encoder as name@checksum of its weights, before it is loaded.

    Raises:
        EncoderError: it cannot be found.
    """
    return f"{encoder_label(encoder)}@{weights_sha256(resolve_backbone(encoder))[:12]}"


def _cut(splits: PairSplits, most: Mapping[Split, int]) -> PairSplits:
    """The first pairs of each split: they alternate, so that any beginning of even length is balanced."""
    return {split: pairs[: 2 * most[split]] for split, pairs in splits.items()}
