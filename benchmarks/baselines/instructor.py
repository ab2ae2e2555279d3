"""INSTRUCTOR (Su et al. 2023, arXiv:2212.09741): the encoder of a T5 behind an instruction. Token ids in, vectors out.

It is no `Backbone`: a T5 of transformers has a decoder too, and neither pools past a prefix
nor narrows vectors behind the mean.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.functional import linear, normalize
from transformers import T5EncoderModel

from engine.encoders.backbone.batching import BatchReader, group_by_length
from engine.encoders.backbone.hardware import default_device, default_dtype, set_up_kernels
from engine.encoders.backbone.model_folder import quiet_transformers
from engine.encoders.backbone.tokenizer import Tokenizer
from engine.encoders.backbone.weights import weights_sha256
from engine.encoders.description import read_json
from engine.encoders.encoder import Vectors
from engine.encoders.trainable import inference
from engine.errors import EncoderError

# Made by the template of its authors; query and target are alike here, so both have it.
INSTRUCTION = "Represent the document for retrieval: "
MAX_TOKENS = 512  # that it was trained at, the instruction counted
_DENSE = Path("2_Dense")


class Instructor:
    """A `ChunkModel` by the folder of a published INSTRUCTOR.

    With h_t the last hidden states of instruction, text and </s>, as in the released
    code (xlang-ai/instructor-embedding, commit 188ee78):

        v = unit(W mean_t h_t)

    over the tokens t behind the instruction, </s> among them. The instruction is
    tokenized by itself, which gives the ids of "instruction text" with a space between.
    """

    def __init__(
        self,
        folder: Path,
        *,
        device: str | None = None,
        dtype: torch.dtype | None = None,
        instruction: str = INSTRUCTION,
    ) -> None:
        """Load weights from a folder.

        Raises:
            EncoderError: no folder of an INSTRUCTOR with weights in safetensors, or no room for a text is left.
        """
        set_up_kernels()
        self.folder = folder
        self.device = device or default_device()
        self.tokenizer = Tokenizer(folder)  # looks over the folder, too
        weights = weights_sha256(folder) + weights_sha256(_dense_folder(folder))
        self.sha256 = hashlib.sha256(f"{weights}\0{instruction}".encode()).hexdigest()
        dtype = dtype or default_dtype(self.device)
        self.model: Any = _load_t5(folder, dtype).to(self.device).eval()
        self.tokenizer.check_ids(len(self.model.get_input_embeddings().weight))
        self._dense = _load_dense(folder).to(self.device)  # (D, H)
        self.width = len(self._dense)
        self._reader = BatchReader()
        ((self._prefix, _),) = self.tokenizer.tokenize([instruction])
        self.max_tokens = MAX_TOKENS - self.tokenizer.n_special - len(self._prefix)
        if self.max_tokens < 1:
            raise EncoderError(
                f"the instruction {instruction!r:.80} has {len(self._prefix)} tokens of {MAX_TOKENS}; shorten it"
            )

    def encode(self, sequences: Sequence[Sequence[int]], token_budget: int) -> Vectors:
        """As `Backbone.encode`."""
        if not sequences:
            return torch.empty((0, self.width)).numpy()
        n_around = len(self._prefix) + self.tokenizer.n_special
        group = group_by_length([len(sequence) + n_around for sequence in sequences])

        def read(batch: Sequence[int]) -> Tensor:
            return self._read([sequences[position] for position in batch])

        with inference(self.model):
            rows: Vectors = self._reader.read(len(sequences), token_budget, group, read).numpy()
        return rows

    def _read(self, sequences: Sequence[Sequence[int]]) -> Tensor:
        ids, mask = self.tokenizer.pad([[*self._prefix, *sequence] for sequence in sequences])
        ids, mask = ids.to(self.device), mask.to(self.device)
        hidden = self.model(input_ids=ids, attention_mask=mask.long())[0].float()  # (B, L, H)
        counted = mask.clone()
        counted[:, : len(self.tokenizer.prefix) + len(self._prefix)] = False
        weights = counted.unsqueeze(-1).float()
        mean = (hidden * weights).sum(1) / weights.sum(1)
        return normalize(linear(mean, self._dense), dim=-1).cpu()


def _dense_folder(folder: Path) -> Path:
    if not (folder / _DENSE).is_dir():
        raise EncoderError(f"{folder} holds no folder {_DENSE}, as INSTRUCTOR has one; take one of hkunlp/instructor-*")
    return folder / _DENSE


def _load_t5(folder: Path, dtype: torch.dtype) -> Any:  # noqa: ANN401
    with quiet_transformers():
        try:
            model, report = T5EncoderModel.from_pretrained(
                folder, dtype=dtype, use_safetensors=True, output_loading_info=True
            )
        except Exception as error:  # transformers raises what it likes over a damaged folder
            told = " ".join(str(error).split()) or type(error).__name__
            raise EncoderError(f"{folder} cannot be loaded as INSTRUCTOR: {told}; take the published folder") from error
    if report["missing_keys"]:
        missing = min(report["missing_keys"])
        raise EncoderError(
            f"{folder} cannot be loaded as INSTRUCTOR: its weights lack {missing}; take the published folder"
        )
    return model


def _load_dense(folder: Path) -> Tensor:
    config = read_json(folder / _DENSE / "config.json")
    if not isinstance(config, dict) or config.get("bias") or "Identity" not in str(config.get("activation_function")):
        raise EncoderError(f"{folder / _DENSE} is no matrix alone, as that of INSTRUCTOR is; take the published folder")
    file = folder / _DENSE / "model.safetensors"
    try:
        weight: Tensor = load_file(file)["linear.weight"]
    except (OSError, SafetensorError, KeyError) as error:
        raise EncoderError(f"{file} cannot be read ({error}); take the published folder") from error
    return weight.float()
