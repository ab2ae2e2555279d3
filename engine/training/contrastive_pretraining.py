"""Contrastive pretraining on documents alone: views of a batch, a queue of earlier views, or two encoders."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn

from engine.encoders.encoder import SegmentedDocument
from engine.encoders.trainable import TOKEN_BUDGET, Embedded, MeanEncoder, TrainableEncoder
from engine.errors import TrainingError
from engine.settings import ABOVE_ZERO, COUNT, FROM_ZERO, SHARE, Checked, setting
from engine.training.losses import contrastive_tension, info_nce
from engine.training.masked_words import MaskedWordLoss, backbone_of
from engine.training.task import Backward, backward_in_groups, full_precision, step_generator, tokens_read
from engine.training.views import ViewBatch, ViewPairs

_INITIAL_STD = 0.02


@dataclass(frozen=True)
class ViewsSettings(Checked):
    """Settings of the loss; DocSplit has a weight of 0.1 for masked words."""

    temperature: float = setting(0.05, "temperature of the contrastive loss", ABOVE_ZERO)
    mlm_weight: float = setting(0.0, "weight of the masked-word loss", FROM_ZERO)
    mlp_head: bool = setting(False, "a dense layer over the vectors, in training alone")
    group_tokens: int | None = setting(None, "most tokens of a backward pass; fewer need less memory", COUNT)
    queue: int = setting(0, "earlier views that are negatives", FROM_ZERO)
    momentum: float = setting(0.9995, "momentum of the encoder that fills the queue", SHARE)
    seed: int = 0  # of the heads

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.queue and (self.mlm_weight or self.mlp_head or self.group_tokens):
            raise TrainingError(
                f"a queue of {self.queue} goes with none of mlm weight, mlp head and group tokens; "
                "leave them out, or train with the negatives of the batch: --set queue=0"
            )


class _OfViews:
    """The batches of a task over the views of documents."""

    pairs: ViewPairs

    def batch(self, step: int) -> ViewBatch:
        return self.pairs.batch(step)

    def n_tokens(self, batch: ViewBatch) -> int:
        """Tokens of both views; see `Task.n_tokens`."""
        return tokens_read((*batch.queries, *batch.targets))


class ContrastivePretraining(_OfViews):
    """A `Task`: the objective of DocSplit, over the views of any sampler.

        L = mean_i -log( exp(cos(u_i, v_i) / tau) / sum_j exp(cos(u_i, v_j) / tau) ) + lambda L_mlm

    with u_i, v_i the document vectors of the two views of document i, tau = 0.05,
    lambda = 0.1; Gao et al. (2021, arXiv:2104.08821), eq. 1 and its auxiliary masked-word
    loss, which DocSplit follows. With DocSplit's partition it is DocSplit; with halves, crops,
    inverse cloze or the same text twice it is a method that the paper compares with.

    The paper does not say how it pools. SimCSE uses `mlp_head` over a backbone that pools by
    its first token; means, without the head, are our choice.
    """

    def __init__(self, encoder: TrainableEncoder, pairs: ViewPairs, settings: ViewsSettings = ViewsSettings()) -> None:
        """Prepare the encoder and its heads."""
        self.encoder = encoder
        self.pairs = pairs
        self.settings = settings
        self.module = nn.ModuleDict({"encoder": encoder.module})
        self._projection: ProjectionHead | None = None
        self._backbone, self._words = None, None
        if settings.mlp_head:
            generator = torch.Generator().manual_seed(settings.seed)
            device = next(encoder.module.parameters()).device
            self._projection = ProjectionHead(encoder.width, generator).to(device)
            self.module["projection"] = self._projection
        if settings.mlm_weight:
            self._backbone = backbone_of(encoder, "has no backbone that guesses words; set mlm_weight to 0")
            self._words = MaskedWordLoss(self._backbone, seed=settings.seed)
            self.module["words"] = self._words

    def backward(self, batch: ViewBatch, backward: Backward) -> Mapping[str, float]:
        """See `Task.backward`; the parts are "contrastive" and, if `mlm_weight` is above 0, "mlm"."""
        documents = [*batch.queries, *batch.targets]
        loss = backward_in_groups(self.encoder, documents, self._loss, backward, self.settings.group_tokens)
        parts = {"contrastive": loss, "loss": loss}
        if self._words is not None and self._backbone is not None:
            parts["mlm"] = self._words.backward(
                self._backbone,
                [ids for document in documents for ids in document.token_ids],
                backward,
                weight=self.settings.mlm_weight,
                token_budget=self.settings.group_tokens or TOKEN_BUDGET,
                seed=batch.seed,
            )
            parts["loss"] += self.settings.mlm_weight * parts["mlm"]
        return parts

    def _loss(self, embedded: Embedded) -> Tensor:
        vectors = embedded.documents
        with full_precision(vectors.device):
            if self._projection is not None:
                vectors = self._projection(vectors)
            queries, targets = vectors.chunk(2)
            return info_nce(
                queries,
                targets,
                torch.arange(len(queries), device=vectors.device),
                temperature=self.settings.temperature,
            )


class ProjectionHead(nn.Module):
    """unit(tanh(W sqrt(D) v + b)), a dense layer that only training uses.

    The input of SimCSE's head is the output of a layer norm, of length near sqrt(D);
    a unit vector is scaled to that length.
    """

    def __init__(self, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        nn.init.normal_(self.dense.weight, std=_INITIAL_STD, generator=generator)
        nn.init.zeros_(self.dense.bias)

    def forward(self, vectors: Tensor) -> Tensor:
        """(B, D) unit rows to (B, D) unit rows."""
        states = vectors * vectors.shape[-1] ** 0.5
        return nn.functional.normalize(self.dense(states).tanh(), dim=-1)


class MomentumModule(nn.Module):
    """Both encoders and the queue, so that a resumed run has all three."""

    queue: Tensor  # (K, D) float32, unit rows
    owners: Tensor  # (K,) int64, position of the document of each row
    n_written: Tensor  # scalar int64, rows written so far

    def __init__(self, encoder: nn.Module, keys: nn.Module, queue_size: int, width: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.keys = keys.requires_grad_(False)
        self.register_buffer("queue", torch.zeros(queue_size, width))
        self.register_buffer("owners", torch.full((queue_size,), -1))
        self.register_buffer("n_written", torch.zeros((), dtype=torch.int64))


class MomentumContrast(_OfViews):
    """A `Task`: the views of earlier steps are the negatives.

    MoCo (He et al. 2020, arXiv:1911.05722, section 3) as Contriever trains it (Izacard et
    al. 2022, arXiv:2112.09118): queries are encoded with gradients, targets by a second
    encoder that follows the first one slowly,

        theta_k <- m theta_k + (1 - m) theta_q

    and the last K of them stay in a queue. Three departures: vectors are unit length, since
    search compares cosines (Contriever's code uses raw dot products); the other targets
    of the batch are negatives, too; and until the queue is full only its written rows
    count, where the code fills it with noise. Rows of the same document, from an
    earlier epoch, are not negatives.
    """

    def __init__(self, encoder: TrainableEncoder, pairs: ViewPairs, settings: ViewsSettings) -> None:
        """Hold an encoder and a copy of it."""
        if settings.queue < pairs.batch_size:
            raise TrainingError(
                f"a queue of {settings.queue} does not hold a batch of {pairs.batch_size}; give it some thousands"
            )
        self.encoder = encoder
        self.pairs = pairs
        self.settings = settings
        self._keys = copy.deepcopy(encoder)
        device = next(encoder.module.parameters()).device
        self.module = MomentumModule(encoder.module, self._keys.module, settings.queue, encoder.width).to(device)

    def backward(self, batch: ViewBatch, backward: Backward) -> Mapping[str, float]:
        """See `Task.backward`; it also updates the second encoder and the queue."""
        self._follow()
        rows = self._write(batch)
        in_use = self.module.queue[: int(self.module.n_written)]
        owners = self.module.owners[: len(in_use)]
        queries = self.encoder.embed(batch.queries).documents
        with full_precision(queries.device):
            loss = info_nce(
                queries,
                in_use,
                rows,
                temperature=self.settings.temperature,
                excluded=owners == self.module.owners[rows, None],
            )
        backward(loss)
        return {"loss": loss.item()}

    @torch.no_grad()
    def _follow(self) -> None:
        for key, query in zip(self.module.keys.parameters(), self.module.encoder.parameters(), strict=True):
            key.lerp_(query, 1 - self.settings.momentum)

    @torch.no_grad()
    def _write(self, batch: ViewBatch) -> Tensor:
        """Write the targets over the oldest rows of the queue; returns the positions of these rows, (B,)."""
        module = self.module
        targets = self._keys.embed(batch.targets).documents
        rows = (module.n_written + torch.arange(len(targets), device=targets.device)) % len(module.queue)
        module.queue[rows] = targets
        module.owners[rows] = torch.tensor(batch.positions, device=targets.device)
        module.n_written += len(targets)
        return rows


@dataclass(frozen=True, slots=True)
class TensionBatch:
    """P texts for the first encoder; for the second the same texts, each followed by K others."""

    one: tuple[SegmentedDocument, ...]  # P
    other: tuple[SegmentedDocument, ...]  # P (K + 1)
    labels: tuple[bool, ...]  # P (K + 1)


class ContrastiveTension:
    """A `Task`: Carlsson et al. (2021), "Semantic Re-tuning with Contrastive Tension".

        L = mean BCE( <f_1(s), f_2(x)>, x = s )  over x = s and K random other texts, for each s

    with raw dot products and means over tokens. The encoders start equal and share no
    parameters. The first encoder encodes a text once, where the paper encodes it K + 1
    times; only dropout differs. The optimizer is the trainer's AdamW with its schedule,
    where the authors use RMSprop with learning rates that fall from 1e-5 to 2e-6 in four steps.
    """

    def __init__(self, encoder: MeanEncoder, pairs: ViewPairs, *, negatives: int = 7) -> None:
        """Hold an encoder and a copy of it.

        Args:
            pairs: segmented by the same encoder. Its batch size counts the pairs of texts, of which K in
                K + 1 are of different texts. Its sampler is not used: both encoders read the same text.
            negatives: K, at least 1.
        """
        if not 1 <= negatives < len(pairs.documents):
            raise TrainingError(
                f"{negatives} negatives must be at least 1, and fewer than the {len(pairs.documents)} documents"
            )
        if pairs.batch_size % (negatives + 1):
            raise TrainingError(
                f"a batch of {pairs.batch_size} pairs is no multiple of one text with {negatives} others; "
                f"take {max(1, pairs.batch_size // (negatives + 1)) * (negatives + 1)}"
            )
        self.encoders = (encoder, copy.deepcopy(encoder))
        self.pairs = pairs
        self.negatives = negatives
        self.module = nn.ModuleDict({"one": encoder.module, "other": self.encoders[1].module})

    def batch(self, step: int) -> TensionBatch:
        """See `Task.batch`."""
        pairs = self.pairs
        rng = step_generator(pairs.seed, step)

        def read(position: int) -> list[SegmentedDocument]:
            drawn = rng.choice(len(pairs.documents) - 1, self.negatives, replace=False)
            # Positions from `position` on move up by one, so that a text is not its own negative.
            places = [position, *(int(place) + (place >= position) for place in drawn)]
            return [pairs.stretch(pairs.documents[place], rng) for place in places]

        drawn = pairs.draw(step, pairs.batch_size // (self.negatives + 1), read)
        labels = ([True] + [False] * self.negatives) * len(drawn)
        return TensionBatch(tuple(texts[0] for texts in drawn), tuple(chain(*drawn)), tuple(labels))

    def n_tokens(self, batch: TensionBatch) -> int:
        """Tokens that the two encoders read; see `Task.n_tokens`."""
        return tokens_read((*batch.one, *batch.other))

    def backward(self, batch: TensionBatch, backward: Backward) -> Mapping[str, float]:
        """See `Task.backward`."""
        one = raw_vectors(self.encoders[0], batch.one).repeat_interleave(self.negatives + 1, dim=0)
        other = raw_vectors(self.encoders[1], batch.other)
        with full_precision(one.device):
            loss = contrastive_tension(one, other, torch.tensor(batch.labels, device=one.device))
        backward(loss)
        return {"loss": loss.item()}


def raw_vectors(encoder: MeanEncoder, documents: Sequence[SegmentedDocument]) -> Tensor:
    """(B, D) means over the tokens of documents, not of unit length."""
    sequences = [ids for document in documents for ids in document.token_ids]
    pooled = encoder.backbone.pool(sequences, TOKEN_BUDGET)
    vectors = []
    with full_precision(pooled.device):
        for document, own in zip(documents, torch.split(pooled, [len(one.chunks) for one in documents]), strict=True):
            tokens = torch.tensor([chunk.n_tokens for chunk in document.chunks], dtype=own.dtype, device=own.device)
            vectors.append(tokens @ own / tokens.sum())
    return torch.stack(vectors)
