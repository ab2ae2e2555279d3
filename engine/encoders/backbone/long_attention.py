"""Calls models according to their kind of attention, so that no vector depends on padding. Token tensors only.

Letters in shapes: B sequences, L tokens, H width of a hidden state.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from engine.encoders.backbone.batching import next_multiple
from engine.encoders.backbone.hardware import copy_to


def attention_of(model: Any) -> PlainAttention:  # noqa: ANN401
    """The way to call a model of transformers."""
    kind = model.config.model_type
    if kind == "longformer":
        return LongformerAttention(model)
    if kind == "big_bird" and model.config.attention_type == "block_sparse":
        return BigBirdAttention(model)
    return PlainAttention(model)


def max_positions(model: Any) -> int | None:  # noqa: ANN401
    """The number of positions that a model can give to tokens; None where its configuration has none.

    Models of the RoBERTa family count from the padding id on: of 514 positions they use 512.
    """
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions is None:
        return None
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    return int(positions) if padding is None else int(positions) - padding - 1


class PlainAttention:
    """A model, called in the way that its attention requires.

    Here every token attends to every other, or the model masks by itself, as ModernBERT does.
    """

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        self.model = model
        self.models: tuple[Any, ...] = (model,)  # the models that are called, all with the same parameters
        self.max_length = max_positions(model)  # tokens of a sequence, special ones counted; None without a limit

    def padded_length(self, length: int) -> int:
        """Length of a sequence as the model reads it, padding included."""
        return length

    def company(self, length: int) -> int:
        """A number: sequences with equal numbers can share a batch, padded to the longest."""
        return 0

    def hidden_states(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Last hidden states (B, L, H).

        Args:
            ids: (B, L) int64, on the model's device.
            mask: (B, L) bool, True where a token is real, anywhere.
        """
        # Without padding no mask is passed: attention then takes its faster path.
        attention_mask = None if mask.all() else copy_to(ids.device, mask).long()
        hidden: Tensor = self.model(input_ids=ids, attention_mask=attention_mask)[0]
        return hidden


class LongformerAttention(PlainAttention):
    """Each token sees a window around it; the first token sees, and is seen by, all.

    Beltagy et al. (2020, arXiv:2004.05150), section 3.1, with the global token of its
    classification tasks. Inputs are padded to a multiple of the window, which has no effect in the windows of tokens.
    """

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        super().__init__(model)
        window = model.config.attention_window
        self.window = window if isinstance(window, int) else max(window)

    def padded_length(self, length: int) -> int:
        """The next multiple of the window."""
        return next_multiple(length, self.window)

    def hidden_states(self, ids: Tensor, mask: Tensor) -> Tensor:
        """See `PlainAttention`."""
        full_ids, full_mask = _padded(ids, mask, self.padded_length(ids.shape[1]), self.model.config.pad_token_id)
        is_global = torch.zeros_like(full_ids)
        is_global[:, 0] = 1
        hidden: Tensor = self.model(
            input_ids=full_ids, attention_mask=full_mask.long(), global_attention_mask=is_global
        )[0]
        return hidden[:, : ids.shape[1]]


class BigBirdAttention(PlainAttention):
    """Blocks see their neighbours, some random blocks, and the first and last block; short inputs see everything.

    Zaheer et al. (2020, arXiv:2007.14062), section 2. The last block of the *padded*
    input is a global one, so a vector depends on the number of blocks: only sequences
    with the same number share a batch. In training, the random blocks are drawn again
    for each length from the seeds of the model; in encoding, transformers uses the
    first block for all of them. Both are the same each time.

    A short input switches a model of transformers to full attention permanently. Here a
    second model with the same parameters reads short inputs.
    """

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        super().__init__(model)
        self.block = int(model.config.block_size)
        self.short = (5 + 2 * model.config.num_random_blocks) * self.block
        positions = int(model.config.max_position_embeddings)
        self.max_length = positions // self.block * self.block if positions > self.short else positions
        # Parameters in the memo are shared, not copied.
        self.full = copy.deepcopy(model, {id(weight): weight for weight in model.parameters()})
        self.full.set_attention_type("original_full")
        self.models = (model, self.full)

    def padded_length(self, length: int) -> int:
        """The next multiple of a block, where an input is not short."""
        return length if length <= self.short else next_multiple(length, self.block)

    def company(self, length: int) -> int:
        """Only sequences with the same number of blocks, or short ones, can share a batch."""
        return 0 if length <= self.short else self.padded_length(length)

    def hidden_states(self, ids: Tensor, mask: Tensor) -> Tensor:
        """See `PlainAttention`."""
        length = ids.shape[1]
        if length <= self.short:
            self.full.train(self.model.training)
            hidden: Tensor = self.full(input_ids=ids, attention_mask=mask.to(ids.device, torch.int64))[0]
            return hidden
        full_ids, full_mask = _padded(ids, mask, self.padded_length(length), self.model.config.pad_token_id)
        hidden = self.model(input_ids=full_ids, attention_mask=full_mask.long())[0]
        return hidden[:, :length]


def _padded(ids: Tensor, mask: Tensor, length: int, pad_id: int | None) -> tuple[Tensor, Tensor]:
    """Ids and mask padded to a length, both on the device of the ids."""
    more = (0, length - ids.shape[1])
    return pad(ids, more, value=pad_id or 0), pad(mask.to(ids.device), more)
