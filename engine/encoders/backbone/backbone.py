"""A BERT-like model as chunk encoder: loading, precision, pooling. No documents here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from engine.encoders.backbone.batching import BatchReader, token_budget_batches
from engine.encoders.backbone.hardware import copy_to, default_device, default_dtype, set_up_kernels
from engine.encoders.backbone.long_attention import attention_of
from engine.encoders.backbone.model_folder import LAYER, load_model, quiet_transformers
from engine.encoders.backbone.tokenizer import Tokenizer
from engine.encoders.encoder import Pooling, Vectors
from engine.encoders.files import copy_model, weights_sha256
from engine.encoders.parameters import Loaded, inference, n_changes
from engine.errors import EncoderError

_USUAL_LENGTH = 512  # tokens of a sequence, for models without a number of positions


class Backbone:
    """Token ids in, one vector for each sequence out.

    Mean pooling is that of Sentence-BERT (Reimers & Gurevych 2019, arXiv:1908.10084).
    Longformer, BigBird, ModernBERT and the RoBERTa family are read as they require, see
    `engine.encoders.backbone.long_attention`; no vector depends on padding. A BERT that is only to encode on a CPU
    is read faster, and without torch, by `engine.encoders.backbone.openvino_bert`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        device: str | None = None,
        dtype: torch.dtype | None = None,
        pooling: Pooling = Pooling.MEAN,
    ) -> None:
        """Load the model and the tokenizer of a folder.

        Raises:
            EncoderError: the folder holds no model, or its tokenizer gives no offsets.
        """
        set_up_kernels()
        self.folder = folder
        self.pooling = pooling
        self.device = device or default_device()
        self.dtype = dtype or default_dtype(self.device)
        self.sha256 = weights_sha256(folder)
        self.tokenizer = Tokenizer(folder)
        self.reader = BatchReader(self.device)
        model, _ = load_model(folder, self.dtype)
        self.model = model.to(self.device).eval()
        self._attention = attention_of(self.model)
        self.loaded = Loaded(self.sha256, n_changes(self.model))
        self.tokenizer.check_ids(len(self.model.get_input_embeddings().weight))
        if self.max_tokens < 1:
            raise EncoderError(
                f"{folder} reads {self.max_tokens + self.tokenizer.n_special} tokens at once, "
                f"{self.tokenizer.n_special} of them special ones; take a model that has room for a text"
            )

    @property
    def width(self) -> int:
        """D, the length of a vector."""
        return int(self.model.config.hidden_size)

    @property
    def max_tokens(self) -> int:
        """Most tokens of one sequence, special ones not counted."""
        readable = min(self._attention.max_length or _USUAL_LENGTH, self.tokenizer.max_length)
        return readable - self.tokenizer.n_special

    def encode(self, sequences: Sequence[Sequence[int]], token_budget: int) -> Vectors:
        """Encode token sequences without gradients: (N, D) float32, unit rows, in the order given.

        Args:
            sequences: N lists of ids, without special tokens, each at most `max_tokens` long.
            token_budget: most tokens of one forward pass, padding counted; see `BatchReader.read` for GPUs.
        """
        with inference(self.model):
            rows: Vectors = self.embed(sequences, token_budget).cpu().numpy()
        return rows

    def embed(self, sequences: Sequence[Sequence[int]], token_budget: int) -> Tensor:
        """As `encode`, with gradients where torch records them: (N, D) float32, unit rows, on `device`."""
        return torch.nn.functional.normalize(self.pool(sequences, token_budget), dim=-1)

    def pool(self, sequences: Sequence[Sequence[int]], token_budget: int) -> Tensor:
        """As `embed`, before rows are scaled to unit length: (N, D) float32."""
        if not sequences:
            return torch.empty((0, self.width), device=self.device)

        def read(batch: Sequence[Sequence[int]]) -> Tensor:
            ids, mask = self.tokenizer.pad(batch)
            return self._pooled(self.hidden_states(ids, mask).float(), mask)

        return self.reader.read(sequences, token_budget, self.batches, read)

    def hidden_states(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Last hidden states (B, L, H) of ids and mask, as from `Tokenizer.pad`; gradients if torch records them."""
        return self._attention.hidden_states(copy_to(self.device, ids), mask)

    def round_to(self, dtype: torch.dtype) -> None:
        """Convert the parameters to another precision; buffers such as rotary frequencies stay, as in transformers."""
        for weight in self.model.parameters():
            weight.data = weight.data.to(dtype)
        self.dtype = dtype

    def freeze(self, n_layers: int) -> None:
        """Freeze the embeddings and the first layers in training, none at 0; half the layers save a third of the work.

        Raises:
            EncoderError: the model has fewer layers.
        """
        weights = dict(self.model.named_parameters())
        numbers = {name: int(match[1]) for name in weights if (match := LAYER.search(name))}
        n_own = max(numbers.values(), default=-1) + 1
        if n_layers > n_own:
            raise EncoderError(f"{n_layers} layers of {self.folder} are to be frozen, it has {n_own}; freeze fewer")
        for name, weight in weights.items():
            is_below = numbers[name] < n_layers if name in numbers else name.startswith("embeddings.")
            weight.requires_grad_(not (n_layers and is_below))

    def checkpoint_gradients(self, on: bool) -> None:
        """Keep only the inputs of each layer while training, and recompute the rest for the gradient.

        Chen et al. (2016, arXiv:1604.06174): the same gradients for less memory and one more forward pass.

        Raises:
            EncoderError: the model does not support it.
        """
        for model in self._attention.models:
            if on and not model.supports_gradient_checkpointing:
                raise EncoderError(
                    f"{self.folder} is a {model.config.model_type}, which cannot checkpoint gradients; "
                    "train it without, with smaller batches"
                )
            # transformers 5 names these methods differently.
            word = "activation" if hasattr(model, "activation_checkpointing_enable") else "gradient"
            if on:
                getattr(model, f"{word}_checkpointing_enable")({"use_reentrant": False})
            else:
                getattr(model, f"{word}_checkpointing_disable")()

    def batches(self, sequences: Sequence[Sequence[int]], token_budget: int) -> Iterator[list[int]]:
        """Batches of positions of sequences to read together, each position once; `token_budget` as in `encode`."""
        companies: dict[int, list[int]] = {}
        lengths = [len(sequence) + self.tokenizer.n_special for sequence in sequences]
        for position, length in enumerate(lengths):
            companies.setdefault(self._attention.company(length), []).append(position)
        for _, positions in sorted(companies.items(), reverse=True):
            padded = [self._attention.padded_length(lengths[position]) for position in positions]
            for batch in token_budget_batches(padded, token_budget):
                yield [positions[at] for at in batch]

    def _pooled(self, hidden: Tensor, mask: Tensor) -> Tensor:
        if self.pooling is Pooling.CLS:
            return hidden[:, 0]
        weights = copy_to(self.device, mask).unsqueeze(-1).float()  # (B, L, 1)
        return (hidden * weights).sum(1) / weights.sum(1)  # (B, D)

    def save_pretrained(self, folder: Path, *, dtype: torch.dtype | None = None) -> None:
        """Write tokenizer and parameters: those in memory at a given precision, or a copy of the files."""
        self.tokenizer.save_pretrained(folder)
        if dtype is None:
            copy_model(self.folder, folder)
            return
        state = self.model.state_dict().items()
        with quiet_transformers():
            self.model.save_pretrained(
                folder, state_dict={name: value.detach().to("cpu", dtype).contiguous() for name, value in state}
            )
