"""The interface of neural baselines, modules that return logits of pairs, and training by the trainer of the engine.

The loss of a batch is the binary cross-entropy of its pairs. It equals a paper's softmax cross-entropy over two classes
if the logit is the difference of their logits. Letters in shapes: B pairs, N documents, D width of a vector."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, normalize

from benchmarks.pair_scorer import Budget, Course, Fit, Pair, documents_of
from benchmarks.pair_selection import Selection, best_accuracy, sample_valid, train_to_best
from benchmarks.systems import Settings
from engine.encoders.backbone.hardware import default_device, default_dtype
from engine.encoders.trainable import inference
from engine.errors import TrainingError
from engine.text.document import Document
from engine.training.losses import ScaledCosine
from engine.training.task import Backward, epoch_slice
from engine.training.trainer import TrainerSettings

InputT = TypeVar("InputT", bound=Sized)  # a document as a model reads it; its length is a measure of the cost


class PairModel(nn.Module, ABC, Generic[InputT]):
    """Reads both documents of a pair together. It can re-rank candidates, but cannot be indexed."""

    @abstractmethod
    def forward(self, first: Sequence[InputT], second: Sequence[InputT]) -> Tensor:
        """Logits (B,) float32 of P(match) = sigmoid(logit), for B pairs."""

    @property
    def device(self) -> torch.device:
        """The device of the parameters."""
        return next(self.parameters()).device

    def scores(self, inputs: Mapping[str, InputT], pairs: Sequence[Pair], at_once: int) -> NDArray[np.float64]:
        """(B,) logits of pairs, in their order."""
        order = sorted(range(len(pairs)), key=lambda at: len(inputs[pairs[at].first]) + len(inputs[pairs[at].second]))
        scores = np.empty(len(pairs))
        for start in range(0, len(order), at_once):
            batch = order[start : start + at_once]
            first, second = ([inputs[doc_id] for doc_id in side] for side in _sides([pairs[at] for at in batch]))
            scores[batch] = self(first, second).float().cpu().numpy()
        return scores


class SiameseModel(PairModel[InputT]):
    """Reads each document by itself, both with the same parameters; a head compares the two vectors."""

    head: nn.Module  # from (B, D) and (B, D) to (B,)

    @abstractmethod
    def encode(self, documents: Sequence[InputT]) -> Tensor:
        """The vectors (N, D) of N documents, of any length."""

    def forward(self, first: Sequence[InputT], second: Sequence[InputT]) -> Tensor:
        """See `PairModel.forward`."""
        rows = self.encode([*first, *second])
        logits: Tensor = self.head(rows[: len(first)], rows[len(first) :])
        return logits

    def scores(self, inputs: Mapping[str, InputT], pairs: Sequence[Pair], at_once: int) -> NDArray[np.float64]:
        """The same as `PairModel.scores`, but each document is encoded once, even if it is in several pairs."""
        doc_ids = sorted(
            {doc_id for side in _sides(pairs) for doc_id in side}, key=lambda doc_id: (len(inputs[doc_id]), doc_id)
        )
        row = {doc_id: number for number, doc_id in enumerate(doc_ids)}
        batches = (doc_ids[start : start + 2 * at_once] for start in range(0, len(doc_ids), 2 * at_once))
        vectors = torch.cat([self.encode([inputs[doc_id] for doc_id in batch]) for batch in batches])
        first, second = (vectors[[row[doc_id] for doc_id in side]] for side in _sides(pairs))
        return np.asarray(self.head(first, second).float().cpu().numpy(), np.float64)


class CosineHead(nn.Module):
    """The logit a * cos + b, a and b learned; see `engine.training.losses.ScaledCosine`."""

    def __init__(self, *, middle: float = 0.0) -> None:
        """Start with a = 6.

        Args:
            middle: the cosine that has probability one half at the start. Vectors without negative values
                have no cosine below 0; with a middle of 0, the loss would drive mismatches to zero vectors.
        """
        super().__init__()
        self.scaled = ScaledCosine()
        nn.init.constant_(self.scaled.bias, -middle * self.scaled.scale.item())

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Compare vectors row by row: (B, D) and (B, D) to (B,)."""
        cosine = (normalize(first.float(), dim=-1) * normalize(second.float(), dim=-1)).sum(-1)
        logits: Tensor = self.scaled(cosine)
        return logits


