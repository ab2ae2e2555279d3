"""Neural baselines as modules that return logits of pairs, and as scorers: words, first tokens or trigrams in.

The loss of a batch is the binary cross-entropy of its pairs. It equals a paper's softmax cross-entropy over two classes
if the logit is the difference of their logits. Letters in shapes: B pairs, N documents, D width of a vector."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, normalize

from benchmarks.pairs.scoring import Budget, Course, Fit, Learned, Pair, PairScorer
from benchmarks.pairs.training import Selection, best_accuracy, sample_valid, train_to_best
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

    def rate_share(self, step: int, steps: int) -> float:
        """Share of the learning rate at update `step`, counted from 0, of at most `steps`; in (0, 1]."""
        warmup = max(1.0, self.warmup_share * steps)
        return min(1.0, (step + 1) / warmup) * (1 - step / steps if self.decays else 1.0)


def train_pairs(model: PairModel[InputT], inputs: Mapping[str, InputT], given: Fit, settings: PairTraining) -> Course:
    """Train a model in place, and leave it with the parameters of the best accuracy on valid.

    Adam (Kingma & Ba 2015, arXiv:1412.6980), with decoupled weight decay if it is above 0. Without any pair of valid
    the last parameters are kept.
    """
    _check(given.train, given.budget)
    looked_at = sample_valid(given.valid, settings.selection.pairs, given.seed)

    def validate() -> float:
        return best_accuracy(scores_of(model, inputs, looked_at, settings), looked_at)

    trainer = TrainerSettings(
        steps=given.budget.steps,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        gradient_norm=settings.gradient_norm,
        mixed_precision=settings.mixed_precision,
        seed=given.seed,
    )
    return train_to_best(
        _PairTask(model, inputs, given, settings.pairs_at_once),
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
    given: Fit
    at_once: int  # pairs of one pass

    def batch(self, step: int) -> list[Pair]:
        train, size = self.given.train, self.given.budget.pairs_per_step
        return [train[at] for at in epoch_slice(len(train), size, step, self.given.seed)]

    def n_tokens(self, batch: Sequence[Pair]) -> int:
        return sum(len(self.inputs[doc_id]) for pair in batch for doc_id in (pair.first, pair.second))

    def backward(self, batch: Sequence[Pair], backward: Backward) -> Mapping[str, float]:
        """Compute the gradient of a batch in several passes."""
        total = 0.0
        for start in range(0, len(batch), self.at_once):
            part = batch[start : start + self.at_once]
            first, second = ([self.inputs[doc_id] for doc_id in side] for side in _sides(part))
            logits = self.module(first, second)
            labels = torch.tensor([float(pair.is_match) for pair in part], device=logits.device)
            loss = binary_cross_entropy_with_logits(logits.float(), labels, reduction="sum") / len(batch)
            backward(loss)
            total += loss.item()
        return {"loss": total}


def scores_of(
    model: PairModel[InputT], inputs: Mapping[str, InputT], pairs: Sequence[Pair], settings: PairTraining
) -> NDArray[np.float64]:
    """(N,) logits, without gradients or dropout, in the precision of training."""
    is_native = settings.mixed_precision and default_dtype(str(model.device)) is torch.bfloat16
    with inference(model), torch.autocast(model.device.type, torch.bfloat16, enabled=is_native):
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


@dataclass(frozen=True)
class Prepared(Generic[InputT]):
    """A model that knows the words of a corpus, before training on pairs."""

    model: PairModel[InputT]
    read: Callable[[Document], InputT]
    encoder: str = ""  # pretrained parameters as name@checksum
    settings: Settings = field(default_factory=dict)  # settings known only now, such as the sizes of pretrained models


# From the documents of train, whose words, vectors and trigrams a model learns, and a seed.
Prepare: TypeAlias = Callable[[Mapping[str, Document], int], Prepared[InputT]]


def model_scorer(
    name: str, config: Settings, training: PairTraining, prepare: Prepare[InputT], *, device: str | None = None
) -> PairScorer:
    """A baseline as a scorer: documents of valid and test are unseen until they are scored, as for encoders."""

    def learn(given: Fit) -> Learned:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(given.seed)
            prepared = prepare(given.texts, given.seed)
            model, inputs = _on_device(prepared.model, device or default_device()), dict[str, InputT]()
            _read((*given.train, *given.valid), given.documents, prepared.read, inputs)
            course = train_pairs(model, inputs, given, training)

        def score(pairs: Sequence[Pair]) -> NDArray[np.float64]:
            _read(pairs, given.documents, prepared.read, inputs)
            return scores_of(model, inputs, pairs, training) if pairs else np.empty(0)

        settings = {**prepared.settings, "n_parameters": n_parameters(model)}
        return Learned(score, prepared.encoder, settings, course)

    return PairScorer(name, {**config, **settings_of(training)}, learn, is_trained=True)


def _on_device(model: PairModel[InputT], device: str) -> PairModel[InputT]:
    try:
        return model.to(device)
    except (AssertionError, RuntimeError) as error:  # torch raises either
        raise TrainingError(f"device {device!r} cannot be used ({error}); take another, as cpu") from error


def _read(
    pairs: Iterable[Pair],
    documents: Mapping[str, Document],
    read: Callable[[Document], InputT],
    inputs: dict[str, InputT],
) -> None:
    """Add to `inputs` those of the documents of pairs."""
    for doc_id in dict.fromkeys(doc_id for pair in pairs for doc_id in (pair.first, pair.second)):
        if doc_id not in inputs:
            inputs[doc_id] = read(documents[doc_id])


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
