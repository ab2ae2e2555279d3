"""The forward pass of a BERT on the CPU for encoding alone: few shapes, few passes over memory.

It computes the same function as `BertModel` of transformers, without dropout or gradients, and does not
import transformers. The differences are:

- Sequences are padded to a multiple of 16 tokens, and read about 2048 tokens at a time, so
  that the output of one layer is still in the cache for the next. oneDNN compiles a kernel
  for every new shape, which takes as long as a product or longer; without a common multiple
  nearly every batch has a new shape.
- Attention multiplies all heads of all sequences at once, without a mask: the values of a
  padding token are zero, and sums of weights come from a column of ones beside the values,
  see `_Attention`.
- The softmax of attention does not compute the maximum first.
- Weights are stored once in the layout of oneDNN; bias, GELU and residual are applied while
  products are written.

Letters in shapes: B sequences, L tokens of the longest, P tokens that sequences are padded
to, H width of a hidden state, A heads, D width of a head.
"""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, gelu, layer_norm, linear, pad, scaled_dot_product_attention

from engine.encoders.backbone.batching import next_multiple, token_budget_batches
from engine.encoders.backbone.plain_bert import PlainBert

_MULTIPLE = 16  # of tokens; 8 halves the number of padding tokens and doubles that of shapes
_SLICE_TOKENS = 2048  # the fastest of 512 to 4096; from 4096 on, memory returns to the system between layers
_SCORES = 2048 * 128  # attention scores of one head, held at once
_LARGEST_TOTAL = 2.0**100
_READABLE = ("transformers.models.bert.modeling_bert", "BertModel")