def n_parameters(model: nn.Module) -> int:
    """The number of trained parameters; a frozen table does not count."""
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


def _sides(pairs: Sequence[Pair]) -> tuple[list[str], list[str]]:
    return [pair.first for pair in pairs], [pair.second for pair in pairs]


@dataclass(frozen=True, slots=True)
class PairTraining:
    """How a baseline is trained; a `Budget` limits for how long."""

    learning_rate: float = 1e-3
    warmup_share: float = 0.0  # share of the budget's steps in which the rate rises from 0
    decays: bool = False  # the rate falls to 0 over the budget's steps
    weight_decay: float = 0.0  # of matrices; biases, norms and scalars have none
    gradient_norm: float = 5.0  # larger gradients are scaled down to it
    pairs_at_once: int = 32  # of one pass; a larger batch is read in several passes, with the same gradient
    selection: Selection = field(default_factory=Selection)  # when valid pairs are scored
    mixed_precision: bool = False  # bfloat16 products if the device supports them natively

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.pairs_at_once < 1:
            raise TrainingError(f"pairs_at_once is {self.pairs_at_once}; it must be at least 1")
        if not (self.learning_rate > 0 and self.gradient_norm > 0):
            raise TrainingError(
                f"learning rate {self.learning_rate} and gradient norm {self.gradient_norm} must be above 0"
            )
        if not (0 <= self.warmup_share < 1 and self.weight_decay >= 0):
            raise TrainingError(
                f"warm-up share {self.warmup_share} must lie in [0, 1), weight decay {self.weight_decay} be at least 0"
            )

    def rate_share(self, step: int, steps: int) -> float:
        """Share of the learning rate at update `step`, counted from 0, of at most `steps`; in (0, 1]."""
        warmup = max(1.0, self.warmup_share * steps)
        return min(1.0, (step + 1) / warmup) * (1 - step / steps if self.decays else 1.0)


def train_pairs(
    model: PairModel[InputT],
    inputs: Mapping[str, InputT],
    train: Sequence[Pair],
    valid: Sequence[Pair],
    *,
    settings: PairTraining,
    budget: Budget,
    seed: int,
) -> Course:
    """Train a model in place, and leave it with the parameters of the best accuracy on valid.

    Adam (Kingma & Ba 2015, arXiv:1412.6980), with decoupled weight decay if it is above 0.

    Args:
        valid: chooses the parameters and when to stop; without any pairs the last parameters are kept.
    """
    _check(train, budget)
    looked_at = sample_valid(valid, settings.selection.pairs, seed)

    def validate() -> float:
        return best_accuracy(scores_of(model, inputs, looked_at, settings), looked_at)

    trainer = TrainerSettings(
        steps=budget.steps,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        gradient_norm=settings.gradient_norm,
        mixed_precision=settings.mixed_precision,
        seed=seed,
    )
    return train_to_best(
        _PairTask(model, inputs, train, budget.pairs_per_step, settings.pairs_at_once, seed),
        _Model(model),
        validate if looked_at else None,
        trainer,
        selection=settings.selection,
        rate=lambda step, of: settings.rate_share(step, of.steps),
    )


@dataclass(frozen=True)
class _Model:
    module: nn.Module


