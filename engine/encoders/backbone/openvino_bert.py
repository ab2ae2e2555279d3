"""The forward pass of a BERT or a RoBERTa on a CPU, by OpenVINO: token ids in, unit vectors out, without torch.

It reads only folders for which the result equals that of transformers; others are left to
`engine.encoders.backbone.backbone.Backbone`.

Letters in shapes: B sequences, L tokens (padded), H width of a hidden state, A heads.
"""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Literal, get_args

import numpy as np
import safetensors
from numpy.typing import NDArray

from engine.encoders.backbone.batching import next_multiple, token_budget_batches
from engine.encoders.backbone.bert_graph import TABLES, UNREAD, BertSizes, Graph, read_weights
from engine.encoders.backbone.hardware import cpu_has_bf16
from engine.encoders.backbone.int8 import (
    RANGES_FILE,
    SAMPLE,
    SAMPLE_TOKENS,
    Int8Graph,
    Ranges,
    calibrate,
    keep_ranges,
    read_ranges,
)
from engine.encoders.backbone.model_folder import WEIGHTS_FILE, naming_folder, read_config, weight_files
from engine.encoders.backbone.tokenizer import Tokenizer
from engine.encoders.encoder import Pooling, Vectors, unit
from engine.encoders.files import weights_sha256
from engine.errors import EncoderError

Dtype = Literal["int8", "bfloat16", "float32"]  # of the products
DTYPES: tuple[Dtype, ...] = get_args(Dtype)

_log = logging.getLogger("longmatch.encoder")

_BATCH_TOKENS = 512  # of a batch, which one thread reads by itself, so that its states stay in the cache
_MULTIPLE = 16  # of tokens in a padded sequence: OpenVINO compiles kernels for each shape
_MOST_STREAMS = 16
_FLOATS = ("F16", "BF16", "F32")


def default_dtype() -> Dtype:
    """bfloat16 where the processor multiplies it natively, else float32; both give the same vectors to four digits."""
    return "bfloat16" if cpu_has_bf16() else "float32"


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
            are_floats = all(slices[name].get_dtype() in _FLOATS for name in slices if name not in UNREAD)
    except (OSError, safetensors.SafetensorError):
        return None
    # A wrong number of layers is refused before it takes time or memory.
    if sizes.num_hidden_layers > len(shapes) or importlib.util.find_spec("openvino") is None:
        return None
    found = {name: shape for name, shape in shapes.items() if name not in UNREAD}
    return sizes if are_floats and found == sizes.shapes() else None


class OpenvinoBert:
    """The vectors of token sequences; each depends on its own tokens alone, whatever its batch and padding.

    The model is compiled when it first encodes, with a stream for each thread, which reads batches by itself.
    """

    def __init__(
        self, folder: Path, sizes: BertSizes, *, pooling: Pooling = Pooling.MEAN, dtype: Dtype | None = None
    ) -> None:
        """Take a folder for which `read_sizes` returned these sizes.

        Raises:
            EncoderError: the processor has no bf16, or tokenizer and model do not belong together.
        """
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

    @property
    def weights_bytes(self) -> int:
        """Bytes that the parameters take, at four each."""
        return 4 * sum(int(np.prod(shape)) for shape in self._sizes.shapes().values())

    def encode(self, sequences: Sequence[Sequence[int]]) -> Vectors:
        """N lists of ids without special tokens, each of at most `max_tokens`, to (N, H) unit rows in their order."""
        rows = np.empty((len(sequences), self.width), np.float32)
        lengths = [self._padded_length(len(sequence)) for sequence in sequences]
        with self._lock:
            queue = self._queue = self._queue or self._compiled()
            budget = min(_BATCH_TOKENS, max(1, sum(lengths) // len(queue)))
            queue.set_callback(lambda request, batch: self._store(request.get_output_tensor(0).data, rows, batch))
            for batch in token_budget_batches(lengths, budget):
                inputs = self._embedded([sequences[position] for position in batch], lengths[batch[0]])
                queue.start_async(inputs, batch)
            queue.wait_all()
        return unit(rows)

    def _padded_length(self, n_tokens: int) -> int:
        return min(next_multiple(n_tokens + self.tokenizer.n_special, _MULTIPLE), self._most)

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
            graph = Graph(self._sizes, weights)
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
