"""The mean encoder on a CPU, by OpenVINO, for `index`, `query` and `serve`. It neither trains nor imports torch.

It reads only the folders of a BERT or a RoBERTa for which the result equals that of transformers; others are left to
`engine.encoders.backbone.Backbone`.

int8: products of 8-bit numbers, in ranges that inputs had on a sample of text. Channel j of the input x of a linear
layer W x + b is divided by a step of its own (SmoothQuant: Xiao et al. 2023, arXiv:2211.10438), which the weights take
over. With the lowest input l and the mean input m of the sample,

    u = round((x - l) / step) in 0 to 255,   Q = W diag(step), rounded to 8 bits for each output,
    W x + b ~ Q u + b + W m - Q (m - l) / step

so what rounding the weights adds to a mean input is taken away again. The sample, `calibration.txt`, is fixed: ranges
follow from the parameters alone. They are kept beside the model.

Letters in shapes: B sequences, L tokens (padded), H width of a hidden state, A heads, K inputs of a linear layer.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import safetensors
from numpy.typing import NDArray
from safetensors.numpy import save

from engine.encoders.encoder import (
    EncodedDocument,
    Encoder,
    Pooling,
    SegmentedDocument,
    Vectors,
    add_titles,
    fingerprint_of,
    token_weighted_means,
    unit,
)
from engine.encoders.files import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    copy_model,
    naming_folder,
    read_config,
    read_configuration,
    weight_files,
    weights_sha256,
    write_description,
)
from engine.encoders.hardware import cpu_has_bf16, next_multiple, token_budget_batches
from engine.encoders.tokenizer import Tokenizer, chunk_document
from engine.errors import EncoderError, EngineError, step
from engine.settings import COUNT, Checked, setting
from engine.text.document import Document

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
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
    "max_position_embeddings", "type_vocab_size",
)  # fmt: skip
_HIDDEN = -1e9  # added to the attention scores of padding
Ranges = Mapping[str, NDArray[np.float32]]  # (3, K) lowest, highest and mean inputs of a linear layer, by its name
RANGES_FILE = "int8.ranges"  # safetensors; its name keeps it out of the checksum of the parameters
SAMPLE = Path(__file__).with_name("calibration.txt")  # paragraphs of PEPs and EIPs, which are in the public domain
SAMPLE_TOKENS = 126  # of a sequence of the sample
_SMOOTHING = 0.8  # exponent of an input's range in its step, as alpha of SmoothQuant
# Instructions of AVX2 add two products in 16 bits, which weights up to 127 pass more often than they gain in precision.
_HIGHEST_WEIGHT = 90
_SMALLEST = 1e-6
Dtype = Literal["int8", "bfloat16", "float32"]  # of the products
DTYPES: tuple[Dtype, ...] = get_args(Dtype)
_log = logging.getLogger("longmatch.encoder")
_SEQUENCES_AT_ONCE = 512  # some seconds of work, between which other work can come, or the work can end
_BATCH_TOKENS = 512  # of a batch, which one thread reads by itself, so that its states stay in the cache
_MULTIPLE = 16  # of tokens in a padded sequence: OpenVINO compiles kernels for each shape
_MOST_STREAMS = 16
_FLOATS = ("F16", "BF16", "F32")
WINDOW_TOKENS = 126  # 128 with [CLS] and [SEP], the length all-MiniLM-L6-v2 was trained at
KIND = "mean"


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
        tables = {"word": self.vocab_size, "position": self.max_position_embeddings, "token_type": self.type_vocab_size}
        return shapes | {f"embeddings.{name}_embeddings.weight": (rows, width) for name, rows in tables.items()}


class BertGraph:
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


class Int8Graph(BertGraph):
    """The computation with linear layers in int8; attention and layer norms stay in float32."""

    def __init__(self, sizes: BertSizes, weights: Mapping[str, NDArray[Any]], ranges: Ranges) -> None:
        super().__init__(sizes, weights)
        self.ranges = ranges

    def linear(self, states: Any, *names: str) -> Any:  # noqa: ANN401
        """See `Graph.linear`, and the equations of this module."""
        op = self.op
        weight, bias = (self.joined(*(f"{name}.{part}" for name in names)) for part in ("weight", "bias"))
        lowest, highest, mean = self.ranges[names[0]]
        room = np.maximum(highest - lowest, _SMALLEST)
        share = room**_SMOOTHING / np.maximum(np.abs(weight).max(0), _SMALLEST) ** (1 - _SMOOTHING)
        step = share * ((room / share).max() / 255)
        lowest = (lowest + highest) / 2 - 127.5 * step
        scaled = weight * step
        scale = np.maximum(np.abs(scaled).max(1, keepdims=True), np.finfo(np.float32).tiny) / _HIGHEST_WEIGHT
        rounded = np.round(scaled / scale).astype(np.int8)
        correction = bias + weight @ mean - (rounded * scale) @ ((mean - lowest) / step)
        shifted = op.add(op.multiply(states, self.row(1 / step)), self.row(-lowest / step))
        ends = np.float32(0), np.float32(255)
        levels = op.fake_quantize(shifted, *ends, *ends, 256)
        taken = op.multiply(op.convert(op.constant(rounded), np.float32), op.constant(scale.astype(np.float32)))
        return op.add(op.matmul(levels, taken, False, True), op.constant(correction.astype(np.float32)))

    def row(self, values: NDArray[Any]) -> Any:  # noqa: ANN401
        """A constant (1, 1, K)."""
        return self.op.constant(values[None, None].astype(np.float32))


class _WatchedGraph(BertGraph):
    """The computation in float32, which also gives the range of the input of each linear layer."""

    def __init__(self, sizes: BertSizes, weights: Mapping[str, NDArray[Any]]) -> None:
        super().__init__(sizes, weights)
        self.seen: dict[str, list[Any]] = {}

    def linear(self, states: Any, *names: str) -> Any:  # noqa: ANN401
        reductions = self.op.reduce_min, self.op.reduce_max, self.op.reduce_mean
        self.seen[names[0]] = [reduction(states, self.axes(0, 1)) for reduction in reductions]
        return super().linear(states, *names)


def calibrate(
    sizes: BertSizes, weights: Mapping[str, NDArray[Any]], sample: Sequence[NDArray[np.float32]]
) -> dict[str, NDArray[np.float32]]:
    """The ranges of the inputs of all linear layers, over summed embeddings, each (L, H)."""
    import openvino

    graph = _WatchedGraph(sizes, weights)
    inputs = graph.model(Pooling.MEAN).get_parameters()
    outputs = [output for reductions in graph.seen.values() for output in reductions]
    settings = {"INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino.Core().compile_model(openvino.Model(outputs, inputs), "CPU", settings)
    found = [
        list(compiled([states[None], np.ones((1, len(states)), np.float32)]).values()) for states in sample
    ]  # by sequence, then by reduction
    reduced = [np.stack(values) for values in zip(*found, strict=True)]
    return {
        name: np.stack([reduced[at].min(0), reduced[at + 1].max(0), reduced[at + 2].mean(0)]).astype(np.float32)
        for name, at in zip(graph.seen, range(0, len(reduced), 3), strict=True)
    }


def read_ranges(folder: Path, sizes: BertSizes, weights_sha256: str) -> dict[str, NDArray[np.float32]] | None:
    """The ranges kept in a folder; None where there are none, or they are not those of these parameters."""
    shapes = {
        f"encoder.layer.{number}.{name}": (3, sizes.intermediate_size if name == "output.dense" else sizes.hidden_size)
        for number in range(sizes.num_hidden_layers)
        for name in ("attention.self.query", "attention.output.dense", "intermediate.dense", "output.dense")
    }
    try:
        with safetensors.safe_open(folder / RANGES_FILE, framework="numpy") as file:
            if (file.metadata() or {}).get("weights") != weights_sha256 or set(file.keys()) != set(shapes):
                return None
            ranges = {name: file.get_tensor(name) for name in shapes}
    except (OSError, safetensors.SafetensorError):
        return None
    is_whole = all(rows.shape == shapes[name] and np.isfinite(rows).all() for name, rows in ranges.items())
    return ranges if is_whole else None


def keep_ranges(folder: Path, ranges: Mapping[str, NDArray[np.float32]], weights_sha256: str) -> bool:
    """Write ranges beside their model; False where the folder takes no files."""
    try:
        with NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(save(dict(ranges), {"weights": weights_sha256}))
        Path(file.name).chmod(0o644)
        Path(file.name).replace(folder / RANGES_FILE)
    except OSError:
        return False
    return True


def default_dtype() -> Dtype:
    """bfloat16 where the processor multiplies it natively, else float32; both give the same vectors to four digits."""
    return "bfloat16" if cpu_has_bf16() else "float32"


def read_sizes(folder: Path) -> BertSizes | None:
    """The sizes of a folder that `OpenvinoBert` reads; None for any other, or where OpenVINO is not installed."""
    with naming_folder(folder):
        sizes = BertSizes.of(read_config(folder))
        if sizes is None or weight_files(folder) != [folder / WEIGHTS_FILE]:
            return None
    try:
        with safetensors.safe_open(folder / WEIGHTS_FILE, framework="numpy") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - no mapping
            shapes = {name: tuple(tensor.get_shape()) for name, tensor in slices.items()}
            are_floats = all(slices[name].get_dtype() in _FLOATS for name in slices if name not in UNREAD)
    except (OSError, safetensors.SafetensorError):
        return None
    # A wrong number of layers is refused before it takes time or memory.
    if sizes.num_hidden_layers > len(shapes) or importlib.util.find_spec("openvino") is None:
        return None
    tensors = {name: shape for name, shape in shapes.items() if name not in UNREAD}
    return sizes if are_floats and tensors == sizes.shapes() else None


class OpenvinoBert:
    """The vectors of token sequences; each depends on its own tokens alone, whatever its batch and padding.

    The model is compiled when it first encodes, with a stream for each thread, which reads batches by itself.
    """

    def __init__(
        self, folder: Path, sizes: BertSizes, *, pooling: Pooling = Pooling.MEAN, dtype: Dtype | None = None
    ) -> None:
        """Take a folder for which `read_sizes` returned these sizes."""
        if dtype == "bfloat16" and not cpu_has_bf16():
            raise EncoderError("this processor does not multiply bfloat16 natively; encode with --dtype float32")
        self.folder, self.pooling, self._sizes = folder, pooling, sizes
        self.dtype: Dtype = dtype or default_dtype()
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

    def encode(self, sequences: Sequence[Sequence[int]]) -> Vectors:
        """N lists of ids without special tokens, each of at most `max_tokens`, to (N, H) unit rows in their order."""
        rows = np.empty((len(sequences), self.width), np.float32)
        lengths = [
            min(next_multiple(len(sequence) + self.tokenizer.n_special, _MULTIPLE), self._most)
            for sequence in sequences
        ]
        with self._lock:
            queue = self._queue = self._queue or self._compiled()
            budget = min(_BATCH_TOKENS, max(1, sum(lengths) // len(queue)))
            queue.set_callback(lambda request, batch: self._store(request.get_output_tensor(0).data, rows, batch))
            for batch in token_budget_batches(lengths, budget):
                inputs = self._embedded([sequences[position] for position in batch], lengths[batch[0]])
                queue.start_async(inputs, batch)
            queue.wait_all()
        return unit(rows)

    def _embedded(self, sequences: Sequence[Sequence[int]], length: int) -> list[NDArray[np.float32]]:
        """Summed embeddings (B, L, H) and mask (B, L) of sequences, padded to a length."""
        ids, mask = self.tokenizer.pad_arrays(sequences, length)
        return [self._words[ids].astype(np.float32) + self._places[: ids.shape[1]], mask.astype(np.float32)]

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
            "INFERENCE_PRECISION_HINT": "bf16" if self.dtype == "bfloat16" else "f32",
        }
        with naming_folder(self.folder):
            weights = read_weights(self.folder / WEIGHTS_FILE)
            self._words, places, types = (weights.pop(f"embeddings.{name}_embeddings.weight") for name in TABLES)
            self._places = places[self._sizes.first_position :].astype(np.float32) + types[0].astype(np.float32)
            graph = BertGraph(self._sizes, weights)
            if self.dtype == "int8":
                graph = Int8Graph(self._sizes, weights, self._ranges(weights))
            compiled = openvino.Core().compile_model(graph.model(self.pooling), "CPU", settings)
        return openvino.AsyncInferQueue(compiled, streams)

    def _ranges(self, weights: Mapping[str, NDArray[Any]]) -> Ranges:
        """The ranges kept beside the model, or else those of the sample, which are then kept there."""
        checksum = weights_sha256(self.folder)
        ranges = read_ranges(self.folder, self._sizes, checksum)
        if ranges is not None:
            return ranges
        ((ids, _),) = self.tokenizer.tokenize([SAMPLE.read_text(encoding="utf-8")])
        length = min(self.max_tokens, SAMPLE_TOKENS)
        sequences = [ids[first : first + length] for first in range(0, len(ids), length)]
        ranges = calibrate(self._sizes, weights, [self._embedded([ids], 0)[0][0] for ids in sequences])
        place = self.folder / RANGES_FILE
        end = f"kept in {place}" if keep_ranges(self.folder, ranges, checksum) else f"{place} is not writable"
        _log.warning("int8: measured ranges of inputs, %s", end)
        return ranges


@dataclass(frozen=True)
class MeanConfig(Checked):
    """The settings that the vectors of a mean encoder depend on, besides the backbone."""

    error: ClassVar[type[EngineError]] = EncoderError
    window_tokens: int = setting(WINDOW_TOKENS, "most tokens of a chunk", COUNT)
    pooling: Pooling = Pooling.MEAN

    @classmethod
    def of(cls, values: Mapping[str, Any], folder: Path) -> Self:
        """The configuration with these values, which come from a folder."""
        # Files without a pooling were saved when mean pooling was the only one.
        return read_configuration(cls, {"pooling": Pooling.MEAN.value, **values}, folder / CONFIG_FILE)

    def describe(self, folder: Path, weights: str) -> None:
        """Write configuration and model card."""
        card = _CARD.format(window=self.window_tokens, pooling=self.pooling, sha256=weights)
        write_description(folder, {"encoder": KIND, **asdict(self)}, card)


class CpuEncoder(Encoder):
    """Computes the vectors of `engine.encoders.trainable.MeanEncoder`, whose fingerprint it has, without torch.

    In int8 it is an encoder of its own, with a name and a fingerprint that say so.
    """

    def __init__(self, backbone: OpenvinoBert, config: MeanConfig, *, name: str) -> None:
        """Wrap a backbone; its pooling is that of the configuration."""
        self.backbone, self.width = backbone, backbone.width
        self._form = {"dtype": "int8"} if backbone.dtype == "int8" else {}
        self.name = f"{name}:int8" if self._form else name
        self.config = replace(config, window_tokens=min(config.window_tokens, backbone.max_tokens))
        self._weights = weights_sha256(backbone.folder)

    @property
    def n_read(self) -> int:
        """See `Encoder`."""
        return self.backbone.n_read

    @property
    def fingerprint(self) -> str:
        """See `Encoder`."""
        read_by = {"weights": self._weights, "tokenizer": self.backbone.tokenizer.sha256}
        return fingerprint_of({"encoder": KIND, "title": True, **asdict(self.config), **read_by, **self._form})

    def segment(self, document: Document) -> SegmentedDocument:
        """Cut a document into windows of whole sentences; see `Encoder.segment`."""
        return chunk_document(document, self.backbone.tokenizer, self.config.window_tokens, self.config.window_tokens)

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        """Encode documents, whose chunks share batches; see `Encoder.encode_segmented`."""
        chunks = [ids for document in documents for ids in document.token_ids]
        titles = [document.title_ids for document in documents if document.title_ids]
        rows = self._rows([*chunks, *titles])
        *parts, of_titles = np.split(rows, np.cumsum([len(document.chunks) for document in documents]))
        parts = add_titles(documents, parts, of_titles)
        return [token_weighted_means(document, part) for document, part in zip(documents, parts, strict=True)]

    def _rows(self, sequences: Sequence[Sequence[int]]) -> Vectors:
        blocks: list[Vectors] = []
        for first in range(0, max(1, len(sequences)), _SEQUENCES_AT_ONCE):
            if blocks:
                step()
            blocks.append(self.backbone.encode(sequences[first : first + _SEQUENCES_AT_ONCE]))
        return np.concatenate(blocks)

    def save_pretrained(self, folder: Path) -> None:
        """Copy backbone and tokenizer, and write configuration and model card; see `Encoder.save_pretrained`."""
        self.backbone.tokenizer.save_pretrained(folder)
        copy_model(self.backbone.folder, folder)
        self.config.describe(folder, self._weights)


_CARD = """# Mean-pooled hierarchical encoder

Chunks of {window} tokens, cut at sentence ends, are pooled by the backbone
({pooling}; weights sha256 {sha256}); section and document vectors are token-weighted
means of chunk vectors. It has no weights of its own.
"""