@dataclass(frozen=True)
class _PairTask(Generic[InputT]):
    """The `Task` of pairs, with the binary cross-entropy of each pair as its loss."""

    module: PairModel[InputT]
    inputs: Mapping[str, InputT]
    train: Sequence[Pair]
    size: int  # pairs of a batch
    at_once: int  # pairs of one pass
    seed: int

    def batch(self, step: int) -> list[Pair]:
        return [self.train[at] for at in epoch_slice(len(self.train), self.size, step, self.seed)]

    def n_tokens(self, batch: Sequence[Pair]) -> int:
        return sum(len(self.inputs[doc_id]) for pair in batch for doc_id in (pair.first, pair.second))

    def backward(self, batch: Sequence[Pair], backward: Backward) -> Mapping[str, float]:
        """Compute the gradient of a batch in several passes."""
        total = 0.0
        for start in range(0, len(batch), self.at_once):
            part = batch[start : start + self.at_once]
            logits = self.module(
                [self.inputs[pair.first] for pair in part], [self.inputs[pair.second] for pair in part]
            )
            labels = torch.tensor([float(pair.is_match) for pair in part], device=logits.device)
            loss = binary_cross_entropy_with_logits(logits.float(), labels, reduction="sum") / len(batch)
            backward(loss)
            total += loss.item()
        return {"loss": total}


def scores_of(
    model: PairModel[InputT], inputs: Mapping[str, InputT], pairs: Sequence[Pair], settings: PairTraining
) -> NDArray[np.float64]:
    """(N,) logits, without gradients or dropout, in the precision of training."""
    with inference(model), _precision(model.device, settings):
        return model.scores(inputs, pairs, settings.pairs_at_once)


def _check(train: Sequence[Pair], budget: Budget) -> None:
    n_matches = sum(pair.is_match for pair in train)
    if n_matches in (0, len(train)):
        raise TrainingError(
            f"of {len(train)} training pairs {n_matches} match; both kinds are needed: build the pairs again"
        )
    if min(budget.steps, budget.pairs_per_step) < 1:
        raise TrainingError(
            f"a budget of {budget.steps} steps of {budget.pairs_per_step} pairs trains nothing; give at least 1 of each"
        )


def _precision(device: torch.device, settings: PairTraining) -> torch.autocast:
    is_native = settings.mixed_precision and default_dtype(str(device)) is torch.bfloat16
    return torch.autocast(device.type, torch.bfloat16, enabled=is_native)


@dataclass(frozen=True)
class Prepared(Generic[InputT]):
    """A model that knows the words of a corpus, before training on pairs."""

    model: PairModel[InputT]
    read: Callable[[Document], InputT]
    encoder: str = ""  # pretrained parameters as name@checksum
    settings: Settings = field(default_factory=dict)  # settings known only now, such as the sizes of pretrained models


class Prepare(Protocol[InputT]):
    """Makes a model for a corpus."""

    def __call__(self, documents: Mapping[str, Document], *, seed: int) -> Prepared[InputT]:
        """Learn from the texts alone, for example words and their vectors."""


class TrainedScorer(Generic[InputT]):
    """See `benchmarks.pair_scorer.PairScorer`.

    Words, their vectors and trigrams are from the documents of train: documents of valid and test are unseen until
    they are scored, as for the trained encoders.
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
            device: the device of training; by default a GPU if torch finds one.
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
        """See `PairScorer.fit`."""
        self._documents, self._inputs = given.documents, {}
        named = documents_of(given.train)
        texts = {doc_id: document for doc_id, document in given.documents.items() if doc_id in named}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(given.seed)
            self._prepared = self._prepare(texts, seed=given.seed)
            model = self._on_device(self._prepared.model)
            inputs = self._read((*given.train, *given.valid))
            self.course = train_pairs(
                model, inputs, given.train, given.valid, settings=self._training, budget=given.budget, seed=given.seed
            )
        self.encoder = self._prepared.encoder
        self.settings |= {**self._prepared.settings, "n_parameters": n_parameters(model)}

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """(N,) logits of P(match); see `PairScorer.score`."""
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
        """The inputs of the model, for at least the documents of these pairs."""
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
    """The fields of a dataclass, nested ones included; None as ""."""
    assert is_dataclass(config)
    settings: Settings = {}
    for one in fields(config):
        value = getattr(config, one.name)
        if is_dataclass(value):
            settings |= {f"{one.name}_{name}": inner for name, inner in settings_of(value).items()}
        elif isinstance(value, tuple):
            settings[one.name] = " ".join(map(str, value))
        else:
            settings[one.name] = "" if value is None else value
    return settings
