"""A BERT or a RoBERTa in int8: products of 8-bit numbers, in ranges that inputs had on a sample of text.

Channel j of the input x of a linear layer W x + b is divided by a step of its own (SmoothQuant: Xiao et al. 2023,
arXiv:2211.10438), which the weights take over. With the lowest input l and the mean input m of the sample,

    u = round((x - l) / step) in 0 to 255,   Q = W diag(step), rounded to 8 bits for each output,
    W x + b ~ Q u + b + W m - Q (m - l) / step

so what rounding the weights adds to a mean input is taken away again.

The sample, `calibration.txt`, is fixed: ranges follow from the parameters alone. They are kept beside the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np
import safetensors
from numpy.typing import NDArray
from safetensors.numpy import save

from engine.encoders.backbone.bert_graph import BertSizes, Graph
from engine.encoders.encoder import Pooling

Ranges = Mapping[str, NDArray[np.float32]]  # (3, K) lowest, highest and mean inputs of a linear layer, by its name

RANGES_FILE = "int8.ranges"  # safetensors; its name keeps it out of the checksum of the parameters
SAMPLE = Path(__file__).with_name("calibration.txt")  # paragraphs of PEPs and EIPs, which are in the public domain
SAMPLE_TOKENS = 126  # of a sequence of the sample
_SMOOTHING = 0.8  # exponent of an input's range in its step, as alpha of SmoothQuant
# Instructions of AVX2 add two products in 16 bits, which weights up to 127 pass more often than they gain in precision.
_HIGHEST_WEIGHT = 90
_SMALLEST = 1e-6


class Int8Graph(Graph):
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


class _WatchedGraph(Graph):
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
