"""The masked-word loss over the chunks of a batch, a few at a time. Masking and head are in `masked_words`.

Letters in shapes: N sequences, L tokens of one (padded).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from engine.encoders.backbone.backbone import Backbone
from engine.errors import TrainingError
from engine.training.precision import full_precision
from engine.training.task import Backward
from engine.training.tasks.masked_words import (
    IGNORED,
    MaskedWordHead,
    MaskedWords,
    choose_by_chance,
    mask_words,
    maskable,
)


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
            backbone: the one that the head was made for.
            sequences: N lists of ids, without special tokens.
            backward: see `Task.backward`; called once per forward pass.
            weight: of the loss.
            token_budget: maximum tokens of one forward pass, padding included.
            seed: of the masking.

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
