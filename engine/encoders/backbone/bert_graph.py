"""The computation of a BERT or a RoBERTa as OpenVINO's operations, from its sizes and parameters.

Letters in shapes: B sequences, L tokens (padded), H width of a hidden state, A heads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Pooling

# Entries of config.json that change hidden states, with the only values read here, which are also the defaults.
_PLAIN = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
}
TABLES = ("word", "position", "token_type")
UNREAD = ("pooler.dense.weight", "pooler.dense.bias", "embeddings.position_ids")
_NUMBERS = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)
_HIDDEN = -1e9  # added to the attention scores of padding


@dataclass(frozen=True, slots=True)
class BertSizes:
    """The entries of config.json that hidden states depend on, under the names of transformers."""

    model_type: str
    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int
    layer_norm_eps: float
    pad_token_id: int

    @property
    def first_position(self) -> int:
        """The row of the first token in the table of positions; a RoBERTa counts from the padding id on."""
        return self.pad_token_id + 1 if self.model_type == "roberta" else 0

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> BertSizes | None:
        """The sizes in a config.json; None where it describes anything but a plain BERT or RoBERTa."""
        values = {"layer_norm_eps": 1e-12, "pad_token_id": 0, **config}
        numbers = [values.get(name) for name in _NUMBERS]
        if (
            values.get("model_type") not in ("bert", "roberta")
            or any(type(size) is not int or size < 1 for size in numbers)
            or any(config.get(name, value) != value for name, value in _PLAIN.items())
            or type(values["layer_norm_eps"]) is not float
            or not 0 < values["layer_norm_eps"] < 1
            or type(values["pad_token_id"]) is not int
            or not 0 <= values["pad_token_id"] < values["vocab_size"]
            or values["hidden_size"] % values["num_attention_heads"]
        ):
            return None
        return cls(**{name: values[name] for name in (*_NUMBERS, "model_type", "layer_norm_eps", "pad_token_id")})

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all parameters that hidden states depend on, by name."""
        width, inner = self.hidden_size, self.intermediate_size
        layer = {
            **{f"attention.self.{name}": (width, width) for name in ("query", "key", "value")},
            "attention.output.dense": (width, width),
            "attention.output.LayerNorm": (width,),
            "intermediate.dense": (inner, width),
            "output.dense": (width, inner),
            "output.LayerNorm": (width,),
        }
        parts: dict[str, tuple[int, ...]] = {"embeddings.LayerNorm": (width,)}
        for number in range(self.num_hidden_layers):
            parts |= {f"encoder.layer.{number}.{name}": shape for name, shape in layer.items()}
        shapes = {f"{name}.weight": shape for name, shape in parts.items()}
        shapes |= {f"{name}.bias": shape[:1] for name, shape in parts.items()}
        tables = {
            "word": self.vocab_size,
            "position": self.max_position_embeddings,
            "token_type": self.type_vocab_size,
        }
        return shapes | {f"embeddings.{name}_embeddings.weight": (rows, width) for name, rows in tables.items()}


