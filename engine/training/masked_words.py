"""Masked words: masking, the head that predicts them (Devlin et al. 2019, arXiv:1810.04805), and pretraining by them.

Letters in shapes: N sequences, L tokens of one (padded), M masked words, H width of a state, V words of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu

from engine.encoders.backbone.backbone import Backbone
from engine.encoders.encoder import SegmentedDocument
from engine.encoders.mean import TOKEN_BUDGET
from engine.encoders.trainable import TrainableEncoder
from engine.errors import DocumentError, TrainingError
from engine.training.task import Backward, epoch_slice, full_precision, step_generator
from engine.training.views import ViewPairs

IGNORED = -100  # the target that `torch.nn.functional.cross_entropy` leaves out
SHARE = 0.15
_INITIAL_STD = 0.02


@dataclass(frozen=True, slots=True)
class MaskedWords:
    """Token ids to read, and the words to predict."""

    ids: Tensor  # (N, L) int64
    targets: Tensor  # (N, L) int64, the original id where a word is to be predicted, else IGNORED


def maskable(ids: Tensor, mask: Tensor, special_ids: Collection[int]) -> Tensor:
    """Tokens that may be masked: the real ones that are not special.

    Args:
        ids: (N, L) int64.
        mask: (N, L) bool, True where a token is real.

    Returns:
        (N, L) bool.
    """
    return mask & ~torch.isin(ids, torch.tensor(sorted(special_ids), device=ids.device))


def choose_by_chance(maskable: Tensor, generator: torch.Generator, *, share: float = SHARE) -> Tensor:
    """Choose each word with the same probability, (N, L) bool; a sequence may get none."""
    return maskable & (torch.rand(maskable.shape, generator=generator) < share)


def choose_by_count(
    maskable: Tensor, mask: Tensor, generator: torch.Generator, *, share: float = SHARE, most: int = 5
) -> Tensor:
    """Choose a fixed number of words of each sequence, as SMITH's released code does.

        n = min(most, max(1, round(share * length)))

    Args:
        maskable: (N, L) bool.
        mask: (N, L) bool, True where a token is real; `length` counts these, special ones included.

    Returns:
        (N, L) bool; fewer where a sequence has fewer words.
    """
    wanted = (mask.sum(1, dtype=torch.float64) * share).round().clamp(1, most)  # half to even, as Python's round
    drawn = torch.rand(maskable.shape, generator=generator).masked_fill(~maskable, 2)
    return maskable & (drawn.argsort(1).argsort(1) < wanted[:, None])


def mask_words(
    ids: Tensor, chosen: Tensor, generator: torch.Generator, *, mask_id: int, vocabulary_size: int
) -> MaskedWords:
    """Mask the chosen words: 80 % become [MASK], 10 % a random id of the vocabulary, 10 % stay.

    Args:
        ids: (N, L) int64; not changed.
        chosen: (N, L) bool.
    """
    fate = torch.rand(ids.shape, generator=generator)
    other = torch.randint(vocabulary_size, ids.shape, generator=generator)
    read = torch.where(chosen & (fate < 0.8), mask_id, ids)
    read = torch.where(chosen & (fate >= 0.9), other, read)
    return MaskedWords(read, ids.masked_fill(~chosen, IGNORED))


class PredictionTransform(nn.Module):
    """LN(gelu(W x + b)), which BERT applies before each prediction."""

    def __init__(self, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        limit = 2 * _INITIAL_STD
        nn.init.trunc_normal_(self.dense.weight, std=_INITIAL_STD, a=-limit, b=limit, generator=generator)
        nn.init.zeros_(self.dense.bias)

    def forward(self, states: Tensor) -> Tensor:
        """(..., H) to (..., H)."""
        transformed: Tensor = self.norm(gelu(self.dense(states), approximate="tanh"))
        return transformed


class MaskedWordHead(nn.Module):
    """Predicts words from their states: the transform, then the encoder's own word embeddings, and a bias."""

    def __init__(self, width: int, vocabulary_size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.transform = PredictionTransform(width, generator)
        self.bias = nn.Parameter(torch.zeros(vocabulary_size))

    def forward(
        self,
        states: Tensor,  # (M, H), of the masked words alone
        embeddings: Tensor,  # (V, H), of the encoder, trained here too
    ) -> Tensor:
        """(M, V) logits, float32."""
        transformed: Tensor = self.transform(states.float())
        return transformed @ embeddings.float().T + self.bias


class MaskedWordLoss(nn.Module):
    """Trains a backbone to predict masked words, beside any other objective.

    Devlin et al. (2019, arXiv:1810.04805), task 1: 15 % of the words, of these 80 % as
    [MASK], 10 % as another word. As in SimCSE (Gao et al. 2021, arXiv:2104.08821)
    it is a forward pass of its own. The module holds only the parameters of the head.
    """

    def __init__(self, backbone: Backbone, *, seed: int = 0) -> None:
        """Make a head for a backbone.

        Raises:
            TrainingError: its word embeddings are not as wide as its states, so the head cannot use them.
            EncoderError: its tokenizer has no [MASK].
        """
        super().__init__()
        n_words, width = backbone.model.get_input_embeddings().weight.shape
        if width != backbone.width:
            raise TrainingError(
                f"word embeddings of {backbone.folder} are {width} wide, its states {backbone.width}; "
                "train without masked words"
            )
        tokenizer = backbone.tokenizer
        self.mask_id = tokenizer.mask_id
        self.special = {*tokenizer.prefix, *tokenizer.suffix, tokenizer.pad_id, tokenizer.mask_id}
        self.head = MaskedWordHead(width, n_words, torch.Generator().manual_seed(seed)).to(backbone.device)

    def backward(
        self,
        backbone: Backbone,
        sequences: Sequence[Sequence[int]],
        backward: Backward,
        *,
        weight: float,
        token_budget: int,
        seed: int,
    ) -> float:
        """Add the gradients of `weight` times the loss.

        Args:
            sequences: N lists of ids, without special tokens.

        Returns:
            The mean cross-entropy over all masked words, without the weight; 0 where none was masked.
        """
        generator = torch.Generator().manual_seed(seed)
        parts = []
        for batch in backbone.batches(sequences, token_budget):
            ids, mask = backbone.tokenizer.pad([sequences[position] for position in batch])
            chosen = choose_by_chance(maskable(ids, mask, self.special), generator)
            n_words = backbone.tokenizer.vocabulary_size
            hidden = mask_words(ids, chosen, generator, mask_id=self.mask_id, vocabulary_size=n_words)
            parts.append((hidden, mask, int(chosen.sum())))
        n_hidden = sum(count for *_, count in parts)
        total = 0.0
        for words, mask, count in parts:
            if count:
                loss = self._sum(backbone, words, mask) / n_hidden
                backward(weight * loss)
                total += loss.item()
        return total

    def _sum(self, backbone: Backbone, words: MaskedWords, mask: Tensor) -> Tensor:
        """Sum of the cross-entropies of one forward pass."""
        targets = words.targets.to(backbone.device)  # (N, L)
        is_hidden = targets != IGNORED
        states = backbone.hidden_states(words.ids, mask)[is_hidden]
        with full_precision(states.device):
            logits = self.head(states, backbone.model.get_input_embeddings().weight)
            return cross_entropy(logits, targets[is_hidden], reduction="sum")


@dataclass(frozen=True, slots=True)
class WordBatch:
    """Documents, and the seed of their masking."""

    documents: tuple[SegmentedDocument, ...]
    seed: int


class WordPretraining:
    """A `Task`: the backbone predicts masked words, as in BERT's pretraining; see `MaskedWordLoss`.

    Continued on one's own documents, it is the domain-adaptive pretraining of Gururangan et
    al. (2020, arXiv:2004.10964).
    """

    def __init__(
        self, encoder: TrainableEncoder, pairs: ViewPairs, *, group_tokens: int | None = None, seed: int = 0
    ) -> None:
        """Prepare the backbone and its head.

        Raises:
            TrainingError: the encoder has no backbone to predict words.
            EncoderError: the tokenizer has no [MASK].
        """
        backbone = getattr(encoder, "backbone", None)
        if not isinstance(backbone, Backbone):
            raise TrainingError(f"an encoder of kind {encoder.kind!r} has no backbone that guesses words")
        self.pairs = pairs
        self._backbone = backbone
        self._words = MaskedWordLoss(backbone, seed=seed)
        self._token_budget = group_tokens or TOKEN_BUDGET
        self.module: nn.Module = nn.ModuleDict({"encoder": encoder.module, "words": self._words})

    def batch(self, step: int) -> WordBatch:
        """See `Task.batch`; a document without a token is left out.

        Raises:
            TrainingError: all documents of the step were left out.
        """
        pairs, rng = self.pairs, step_generator(self.pairs.seed, step)
        read = []
        for position in epoch_slice(len(pairs.documents), pairs.batch_size, step, pairs.seed):
            try:
                read.append(pairs.stretch(pairs.documents[position], rng))
            except DocumentError:
                continue
        if not read:
            raise TrainingError(f"the {pairs.batch_size} documents of step {step} have no text that can be read")
        return WordBatch(tuple(read), int(rng.integers(2**62)))

    def n_tokens(self, batch: WordBatch) -> int:
        """See `Task.n_tokens`."""
        return sum(len(ids) for document in batch.documents for ids in document.token_ids)

    def backward(self, batch: WordBatch, backward: Backward) -> Mapping[str, float]:
        """See `Task.backward`."""
        loss = self._words.backward(
            self._backbone,
            [ids for document in batch.documents for ids in document.token_ids],
            backward,
            weight=1.0,
            token_budget=self._token_budget,
            seed=batch.seed,
        )
        return {"loss": loss}
