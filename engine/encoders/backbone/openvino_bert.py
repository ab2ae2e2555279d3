"""The forward pass of a BERT or a RoBERTa on a CPU, by OpenVINO: token ids in, unit vectors out, without torch.

It reads only folders for which the result equals that of transformers; others are left to
`engine.encoders.backbone.backbone.Backbone`.

Letters in shapes: B sequences, L tokens (padded), H width of a hidden state, A heads.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np
import safetensors
from numpy.typing import NDArray

from engine.encoders.backbone.batching import next_multiple, token_budget_batches
from engine.encoders.backbone.hardware import cpu_has_bf16
from engine.encoders.backbone.model_folder import WEIGHTS_FILE, naming_folder, read_config, weight_files
from engine.encoders.backbone.tokenizer import Tokenizer
from engine.encoders.encoder import Pooling, Vectors, unit
from engine.errors import EncoderError

Precision = Literal["f32", "bf16"]
PRECISIONS: tuple[Precision, ...] = ("f32", "bf16")

_BATCH_TOKENS = 1024  # of a batch, which one thread reads by itself, so that its states stay in the cache
_MULTIPLE = 16  # of tokens in a padded sequence: OpenVINO compiles kernels for each shape
_MOST_STREAMS = 16
_FLOATS = ("F16", "BF16", "F32")
# Entries of config.json that change hidden states, with the only values read here, which are also the defaults.
_PLAIN = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
}
_TABLES = ("word", "position", "token_type")
_UNREAD = ("pooler.dense.weight", "pooler.dense.bias", "embeddings.position_ids")
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


def default_precision() -> Precision:
    """bf16 where the processor multiplies it natively, else f32."""
    return "bf16" if cpu_has_bf16() else "f32"


def read_sizes(folder: Path) -> BertSizes | None:
    """The sizes of a folder that `OpenvinoBert` reads; None for any other, or where OpenVINO is not installed.

    Raises:
        EncoderError: its config.json is damaged, or leads to other files, packages or code.
    """
    with naming_folder(folder):
        sizes = BertSizes.of(read_config(folder))
        if sizes is None or weight_files(folder) != [folder / WEIGHTS_FILE]:
            return None
    try:
        with safetensors.safe_open(folder / WEIGHTS_FILE, framework="numpy") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - no mapping
            shapes = {name: tuple(tensor.get_shape()) for name, tensor in slices.items()}
            are_floats = all(slices[name].get_dtype() in _FLOATS for name in slices if name not in _UNREAD)
    except (OSError, safetensors.SafetensorError):
        return None
    # A wrong number of layers is refused before it takes time or memory.
    if sizes.num_hidden_layers > len(shapes) or importlib.util.find_spec("openvino") is None:
        return None
    found = {name: shape for name, shape in shapes.items() if name not in _UNREAD}
    return sizes if are_floats and found == sizes.shapes() else None


class OpenvinoBert:
    """The vectors of token sequences; each depends on its own tokens alone, whatever its batch and padding.

    The model is compiled when it first encodes, with a stream for each thread, which reads batches by itself.
    """

    def __init__(
        self, folder: Path, sizes: BertSizes, *, pooling: Pooling = Pooling.MEAN, precision: Precision | None = None
    ) -> None:
        """Take a folder for which `read_sizes` returned these sizes.

        Raises:
            EncoderError: the processor has no bf16, or tokenizer and model do not belong together.
        """
        if precision == "bf16" and not cpu_has_bf16():
            raise EncoderError("this processor does not multiply bf16 natively; load it with precision='f32'")
        self.folder, self.pooling, self._sizes = folder, pooling, sizes
        self.precision: Precision = precision or default_precision()
        self.width = sizes.hidden_size
        self.tokenizer = Tokenizer(folder)
        self.tokenizer.check_ids(sizes.vocab_size)
        self._most = min(sizes.max_position_embeddings - sizes.first_position, self.tokenizer.max_length)
        self.max_tokens = self._most - self.tokenizer.n_special
        if self.max_tokens < 1:
            raise EncoderError(
                f"{folder} reads {self._most} tokens at once, {self.tokenizer.n_special} of them special ones; "
                "take a model that has room for a text"
            )
        self.n_read = 0  # sequences read so far; counted while `encode` runs
        self._queue: Any = None
        self._words = self._places = np.empty((0, self.width), np.float32)  # tables, read with the other parameters
        self._lock = Lock()  # one call encodes at a time, on all threads

    @property
    def weights_bytes(self) -> int:
        """Bytes that the parameters take, at four each."""
        return 4 * sum(int(np.prod(shape)) for shape in self._sizes.shapes().values())

    def encode(self, sequences: Sequence[Sequence[int]]) -> Vectors:
        """Encode token sequences.

        Args:
            sequences: N lists of ids, without special tokens, each at most `max_tokens` long.

        Returns:
            (N, H) float32, unit rows, in the order given.
        """
        rows = np.empty((len(sequences), self.width), np.float32)
        lengths = [self._padded_length(len(sequence)) for sequence in sequences]
        with self._lock:
            queue = self._queue = self._queue or self._compiled()
            budget = min(_BATCH_TOKENS, max(1, sum(lengths) // len(queue)))
            queue.set_callback(lambda request, batch: self._store(request.get_output_tensor(0).data, rows, batch))
            for batch in token_budget_batches(lengths, budget):
                ids, mask = self.tokenizer.pad_arrays([sequences[position] for position in batch], lengths[batch[0]])
                states = self._words[ids].astype(np.float32) + self._places[: ids.shape[1]]
                queue.start_async([states, mask.astype(np.float32)], batch)
            queue.wait_all()
        return unit(rows)

    def _padded_length(self, n_tokens: int) -> int:
        return min(next_multiple(n_tokens + self.tokenizer.n_special, _MULTIPLE), self._most)

    def _store(self, vectors: Vectors, rows: Vectors, batch: list[int]) -> None:
        rows[batch] = vectors
        self.n_read += len(batch)

    def _compiled(self) -> Any:  # noqa: ANN401
        """A queue of requests to the compiled model, one for each stream."""
        import openvino

        threads = int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))
        streams = min(threads, _MOST_STREAMS)
        settings = {
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": streams,
            "INFERENCE_PRECISION_HINT": self.precision,
        }
        with naming_folder(self.folder):
            weights = _read_weights(self.folder / WEIGHTS_FILE)
            self._words, places, types = (weights.pop(f"embeddings.{name}_embeddings.weight") for name in _TABLES)
            self._places = places[self._sizes.first_position :].astype(np.float32) + types[0].astype(np.float32)
            graph = _Graph(self._sizes, weights).model(self.pooling)
            compiled = openvino.Core().compile_model(graph, "CPU", settings)
        return openvino.AsyncInferQueue(compiled, streams)


class _Graph:
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
        """Parameters side by side, in float32; the graph reads their memory, without a copy."""
        rows = np.concatenate([self.weights[name] for name in names], dtype=np.float32)
        return self.op.constant(rows, shared_memory=True)

    def normalized(self, name: str, states: Any) -> Any:  # noqa: ANN401
        scaled = self.op.mvn(states, self.axes(-1), True, self.sizes.layer_norm_eps, "inside_sqrt")
        return self.op.add(self.op.multiply(scaled, self.constant(f"{name}.weight")), self.constant(f"{name}.bias"))

    @staticmethod
    def axes(*numbers: int) -> NDArray[np.int64]:
        return np.array(numbers, np.int64)


def _read_weights(file: Path) -> dict[str, NDArray[Any]]:
    """The parameters of a safetensors file by name, in float16 or float32."""
    with safetensors.safe_open(file, framework="numpy") as opened:
        names = [name for name in opened.keys() if name not in _UNREAD]  # noqa: SIM118 - no mapping
        if all(opened.get_slice(name).get_dtype() != "BF16" for name in names):
            return {name: opened.get_tensor(name) for name in names}
    tensors = dict(safetensors.deserialize(file.read_bytes()))  # type: ignore[no-untyped-call]
    return {name: _as_float32(tensors[name]) for name in names}


def _as_float32(tensor: Mapping[str, Any]) -> NDArray[np.float32]:
    if tensor["dtype"] != "BF16":
        kind = np.float16 if tensor["dtype"] == "F16" else np.float32
        return np.frombuffer(tensor["data"], kind).reshape(tensor["shape"]).astype(np.float32)
    # A bfloat16 is the upper half of a float32.
    return (np.frombuffer(tensor["data"], np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(tensor["shape"])
