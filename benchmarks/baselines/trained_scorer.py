"""A neural baseline as a `PairScorer`: reads documents, trains a model, scores pairs. The models are elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Generic, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.baselines.pair_model import InputT, PairModel, n_parameters
from benchmarks.baselines.pair_training import PairTraining, scores_of, train_pairs
from benchmarks.baselines.word_vectors import source_settings
from benchmarks.pairs.scorer import Course, Fit, Pair
from benchmarks.pairs.splitting import documents_of
from benchmarks.systems import Settings
from engine.document import Document
from engine.encoders.backbone.hardware import default_device
from engine.errors import TrainingError


@dataclass(frozen=True)
class Prepared(Generic[InputT]):
    """A model that knows the words of a corpus and has seen no pair of it."""

    model: PairModel[InputT]
    read: Callable[[Document], InputT]
    encoder: str = ""  # given weights as name@checksum
    settings: Settings = field(default_factory=dict)  # what is known of them only now, as their sizes


class Prepare(Protocol[InputT]):
    """Makes a model for a corpus."""

    def __call__(self, documents: Mapping[str, Document], *, seed: int, seconds: float) -> Prepared[InputT]:
        """Learn what the texts alone teach, as words and their vectors.

        Args:
            documents: of train alone, by doc_id.
            seed: of everything drawn; torch's own random numbers are seeded with it already.
            seconds: most that it may take, half of the budget.
        """


class TrainedScorer(Generic[InputT]):
    """See `benchmarks.pairs.scorer.PairScorer`.

    Words, their vectors and trigrams are those of the documents of train: of valid and test nothing is
    known before they are scored, as for the encoders that are trained beside it.
    """

    is_trained = True

    def __init__(
        self,
        name: str,
        config: Settings,
        training: PairTraining,
        prepare: Prepare[InputT],
        *,
        device: str | None = None,
    ) -> None:
        """Name a baseline.

        Args:
            name: short and lower case.
            config: of the model, for the record; see `settings_of`.
            training: how it is trained.
            prepare: makes the model.
            device: where it is trained; by default a GPU where torch sees one.
        """
        self.name = name
        self.encoder = ""
        self.course: Course | None = None
        self.settings: Settings = {**config, **settings_of(training)}
        self._training = training
        self._prepare = prepare
        self._device = device or default_device()
        self._prepared: Prepared[InputT] | None = None
        self._documents: Mapping[str, Document] = {}
        self._inputs: dict[str, InputT] = {}

    def fit(self, given: Fit) -> None:
        """See `PairScorer.fit`. What the budget's seconds count begins here: reading texts is part of it.

        Raises:
            TrainingError: as `train_pairs`, a pair names a document that is not there, or the device cannot be used.
        """
        started = time.monotonic()
        self._documents, self._inputs = given.documents, {}
        named = documents_of(given.train)
        texts = {doc_id: document for doc_id, document in given.documents.items() if doc_id in named}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(given.seed)
            self._prepared = self._prepare(texts, seed=given.seed, seconds=given.budget.seconds / 2)
            model = self._on_device(self._prepared.model)
            inputs = self._read((*given.train, *given.valid))
            left = replace(given.budget, seconds=given.budget.seconds - (time.monotonic() - started))
            self.course = train_pairs(
                model, inputs, given.train, given.valid, settings=self._training, budget=left, seed=given.seed
            )
        self.encoder = self._prepared.encoder
        self.settings |= {**self._prepared.settings, "n_parameters": n_parameters(model)}

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """(N,) logits of P(match); see `PairScorer.score`.

        Raises:
            TrainingError: nothing was learned yet, or a pair names a document that is not there.
        """
        if self._prepared is None:
            raise TrainingError(f"{self.name} has learned from no pairs yet; call fit before score")
        if not pairs:
            return np.empty(0)
        return scores_of(self._prepared.model, self._read(pairs), pairs, self._training)

    def _on_device(self, model: PairModel[InputT]) -> PairModel[InputT]:
        try:
            return model.to(self._device)
        except (AssertionError, RuntimeError) as error:  # torch raises either
            raise TrainingError(f"device {self._device!r} cannot be used ({error}); take another, as cpu") from error

    def _read(self, pairs: Iterable[Pair]) -> Mapping[str, InputT]:
        """What the model reads, of these pairs' documents at least."""
        assert self._prepared is not None
        for doc_id in dict.fromkeys(doc_id for pair in pairs for doc_id in (pair.first, pair.second)):
            if doc_id not in self._documents:
                raise TrainingError(
                    f"a pair names document {doc_id!r}, which is none of the {len(self._documents)} given; "
                    "give fit the documents of all pairs"
                )
            if doc_id not in self._inputs:
                self._inputs[doc_id] = self._prepared.read(self._documents[doc_id])
        return self._inputs


def settings_of(config: object) -> Settings:
    """The fields of a dataclass, and of dataclasses in it; word vectors as name@checksum of their file, None as ""."""
    assert is_dataclass(config)
    settings: Settings = {}
    for one in fields(config):
        value = getattr(config, one.name)
        if is_dataclass(value):
            settings |= {f"{one.name}_{name}": inner for name, inner in settings_of(value).items()}
        elif isinstance(value, Path):
            settings |= source_settings(value)
        elif isinstance(value, tuple):
            settings[one.name] = " ".join(map(str, value))
        else:
            settings[one.name] = "" if value is None else value
    return settings