class Graph:
    """The computation of a BERT as OpenVINO's operations: Devlin et al. (2019, arXiv:1810.04805)."""

    def __init__(self, sizes: BertSizes, weights: Mapping[str, NDArray[Any]]) -> None:
        from openvino import opset13

        self.op, self.sizes, self.weights = opset13, sizes, weights

    def model(self, pooling: Pooling) -> Any:  # noqa: ANN401
        """From summed embeddings (B, L, H) and mask (B, L), 1 where a token is real, to pooled states (B, H).

        Words are looked up outside of the graph, which would hold their table again, in float32.
        """
        import openvino

        op, width = self.op, self.sizes.hidden_size
        embedded = op.parameter(openvino.PartialShape([-1, -1, width]), np.float32, name="embedded")
        mask = op.parameter(openvino.PartialShape([-1, -1]), np.float32, name="mask")
        scores = op.multiply(op.subtract(np.float32(1), mask), np.float32(_HIDDEN))
        hidden = op.unsqueeze(scores, self.axes(1, 2))  # (B, 1, 1, L)
        states = self.normalized("embeddings.LayerNorm", embedded)
        for number in range(self.sizes.num_hidden_layers):
            states = self.layer(f"encoder.layer.{number}.", states, hidden)
        if pooling is Pooling.CLS:
            first = op.slice(states, self.axes(0), self.axes(1), self.axes(1), self.axes(1))
            return openvino.Model([op.reshape(first, self.axes(-1, width), False)], [embedded, mask])
        seen = op.unsqueeze(mask, self.axes(2))
        total = op.reduce_sum(op.multiply(states, seen), self.axes(1))
        return openvino.Model([op.divide(total, op.reduce_sum(seen, self.axes(1)))], [embedded, mask])

    def layer(self, name: str, states: Any, hidden: Any) -> Any:  # noqa: ANN401
        """One layer: states (B, L, H), to which the scores (B, 1, 1, L) of padding are added."""
        op, width, n_heads = self.op, self.sizes.hidden_size, self.sizes.num_attention_heads
        projected = self.linear(states, *(f"{name}attention.self.{part}" for part in ("query", "key", "value")))
        heads = op.reshape(projected, self.axes(0, 0, 3 * n_heads, width // n_heads), True)
        parts = op.split(op.transpose(heads, self.axes(0, 2, 1, 3)), np.int64(1), 3).outputs()  # each (B, A, L, H / A)
        attended = op.transpose(op.scaled_dot_product_attention(*parts, hidden), self.axes(0, 2, 1, 3))
        joined = self.linear(op.reshape(attended, self.axes(0, 0, width), True), f"{name}attention.output.dense")
        states = self.normalized(f"{name}attention.output.LayerNorm", op.add(joined, states))
        widened = op.gelu(self.linear(states, f"{name}intermediate.dense"), "erf")
        return self.normalized(f"{name}output.LayerNorm", op.add(self.linear(widened, f"{name}output.dense"), states))

    def linear(self, states: Any, *names: str) -> Any:  # noqa: ANN401
        """The outputs of linear layers, side by side."""
        weight, bias = (self.constant(*(f"{name}.{part}" for name in names)) for part in ("weight", "bias"))
        return self.op.add(self.op.matmul(states, weight, False, True), bias)

    def constant(self, *names: str) -> Any:  # noqa: ANN401
        """Parameters as `joined`; the graph reads their memory, without a copy."""
        return self.op.constant(self.joined(*names), shared_memory=True)

    def joined(self, *names: str) -> NDArray[np.float32]:
        """Parameters side by side, in float32."""
        return np.concatenate([self.weights[name] for name in names], dtype=np.float32)

    def normalized(self, name: str, states: Any) -> Any:  # noqa: ANN401
        """States after a layer norm."""
        scaled = self.op.mvn(states, self.axes(-1), True, self.sizes.layer_norm_eps, "inside_sqrt")
        return self.op.add(self.op.multiply(scaled, self.constant(f"{name}.weight")), self.constant(f"{name}.bias"))

    @staticmethod
    def axes(*numbers: int) -> NDArray[np.int64]:
        """Numbers of axes, or sizes, as an operand."""
        return np.array(numbers, np.int64)


def read_weights(file: Path) -> dict[str, NDArray[Any]]:
    """The parameters of a safetensors file by name, float16 and float32 as views of the mapped file."""
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        header = json.loads(opened.read(length))
    content = np.memmap(file, np.uint8, "r", offset=8 + length)
    names = header.keys() - {*UNREAD, "__metadata__"}
    return {name: _values(content, **header[name]) for name in names}


def _values(content: NDArray[np.uint8], dtype: str, shape: Sequence[int], data_offsets: Sequence[int]) -> NDArray[Any]:
    part = content[slice(*data_offsets)]
    if dtype == "BF16":  # the upper half of a float32
        return (part.view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(shape)
    return part.view({"F16": np.float16, "F32": np.float32}[dtype]).reshape(shape)