class CpuBert:
    """Computes hidden states of a `BertModel` or a `PlainBert` with its current parameters."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        """Take any model; `is_readable` reports whether it can be read."""
        self.model = model
        self._copied: tuple[_Copied, ...] = ()
        self._layers: tuple[_Layer, ...] = ()
        self._preparing = Lock()

    @property
    def is_readable(self) -> bool:
        """Whether the model is laid out as in Devlin et al. (2019, arXiv:1810.04805), and is on the CPU.

        That means: post-norm layers, positions from 0 that are added to the words, GELU by the error
        function. Hooks would not be called, so a model with hooks is not readable.
        """
        if isinstance(self.model, PlainBert):
            return True
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
        """A reader of the copied model; the prepared layers are not copied."""
        return type(self)(deepcopy(self.model, memo))

    @staticmethod
    def padded_length(length: int) -> int:
        """P: the length that a sequence is padded to."""
        return next_multiple(length, _MULTIPLE)

    def hidden_states(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Last hidden states, without gradients.

        In bfloat16 they differ from those of `BertModel` by rounding alone. Attention scores are rounded to
        bfloat16, by 2^-9 of their size, where the fused kernel keeps them in float32. The output of linear layers
        is rounded once, after GELU or residual. Chunk vectors of all-MiniLM-L6-v2 have the same cosine to float32
        either way, 0.99996 in the mean.

        Args:
            ids: (B, L) int64.
            mask: (B, L) bool, True where a token is real.

        Returns:
            (B, L, H) in the precision of the parameters, zero where no token is real.
        """
        self._prepare()
        n_tokens = ids.shape[1]
        more = (0, self.padded_length(n_tokens) - n_tokens)
        ids, mask = pad(ids, more), pad(mask, more)
        ends = (mask * torch.arange(1, mask.shape[1] + 1)).amax(1)  # end of the last real token; padding can precede it
        read = ends.nonzero().squeeze(1)
        lengths = [self.padded_length(end) for end in ends[read].tolist()]
        hidden = torch.zeros(*ids.shape, self.model.config.hidden_size, dtype=self._dtype)
        for batch in token_budget_batches(lengths, _SLICE_TOKENS):
            rows, longest = read[batch], lengths[batch[0]]
            seen = mask[rows, :longest]
            hidden[rows, :longest] = self._read(ids[rows, :longest], seen) * seen.unsqueeze(-1)
        return hidden[:, :n_tokens]

    @property
    def _dtype(self) -> torch.dtype:
        dtype: torch.dtype = self.model.embeddings.word_embeddings.weight.dtype
        return dtype

    def _prepare(self) -> None:
        """Lay the weights out again if any of them has changed; one thread does so while others wait."""
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

    def _read(self, ids: Tensor, seen: Tensor) -> Tensor:
        """Hidden states (B, P, H) of sequences, given their seen tokens (B, P); those of other tokens are undefined."""
        words = self.model.embeddings
        n_heads = self.model.config.num_attention_heads
        positions = torch.arange(ids.shape[1]).clamp_(max=len(words.position_embeddings.weight) - 1)
        states = embedding(ids, words.word_embeddings.weight)
        states += words.token_type_embeddings.weight[0]
        states += embedding(positions, words.position_embeddings.weight)
        states = _normalized(states, words.LayerNorm).flatten(0, 1)  # (B P, H)
        attention = _Attention(seen, n_heads, states.shape[1] // n_heads, states.dtype)
        for layer in self._layers:
            states = _normalized(layer.attended(attention(layer.projected(states)), plus=states), layer.attended_norm)
            states = _normalized(layer.narrowed(layer.widened(states), plus=states), layer.norm)
        return states.view(*ids.shape, -1)


class _Attention:
    """Attention of each sequence to itself, in one layer after another.

    Softmax is computed as exp(s_ij) / sum_j exp(s_ij), without subtracting the maximum first. Floats
    have the same relative precision at any size, so this is as exact while no sum comes near the
    end of their range. Where a sum does, the kernel of torch is called. The sums of
    all-MiniLM-L6-v2 are up to 2^62; the range ends at 2^127.

    With m_j = 1 where token j is seen, else 0, one product gives both sum_j exp(s_ij) m_j v_j and
    sum_j exp(s_ij) m_j, since a column of m_j is appended to the values m_j v_j.
    """

    def __init__(self, seen: Tensor, n_heads: int, width: int, dtype: torch.dtype) -> None:
        """Take the mask of some sequences.

        Args:
            seen: (B, P) bool, True for at least one token of each sequence.
            n_heads: A.
            width: D.
            dtype: of the hidden states.
        """
        self.seen = seen
        self.unseen = (~seen).flatten().nonzero().squeeze(1)
        self.values = torch.empty(len(seen), n_heads, seen.shape[1], width + 1, dtype=dtype)
        self.values[..., width] = seen.unsqueeze(1)
        self.unread = torch.empty(1, 1, 1, dtype=dtype)  # baddbmm requires an addend; with beta=0 it is not read

    def __call__(self, projected: Tensor) -> Tensor:
        """(B P, 3 A D) queries, keys and values of the tokens, to (B P, A D); modifies `projected`."""
        n_rows, n_heads, length, width = self.values.shape
        width -= 1
        projected.index_fill_(0, self.unseen, 0)
        parts = projected.view(n_rows, length, 3, n_heads, width).permute(2, 0, 3, 1, 4)  # (3, B, A, P, D)
        self.values[..., :width] = parts[2]
        found = projected.new_empty(n_rows, length, n_heads, width)
        most = max(1, _SCORES // length**2)
        for first in range(0, n_rows, most):
            part = slice(first, first + most)
            self._attend(part, parts[:, part], found[part].transpose(1, 2))
        return found.view(len(projected), n_heads * width)

    def _attend(self, part: slice, parts: Tensor, into: Tensor) -> None:
        """Attention of some sequences: (3, B, A, P, D) queries, keys and values, written to `into` (B, A, P, D)."""
        width = parts.shape[-1]
        query, key = parts[:2].contiguous().flatten(1, 2).unbind()  # (B A, P, D)
        values = self.values[part]
        powers = torch.baddbmm(self.unread, query, key.mT, beta=0, alpha=math.log2(math.e) / math.sqrt(width)).exp2_()
        sums = (powers @ values.flatten(0, 1)).view(values.shape)  # (B, A, P, D + 1)
        totals = sums[..., width:]
        least, largest = totals.aminmax()
        if least > 1 / _LARGEST_TOTAL and largest < _LARGEST_TOTAL:
            torch.div(sums[..., :width], totals, out=into)
        else:
            query, key, value = parts.unbind()
            into.copy_(scaled_dot_product_attention(query, key, value, attn_mask=self.seen[part, None, None]))


def _normalized(states: Tensor, norm: Any) -> Tensor:  # noqa: ANN401
    return layer_norm(states, norm.weight.shape, norm.weight, norm.bias, norm.eps)


def _linears(layer: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """The linear layers of a BERT layer: query, key, value, output of attention, feed-forward up and down."""
    own = layer.attention.self
    return own.query, own.key, own.value, layer.attention.output.dense, layer.intermediate.dense, layer.output.dense


@dataclass(frozen=True, slots=True)
class _Copied:
    """A weight at the time of its copy; holding the tensor keeps its memory from being reused."""

    weight: Tensor
    version: int  # torch's count of writes

    def is_of(self, weight: Tensor) -> bool:
        """Whether the weight is still at the same address, in the same precision, and was not written to."""
        return (
            weight.data_ptr() == self.weight.data_ptr()
            and weight.dtype is self.weight.dtype
            and weight._version == self.version
        )


@dataclass(frozen=True, slots=True)
class _Layer:
    """The linear layers of a layer of BERT, and its norms, which are those of the model."""

    projected: _Linear  # query, key and value at once
    attended: _Linear
    attended_norm: Any  # has weight, bias and eps
    widened: _Linear
    narrowed: _Linear
    norm: Any

    @classmethod
    def of(cls, layer: Any) -> Self:  # noqa: ANN401
        query, key, value, attended, up, down = _linears(layer)
        return cls(
            projected=_Linear(query, key, value),
            attended=_Linear(attended),
            attended_norm=layer.attention.output.LayerNorm,
            widened=_Linear(up, with_gelu=True),
            narrowed=_Linear(down),
            norm=layer.output.LayerNorm,
        )


class _Linear:
    """x W^T + b, optionally followed by GELU; W is laid out for oneDNN where torch supports that."""

    def __init__(self, *parts: Any, with_gelu: bool = False) -> None:  # noqa: ANN401
        self.weight = torch.cat([part.weight.detach() for part in parts])
        self.bias = torch.cat([part.bias.detach() for part in parts])
        self.with_gelu = with_gelu
        self.is_fused = _fuses(self.weight.dtype)
        if self.is_fused:
            self.weight = torch.ops.mkldnn._reorder_linear_weight(self.weight, _SLICE_TOKENS)

    def __call__(self, states: Tensor, *, plus: Tensor | None = None) -> Tensor:
        """(N, inputs) to (N, outputs), with a residual (N, outputs) added if it is given."""
        if self.is_fused:
            return _fused(states, self.weight, self.bias, with_gelu=self.with_gelu, plus=plus)
        found = linear(states, self.weight, self.bias)
        if self.with_gelu:
            torch.ops.aten.gelu_(found)
        return found if plus is None else found.add_(plus)


def _fused(states: Tensor, weight: Tensor, bias: Tensor, *, with_gelu: bool, plus: Tensor | None) -> Tensor:
    product = torch.ops.mkldnn._linear_pointwise
    if plus is not None:
        added: Tensor = product.binary(states, plus, weight, bias, "add")
        return added
    found: Tensor = product(states, weight, bias, "gelu" if with_gelu else "none", [], "none" if with_gelu else "")
    return found


@cache
def _fuses(dtype: torch.dtype) -> bool:
    """Whether torch can lay out weights and apply GELU and residual within a product, with correct results.

    The code that torch's compiler generates has called these operators since torch 2.0, but they
    are not a public interface, so they are tested first.
    """
    generator = torch.Generator().manual_seed(0)
    shapes = ((24, 64), (48, 64), (48,), (24, 48))
    states, weight, bias, plus = (torch.randn(shape, generator=generator) for shape in shapes)
    product = linear(states, weight / 8, bias)
    try:
        laid_out = torch.ops.mkldnn._reorder_linear_weight((weight / 8).to(dtype), _SLICE_TOKENS)
        given = (states.to(dtype), laid_out, bias.to(dtype))
        pairs = (
            (_fused(*given, with_gelu=True, plus=None), gelu(product)),
            (_fused(*given, with_gelu=False, plus=plus.to(dtype)), product + plus),
        )
    except (AttributeError, RuntimeError):
        return False
    return all(_is_near(found, want) for found, want in pairs)


def _is_near(found: Tensor, want: Tensor) -> bool:
    most = 4 * torch.finfo(found.dtype).eps * want.max()
    return found.shape == want.shape and bool((found - want).abs().max() < most)
