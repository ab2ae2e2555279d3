"""Pair matching where the documents of test, and of nothing else, are read in another order; one training for all.

Figure 8 of CoLDE shuffles the sections of test documents. Which numbers the chunks have then is not told: those of the
order as written, which go with them (as in the authors' code), or those of their new places (as in a document whose
sections were moved)."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.pairs.judging import accuracy_threshold, is_correct
from benchmarks.pairs.scorer import Course, Pair
from benchmarks.pairs.splitting import Split
from benchmarks.pairs.tables import PairsDetails
from benchmarks.papers.comparison import Conditions, Measured, flat
from benchmarks.papers.pairs_task import ACCURACY, EncoderArm, MatchingBench, MatchingTask, size_of
from benchmarks.record_file import rebuild
from benchmarks.systems import Settings
from benchmarks.tasks.pairs import measure
from engine.encoders.encoder import SegmentedDocument, Vectors
from engine.encoders.loading import load_encoder
from engine.encoders.trainable import TrainableEncoder, inference
from engine.errors import TrainingError


class Unit(StrEnum):
    """What changes places."""

    SECTIONS = "sections"  # headed ones, each with its chunks in their order
    CHUNKS = "chunks"


class Numbers(StrEnum):
    """When chunks are numbered."""

    FOLLOW = "follow"  # before: numbers go with them
    ANEW = "anew"  # after


def shuffled_order(document: SegmentedDocument, unit: Unit, rng: np.random.Generator) -> list[int]:
    """The chunks of a document by their places as written, in a random order of units."""
    places = range(len(document.chunks))
    if unit is Unit.CHUNKS:
        return [int(place) for place in rng.permutation(len(places))]
    sections = [list(own) for _, own in groupby(places, key=lambda place: document.chunks[place].section)]
    return [place for number in rng.permutation(len(sections)) for place in sections[number]]


def document_vector(
    encoder: TrainableEncoder, document: SegmentedDocument, order: list[int], numbers: Numbers
) -> Vectors:
    """The vector of a document whose chunks are read in another order.

    Args:
        encoder: of two stages, the first of which numbers chunks, as CoLDE's.
        document: segmented by it.
        order: its chunks by their places as written.
        numbers: those that they have.

    Returns:
        (D,) float32, unit length.
    """
    if numbers is Numbers.ANEW:
        moved = SegmentedDocument(
            document.document,
            tuple(document.chunks[place] for place in order),
            tuple(document.token_ids[place] for place in order),
            document.coverage,
        )
        return encoder.encode_segmented([moved])[0].document
    with inference(encoder.module):
        states: Tensor = encoder.states([document])[0]  # (C, H), numbered as written
        vector: Vectors = encoder.combine([document], [states[order]]).documents[0].float().cpu().numpy()
    return vector


_COURSE = "training.json"  # written last: a folder that holds it is whole


@dataclass(frozen=True)
class ReadingArm:
    """How documents of test are read; as they are written where there is no unit."""

    unit: Unit | None = None
    numbers: Numbers = Numbers.FOLLOW
    n_orders: int = 5  # of each document, with a seed each; a value is the mean over them

    @property
    def settings(self) -> Settings:
        """See `Arm.settings`."""
        return flat(asdict(self)) if self.unit else {"unit": "none"}


@dataclass(frozen=True)
class ShuffledTask:
    """Pairs told apart by one encoder, however its documents are read.

    It is trained once, in the order as written, and kept: the weights are what is compared with
    themselves. The threshold is that of valid documents as written.
    """

    matching: MatchingTask
    arm: EncoderArm

    @property
    def metric(self) -> str:
        """See `Task.metric`."""
        return ACCURACY

    def open(self, conditions: Conditions) -> ShuffledBench:
        """See `Task.open`."""
        return ShuffledBench(self, conditions)


@dataclass(frozen=True)
class _Kept:
    """What is known of a training that was made before."""

    course: Course
    encoder: str
    begins_with: str


class ShuffledBench:
    """Pairs, and an encoder that is trained when it is first asked for."""

    def __init__(self, task: ShuffledTask, conditions: Conditions) -> None:
        """Read the pairs; see `MatchingBench`."""
        self._bench = MatchingBench(task.matching, conditions)
        self._arm = task.arm

    @property
    def settings(self) -> Settings:
        """See `Bench.settings`; the training is that of all variants."""
        return {**self._bench.settings, **{f"trained_{name}": value for name, value in self._arm.settings.items()}}

    def measure(self, arm: ReadingArm) -> Measured:
        """See `Bench.measure`; a value is the share of orders in which a pair of test is called right."""
        started = time.perf_counter()
        conditions, splits = self._bench.conditions, self._bench.trial.splits
        folder, kept = self._trained()
        encoder = load_encoder(str(folder), device=conditions.device, dtype=torch.float32)
        if not isinstance(encoder, TrainableEncoder):
            raise TrainingError(f"{folder} holds no encoder that was trained; remove it, and it is trained again")
        texts = _Segmented(encoder, self._bench)
        valid = splits[Split.VALID]
        as_written = [_cosine(texts.as_written(pair.first), texts.as_written(pair.second)) for pair in valid]
        threshold = accuracy_threshold(as_written, [pair.is_match for pair in valid])
        test = splits[Split.TEST]
        orders = range(arm.n_orders if arm.unit else 1)
        correct = np.mean([_correct(test, texts.reader(arm, order), threshold) for order in orders], axis=0)
        return Measured(
            values=correct.tolist(),
            groups=self._bench.groups,
            encoder=kept.encoder,
            begins_with=kept.begins_with,
            size=size_of(encoder),
            n_train=len(splits[Split.TRAIN]),
            n_steps=kept.course.n_steps,
            best_step=kept.course.best_step,
            seconds=time.perf_counter() - started,
            remark=f"{arm.n_orders} orders a document" if arm.unit else "",
        )

    def _trained(self) -> tuple[Path, _Kept]:
        """The folder of the encoder, and how it came to be; trained where it is not there."""
        conditions = self._bench.conditions
        asked = {**self.settings, **asdict(conditions.scale), "seed": conditions.origin.seed}
        digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12]
        folder = conditions.work / "papers" / f"{self._arm.recipe}-{digest}"
        if (folder / _COURSE).exists():
            return folder, rebuild(_Kept, json.loads((folder / _COURSE).read_text("utf-8")))
        conditions.log(f"{self._arm.recipe}: trained once for all orders")
        scorer = self._arm.scorer(conditions)
        run = measure(scorer, replace(self._bench.trial, budget=self._arm.budget(conditions.scale)))
        course = run.details_as(PairsDetails).course
        assert course is not None
        kept = _Kept(course, run.encoder, str(run.settings["begins_with"]))
        folder.mkdir(parents=True, exist_ok=True)
        scorer.trained.save_pretrained(folder)
        (folder / _COURSE).write_text(json.dumps(asdict(kept)), "utf-8")
        return folder, kept


class _Segmented:
    """Documents as an encoder cuts them, each once; and their vectors as written."""

    def __init__(self, encoder: TrainableEncoder, bench: MatchingBench) -> None:
        self._encoder = encoder
        self._documents = bench.trial.documents
        self._seed = bench.conditions.origin.seed
        self._segmented: dict[str, SegmentedDocument] = {}
        self._vectors: dict[str, Vectors] = {}

    def as_written(self, doc_id: str) -> Vectors:
        if doc_id not in self._vectors:
            self._vectors[doc_id] = self._encoder.encode_segmented([self._cut(doc_id)])[0].document
        return self._vectors[doc_id]

    def reader(self, arm: ReadingArm, number: int) -> Callable[[str], Vectors]:
        """Reads documents by the arm, in the order of a number; each order is the same for all arms of its unit."""
        if arm.unit is None:
            return self.as_written
        unit, read = arm.unit, {}

        def vector(doc_id: str) -> Vectors:
            if doc_id not in read:
                rng = np.random.default_rng([self._seed, number, *doc_id.encode()])
                document = self._cut(doc_id)
                read[doc_id] = document_vector(
                    self._encoder, document, shuffled_order(document, unit, rng), arm.numbers
                )
            found: Vectors = read[doc_id]
            return found

        return vector

    def _cut(self, doc_id: str) -> SegmentedDocument:
        if doc_id not in self._segmented:
            self._segmented[doc_id] = self._encoder.segment(self._documents[doc_id])
        return self._segmented[doc_id]


def _correct(pairs: Sequence[Pair], vector: Callable[[str], Vectors], threshold: float) -> list[float]:
    scores = [_cosine(vector(pair.first), vector(pair.second)) for pair in pairs]
    return [float(one) for one in is_correct(scores, [pair.is_match for pair in pairs], threshold)]


def _cosine(one: Vectors, other: Vectors) -> float:
    return float(one @ other)
