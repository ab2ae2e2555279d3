"""The forward pass of a BERT on the CPU for encoding alone: no padding, no mask, few passes over memory.

The same function as `BertModel` of transformers, without dropout or gradients. What is
done otherwise, with the speed that is reached by then over that of `BertModel` and its
fused attention (one AVX-512 core, bfloat16, chunks of 64 to 128 tokens, sorted by length):

- The tokens of all sequences stand one after another, so linear layers multiply no padding;
  about 2048 at a time, so that what one layer hands to the next stays near the core.
  Attention multiplies all heads of the sequences of one length at once, and needs no mask:
  the fused kernel of torch takes 1.6 times as long over so few tokens (x 1.17).
- Its softmax does not look for the maximum first, see `_attend` (x 1.31).
- Weights are laid out once as oneDNN multiplies them; bias and GELU are applied as products
  are written (x 1.49).

Letters in shapes: B sequences, L tokens of the longest, N tokens of some sequences together,
H width of a hidden state, A heads, D width of a head.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any, Self, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, gelu, layer_norm, linear, scaled_dot_product_attention

_SLICE_TOKENS = 2048  # the fastest of 512 to 4096; from 4096 on the system takes back the memory between layers
_SLICE_LENGTHS = 12  # two kernels are made for each, and of these torch keeps 32 from one layer to the next
_SCORES = 2048 * 128  # of one head, held at once
_LARGEST_TOTAL = 2.0**100
_READABLE = ("transformers.models.bert.modeling_bert", "BertModel")

Runs: TypeAlias = Sequence[tuple[int, int]]  # (sequences, tokens of each), one after another


class PackedBert:
    """Reads hidden states of a `BertModel`, with the weights that it has at the time."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        """Take any model of transformers; `is_readable` says whether it can be read."""
        self.model = model
        self._copied: tuple[_Copied, ...] = ()
        self._layers: tuple[_Layer, ...] = ()
        self._preparing = Lock()

    @property
    def is_readable(self) -> bool:
        """Whether the model is laid out as in Devlin et al. (2019, arXiv:1810.04805), and lies on the CPU.

        That is: post-norm layers, positions from 0 that are added to the words, GELU by the error
        function. Hooks would not be called, so a model that has any is not read.
        """
        config = self.model.config
        return (
            (type(self.model).__module__, type(self.model).__name__) == _READABLE
            and config.hidden_act == "gelu"
            and getattr(config, "position_embedding_type", None) in (None, "absolute")
            and not config.is_decoder
            and all(type(own) is nn.Linear for layer in self.model.encoder.layer for own in _linears(layer))
            and all(weight.device.type == "cpu" for weight in self.model.parameters())
            and not any(own._forward_hooks or own._forward_pre_hooks for own in self.model.modules())
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A reader of the copied model; what was prepared for this one is not copied."""
        return type(self)(deepcopy(self.model, memo))

    def hidden_states(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Last hidden states, without gradients.

        In bfloat16 they differ from those of `BertModel` by rounding alone: scores of attention are rounded
        to it, by 2^-9 of their size, where the fused kernel keeps them in float32; what linear layers put out is
        rounded once, after GELU. Chunk vectors of all-MiniLM-L6-v2 have the same cosine to float32 by either,
        .99996 in the mean.

        Args:
            ids: (B, L) int64.
            mask: (B, L) bool, True where a token is real.

        Returns:
            (B, L, H) in the precision of the weights, zero where no token is real.
        """
        self._prepare()
        places = torch.arange(ids.numel()).view(ids.shape)
        hidden = torch.zeros(ids.numel(), self.model.config.hidden_size, dtype=self._dtype)
        for rows, runs in _slices(mask.sum(1)):
            own = places[rows][mask[rows]]  # (N,)
            hidden.index_copy_(0, own, self._read(ids.flatten()[own], own % ids.shape[1], runs))
        return hidden.view(*ids.shape, -1)

    @property
    def _dtype(self) -> torch.dtype:
        dtype: torch.dtype = self.model.embeddings.word_embeddings.weight.dtype
        return dtype

    def _prepare(self) -> None:
        """Lay the weights out anew where any of them is not what it was; one thread does, others wait."""
        with self._preparing:
            self._lay_out()

    def _lay_out(self) -> None:
        linears = [own for layer in self.model.encoder.layer for own in _linears(layer)]
        weights = [weight for own in linears for weight in own.parameters()]
        if len(weights) == len(self._copied) and all(
            copied.is_of(weight) for copied, weight in zip(self._copied, weights, strict=True)
        ):
            return
        self._layers = tuple(_Layer.of(layer) for layer in self.model.encoder.layer)
        self._copied = tuple(_Copied(weight.detach(), weight._version) for weight in weights)

    def _read(self, ids: Tensor, positions: Tensor, runs: Runs) -> Tensor:
        """(N,) ids and positions of sequences one after another, to (N, H)."""
        words = self.model.embeddings
        states = embedding(ids, words.word_embeddings.weight)
        states += words.token_type_embeddings.weight[0]
        states += embedding(positions, words.position_embeddings.weight)
        states = _normalized(states, words.LayerNorm)
        for layer in self._layers:
            seen = layer.attended(_attend(layer.asked(states), runs, self.model.config.num_attention_heads))
            states = _normalized(seen.add_(states), layer.attended_norm)
            states = _normalized(layer.narrowed(layer.widened(states)).add_(states), layer.norm)
        return states


def _slices(lengths: Tensor) -> Iterator[tuple[Tensor, Runs]]:
    """Sequences (B,) by length, in slices of about as many tokens each, and of few lengths; empty ones are left out."""
    order = lengths.argsort(descending=True, stable=True)
    order = order[lengths[order] > 0]
    ordered = lengths[order]
    _, numbers = torch.unique_consecutive(ordered, return_inverse=True)  # of lengths, from 0
    begins = ordered.cumsum(0) - ordered
    slices = torch.stack((_shares(numbers, _SLICE_LENGTHS), _shares(begins, _SLICE_TOKENS)))
    _, counts = torch.unique_consecutive(slices, dim=1, return_counts=True)
    sizes = counts.tolist()
    for rows, own in zip(torch.split(order, sizes), torch.split(ordered, sizes), strict=True):
        of_length, n_rows = torch.unique_consecutive(own, return_counts=True)
        yield rows, list(zip(n_rows.tolist(), of_length.tolist(), strict=True))


def _shares(rising: Tensor, most: int) -> Tensor:
    """Cut what rises from 0 into equal shares, as few as can be of no more than `most`: the share of each."""
    end = int(rising[-1]) + 1 if len(rising) else 1
    return rising * -(-end // most) // end


def _attend(asked: Tensor, runs: Runs, n_heads: int) -> Tensor:
    """Attention of each sequence to itself.

    softmax is taken as exp(s_ij) / sum_j exp(s_ij), without the maximum subtracted first. Floats
    have the same relative precision at any size, so this is as exact while no sum comes near the
    end of their range; where one does, the kernel of torch is called. Of all-MiniLM-L6-v2, sums
    are up to 2^62, the end is at 2^127.

    Args:
        asked: (N, 3 A D) queries, keys and values of the tokens.
        runs: the sequences.
        n_heads: A.

    Returns:
        (N, A D).
    """
    width = asked.shape[1] // (3 * n_heads)
    found = asked.new_empty(len(asked), n_heads * width)
    unread = asked.new_empty(1, 1, 1)  # baddbmm asks for something to add; times 0 it is not read
    first = 0
    for n_rows, length in _cut(runs):
        last = first + n_rows * length
        shape = (n_rows, n_heads, length, width)
        parts = asked[first:last].view(n_rows, length, 3, n_heads, width).permute(2, 0, 3, 1, 4).contiguous()
        query, key, value = parts.flatten(1, 2).unbind()  # (B A, L, D)
        into = found[first:last].view(n_rows, length, n_heads, width).transpose(1, 2)  # (B, A, L, D)
        first = last
        powers = torch.baddbmm(unread, query, key.mT, beta=0, alpha=math.log2(math.e) / math.sqrt(width)).exp2_()
        totals = powers.sum(-1, keepdim=True)  # (B A, L, 1)
        least, largest = totals.aminmax()
        if least > 1 / _LARGEST_TOTAL and largest < _LARGEST_TOTAL:
            torch.div((powers @ value).view(shape), totals.view(*shape[:3], 1), out=into)
        else:
            query, key, value = (part.view(shape) for part in (query, key, value))
            into.copy_(scaled_dot_product_attention(query, key, value))
    return found


def _cut(runs: Runs) -> Iterator[tuple[int, int]]:
    """Runs cut so that no more than `_SCORES` of a head are held at once, or those of one sequence."""
    for n_rows, length in runs:
        most = max(1, _SCORES // length**2)
        for first in range(0, n_rows, most):
            yield min(most, n_rows - first), length


def _normalized(states: Tensor, norm: nn.LayerNorm) -> Tensor:
    return layer_norm(states, norm.normalized_shape, norm.weight, norm.bias, norm.eps)


def _linears(layer: Any) -> tuple[nn.Linear, ...]:  # noqa: ANN401
    """Of a layer of BERT: query, key, value, output of attention, feed-forward up and down."""
    own = layer.attention.self
    return own.query, own.key, own.value, layer.attention.output.dense, layer.intermediate.dense, layer.output.dense


@dataclass(frozen=True, slots=True)
class _Copied:
    """A weight as it was when it was copied; while this is held, its memory is no other's."""

    weight: Tensor
    version: int  # torch counts writes

    def is_of(self, weight: Tensor) -> bool:
        """Whether the weight is still in the same place, in the same precision, and was not written to."""
        return (
            weight.data_ptr() == self.weight.data_ptr()
            and weight.dtype is self.weight.dtype
            and weight._version == self.version
        )


@dataclass(frozen=True, slots=True)
class _Layer:
    """The linear layers of a layer of BERT, and its norms, which are those of the model."""

    asked: _Linear  # query, key and value at once
    attended: _Linear
    attended_norm: nn.LayerNorm
    widened: _Linear
    narrowed: _Linear
    norm: nn.LayerNorm

    @classmethod
    def of(cls, layer: Any) -> Self:  # noqa: ANN401
        query, key, value, attended, up, down = _linears(layer)
        return cls(
            asked=_Linear(query, key, value),
            attended=_Linear(attended),
            attended_norm=layer.attention.output.LayerNorm,
            widened=_Linear(up, with_gelu=True),
            narrowed=_Linear(down),
            norm=layer.output.LayerNorm,
        )


class _Linear:
    """x W^T + b, with GELU behind it or without; W is laid out for oneDNN where torch can do that."""

    def __init__(self, *parts: nn.Linear, with_gelu: bool = False) -> None:
        self.weight = torch.cat([part.weight.detach() for part in parts])
        self.bias = torch.cat([part.bias.detach() for part in parts])
        self.with_gelu = with_gelu
        self.is_fused = _fuses(self.weight.dtype)
        if self.is_fused:
            self.weight = torch.ops.mkldnn._reorder_linear_weight(self.weight, _SLICE_TOKENS)

    def __call__(self, states: Tensor) -> Tensor:
        """(N, inputs) to (N, outputs)."""
        if self.is_fused:
            return _fused(states, self.weight, self.bias, self.with_gelu)
        found = linear(states, self.weight, self.bias)
        return torch.ops.aten.gelu_(found) if self.with_gelu else found


def _fused(states: Tensor, weight: Tensor, bias: Tensor, with_gelu: bool) -> Tensor:
    found: Tensor = torch.ops.mkldnn._linear_pointwise(
        states, weight, bias, "gelu" if with_gelu else "none", [], "none" if with_gelu else ""
    )
    return found


@cache
def _fuses(dtype: torch.dtype) -> bool:
    """Whether torch lays out weights and applies GELU as it multiplies, and does so rightly.

    The code that its compiler makes calls these operators, since torch 2.0, but they are not
    promised to anyone else, so they are tried.
    """
    generator = torch.Generator().manual_seed(0)
    states, weight, bias = (torch.randn(shape, generator=generator) for shape in ((24, 64), (48, 64), (48,)))
    want = gelu(linear(states, weight / 8, bias))
    try:
        laid_out = torch.ops.mkldnn._reorder_linear_weight((weight / 8).to(dtype), _SLICE_TOKENS)
        found = _fused(states.to(dtype), laid_out, bias.to(dtype), with_gelu=True)
    except (AttributeError, RuntimeError):
        return False
    return found.shape == want.shape and bool((found - want).abs().max() < 4 * torch.finfo(dtype).eps * want.max())
