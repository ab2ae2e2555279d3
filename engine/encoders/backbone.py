"""A BERT-like model of transformers as chunk encoder: loading, precision, pooling. No documents here."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor
from transformers import AutoModel
from transformers.utils import logging as transformers_logging

from engine.encoders.batching import token_budget_batches
from engine.encoders.encoder import Vectors
from engine.encoders.tokenizer import Tokenizer
from engine.encoders.trainable import inference
from engine.encoders.weights import weights_sha256
from engine.errors import EncoderError

_CACHED_KERNELS = "64"


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep the loading reports of transformers off the terminal; errors still raise."""
    level = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        transformers_logging.enable_progress_bar()


def default_device() -> str:
    """`cuda` where torch sees a GPU, else `cpu`."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def default_dtype(device: str) -> torch.dtype:
    """bfloat16 where the hardware multiplies it natively, else float32.

    Emulated bfloat16 is slower than float32, so on x86 the instructions themselves
    are asked for.
    """
    if device.startswith("cuda"):
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    if platform.machine() in ("x86_64", "AMD64"):
        flags = _cpu_flags()
        return torch.bfloat16 if {"avx512_bf16", "amx_bf16"} & flags else torch.float32
    return torch.float32


def _cpu_flags() -> frozenset[str]:
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.exists():
        return frozenset()
    for line in cpuinfo.read_text().splitlines():
        if line.startswith("flags"):
            return frozenset(line.split())
    return frozenset()


def bound_kernel_caches() -> None:
    """Keep torch from holding compiled kernels for a thousand batch shapes, at about 2 MiB a shape.

    Both of its caches count entries, and read these at the first product. Fewer
    are as fast: compiling takes no time beside multiplying (12,400 tokens/s of CPU
    time either way), and memory stays flat over a corpus.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, _CACHED_KERNELS)
    # Routes float32 products to oneDNN; the result stays float32 (error 1e-6).
    torch.set_float32_matmul_precision("medium")


class Backbone:
    """Token ids in, one unit vector a sequence out: mean pooling over all tokens, special ones included.

    The pooling is that of Sentence-BERT (Reimers & Gurevych 2019, arXiv:1908.10084).
    """

    def __init__(self, folder: Path, *, device: str | None = None, dtype: torch.dtype | None = None) -> None:
        """Load weights from a folder.

        Raises:
            EncoderError: not a model folder, or its tokenizer gives no offsets.
        """
        bound_kernel_caches()
        self.folder = folder
        self.device = device or default_device()
        self.dtype = dtype or default_dtype(self.device)
        self.sha256 = weights_sha256(folder)
        with quiet_transformers():
            self.tokenizer = Tokenizer(folder)
            try:
                model = AutoModel.from_pretrained(
                    folder, dtype=self.dtype, use_safetensors=True, trust_remote_code=False
                )
            except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
                raise EncoderError(f"{folder} cannot be loaded as an encoder backbone: {error}") from error
        self.model: Any = model.to(self.device).eval()

    @property
    def width(self) -> int:
        """D, the length of a vector."""
        return int(self.model.config.hidden_size)

    @property
    def max_tokens(self) -> int:
        """Most tokens of one sequence, special ones not counted."""
        positions = getattr(self.model.config, "max_position_embeddings", 512)
        readable = min(int(positions), self.tokenizer.max_length)  # RoBERTa counts two positions more
        return readable - self.tokenizer.n_special

    def tokenize(self, texts: Sequence[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """As `Tokenizer.tokenize`."""
        return self.tokenizer.tokenize(texts)

    def encode(self, sequences: Sequence[Sequence[int]], token_budget: int) -> Vectors:
        """Encode token sequences without gradients.

        Args:
            sequences: N lists of ids, without special tokens, each at most `max_tokens` long.
            token_budget: most tokens of one forward pass, padding counted.

        Returns:
            (N, D) float32, unit rows, in the order given.
        """
        with inference(self.model):
            rows: Vectors = self.embed(sequences, token_budget).cpu().numpy()
        return rows

    def embed(self, sequences: Sequence[Sequence[int]], token_budget: int) -> Tensor:
        """The same with gradients where torch records them: (N, D) float32, unit rows, on `device`."""
        lengths = [len(sequence) + self.tokenizer.n_special for sequence in sequences]
        order: list[int] = []
        parts: list[Tensor] = []
        for batch in token_budget_batches(lengths, token_budget):
            parts.append(self._forward([sequences[position] for position in batch]))
            order.extend(batch)
        if not parts:
            return torch.empty((0, self.width), device=self.device)
        back = torch.empty(len(order), dtype=torch.int64)
        back[torch.tensor(order)] = torch.arange(len(order))
        return torch.cat(parts)[back.to(self.device)]

    def _forward(self, sequences: Sequence[Sequence[int]]) -> Tensor:
        ids, mask = self.tokenizer.pad(sequences)
        # Without padding no mask is passed: attention then takes its faster path.
        attention_mask = None if mask.all() else mask.long().to(self.device)
        hidden = self.model(input_ids=ids.to(self.device), attention_mask=attention_mask)[0]
        weights = mask.to(self.device).unsqueeze(-1).float()  # (B, L, 1)
        pooled = (hidden.float() * weights).sum(1) / weights.sum(1)  # (B, D)
        return torch.nn.functional.normalize(pooled, dim=-1)

    def save_pretrained(self, folder: Path, *, dtype: torch.dtype | None = None) -> None:
        """Write weights (safetensors) and tokenizer.

        Args:
            folder: made if need be.
            dtype: precision of the weights on disk. By default the files are copied
                as they were loaded, which leaves out anything that was trained since.
        """
        self.tokenizer.save_pretrained(folder)
        if dtype is not None:
            _written_as(self.model, folder, dtype)
            return
        for file in sorted(self.folder.iterdir()):
            if file.suffix in (".safetensors", ".json", ".txt", ".model") and file.is_file():
                (folder / file.name).write_bytes(file.read_bytes())


def _written_as(model: Any, folder: Path, dtype: torch.dtype) -> None:  # noqa: ANN401
    values = {name: value.detach().to("cpu", dtype).contiguous() for name, value in model.state_dict().items()}
    with quiet_transformers():
        model.save_pretrained(folder, state_dict=values)
