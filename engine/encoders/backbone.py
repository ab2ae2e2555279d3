"""A BERT-like model in torch as chunk encoder: parameters, attention, precision, pooling. No documents here.

Letters in shapes: B sequences, L tokens, H (or D) width of a hidden state.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import pad

from engine.encoders import hardware
from engine.encoders.encoder import Pooling
from engine.encoders.files import LAYER, copy_model, load_model, quiet_transformers, weight_shapes, weights_sha256
from engine.encoders.tokenizer import Tokenizer
from engine.errors import EncoderError

ModuleT = TypeVar("ModuleT", bound=nn.Module)
_USUAL_LENGTH = 512  # tokens of a sequence, for models without a number of positions


@contextmanager
def inference(module: nn.Module) -> Iterator[None]:
    """No gradients and no dropout inside; the training mode is restored afterwards."""
    was_training = module.training
    module.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        module.train(was_training)


def module_sha256(module: nn.Module) -> str:
    """SHA-256 over the names and float32 values of a module's parameters and buffers, on any device."""
    digest = hashlib.sha256()
    for name, value in sorted(module.state_dict().items()):
        digest.update(name.encode() + b"\0" + np.ascontiguousarray(value.float().cpu().numpy()).tobytes())
    return digest.hexdigest()


def save_weights(weights: Mapping[str, Tensor], file: Path, *, dtype: torch.dtype | None = None) -> None:
    """Write parameters by name, in another precision where one is given; integers stay integers."""
    save_file(
        {
            name: value.detach().to("cpu", dtype if value.is_floating_point() else None).contiguous()
            for name, value in weights.items()
        },
        file,
    )


def load_weights(make: Callable[[], ModuleT], file: Path) -> ModuleT:
    """Make a module with the parameters of a file that `save_weights` wrote.

    Shapes are compared before the module takes memory. The state of torch's random generator is kept.
    """
    with torch.random.fork_rng(devices=[]):
        with torch.device("meta"):
            expected = {name: tuple(value.shape) for name, value in make().state_dict().items()}
        try:
            shapes = weight_shapes(file)
            for name in sorted(shapes.keys() | expected.keys()):
                if shapes.get(name) != expected.get(name):
                    raise EncoderError(
                        f"{file} has {name} of shape {shapes.get(name)}, the other files need {expected.get(name)}; "
                        "save the encoder again"
                    )
            module = make()
            module.load_state_dict(load_file(file))
        except (OSError, SafetensorError) as error:
            raise EncoderError(f"{file} cannot be read ({error}); save the encoder again") from error
    return module


class Loaded(NamedTuple):
    """The parameters that a module was loaded with; memory can hold them at a lower precision than files.

    Until it is trained, an encoder has the fingerprint of its files and is saved unchanged.
    """

    sha256: str  # of the parameters in the files
    n_changes: int  # of the module after rounding, see `n_changes`

    @classmethod
    def rounded(cls, module: nn.Module, round_weights: Callable[[], object]) -> Self:
        """Round parameters from the precision of their files to that in memory."""
        sha256 = module_sha256(module)
        round_weights()
        return cls(sha256, n_changes(module))

    def are_in(self, module: nn.Module) -> bool:
        """Whether the module still holds the loaded parameters."""
        return n_changes(module) == self.n_changes


def n_changes(module: nn.Module) -> int:
    """The number of writes to the parameters and buffers, as torch counts them for autograd."""
    return sum(value._version for value in (*module.parameters(), *module.buffers()))


def sha256_of(module: nn.Module, loaded: Loaded | None) -> str:
    """SHA-256 of a module's parameters; that of the files if the parameters are unchanged since they were loaded."""
    return loaded.sha256 if loaded is not None and loaded.are_in(module) else module_sha256(module)


def attention_of(model: Any) -> PlainAttention:  # noqa: ANN401
    """The way to call a model of transformers."""
    kind = model.config.model_type
    if kind == "longformer":
        return LongformerAttention(model)
    if kind == "big_bird" and model.config.attention_type == "block_sparse":
        return BigBirdAttention(model)
    return PlainAttention(model)


def max_positions(model: Any) -> int | None:  # noqa: ANN401
    """The number of positions that a model can give to tokens; None where its configuration has none.

    Models of the RoBERTa family count from the padding id on: of 514 positions they use 512.
    """
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions is None:
        return None
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    return int(positions) if padding is None else int(positions) - padding - 1


class PlainAttention:
    """A model, called in the way that its attention requires.

    Here every token attends to every other, or the model masks by itself, as ModernBERT does.
    """

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        self.model = model
        self.models: tuple[Any, ...] = (model,)  # the models that are called, all with the same parameters
        self.max_length = max_positions(model)  # tokens of a sequence, special ones counted; None without a limit

    def padded_length(self, length: int) -> int:
        """Length of a sequence as the model reads it, padding included."""
        return length

    def company(self, length: int) -> int:
        """A number: sequences with equal numbers can share a batch, padded to the longest."""
        return 0

    def hidden_states(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Last hidden states (B, L, H).

        Args:
            ids: (B, L) int64, on the model's device.
            mask: (B, L) bool, True where a token is real, anywhere.
        """
        # Without padding no mask is passed: attention then takes its faster path.
        attention_mask = None if mask.all() else hardware.copy_to(ids.device, mask).long()
        hidden: Tensor = self.model(input_ids=ids, attention_mask=attention_mask)[0]
        return hidden


class LongformerAttention(PlainAttention):
    """Each token sees a window around it; the first token sees, and is seen by, all.

    Beltagy et al. (2020, arXiv:2004.05150), section 3.1, with the global token of its
    classification tasks. Inputs are padded to a multiple of the window, which has no effect in the windows of tokens.
    """

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        super().__init__(model)
        window = model.config.attention_window
        self.window = window if isinstance(window, int) else max(window)

    def padded_length(self, length: int) -> int:
        """The next multiple of the window."""
        return hardware.next_multiple(length, self.window)

    def hidden_states(self, ids: Tensor, mask: Tensor) -> Tensor:
        """See `PlainAttention`."""
        full_ids, full_mask = _padded(ids, mask, self.padded_length(ids.shape[1]), self.model.config.pad_token_id)
        is_global = torch.zeros_like(full_ids)
        is_global[:, 0] = 1
        hidden: Tensor = self.model(
            input_ids=full_ids, attention_mask=full_mask.long(), global_attention_mask=is_global
        )[0]
        return hidden[:, : ids.shape[1]]


class BigBirdAttention(PlainAttention):
    """Blocks see their neighbours, some random blocks, and the first and last block; short inputs see everything.

    Zaheer et al. (2020, arXiv:2007.14062), section 2. The last block of the *padded*
    input is a global one, so a vector depends on the number of blocks: only sequences
    with the same number share a batch. In training, the random blocks are drawn again
    for each length from the seeds of the model; in encoding, transformers uses the
    first block for all of them. Both are the same each time.

    A short input switches a model of transformers to full attention permanently. Here a
    second model with the same parameters reads short inputs.
    """

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        super().__init__(model)
        self.block = int(model.config.block_size)
        self.short = (5 + 2 * model.config.num_random_blocks) * self.block
        positions = int(model.config.max_position_embeddings)
        self.max_length = positions // self.block * self.block if positions > self.short else positions
        # Parameters in the memo are shared, not copied.
        self.full = copy.deepcopy(model, {id(weight): weight for weight in model.parameters()})
        self.full.set_attention_type("original_full")
        self.models = (model, self.full)

    def padded_length(self, length: int) -> int:
        """The next multiple of a block, where an input is not short."""
        return length if length <= self.short else hardware.next_multiple(length, self.block)

    def company(self, length: int) -> int:
        """Only sequences with the same number of blocks, or short ones, can share a batch."""
        return 0 if length <= self.short else self.padded_length(length)

    def hidden_states(self, ids: Tensor, mask: Tensor) -> Tensor:
        """See `PlainAttention`."""
        length = ids.shape[1]
        if length <= self.short:
            self.full.train(self.model.training)
            hidden: Tensor = self.full(input_ids=ids, attention_mask=mask.to(ids.device, torch.int64))[0]
            return hidden
        full_ids, full_mask = _padded(ids, mask, self.padded_length(length), self.model.config.pad_token_id)
        hidden = self.model(input_ids=full_ids, attention_mask=full_mask.long())[0]
        return hidden[:, :length]


def _padded(ids: Tensor, mask: Tensor, length: int, pad_id: int | None) -> tuple[Tensor, Tensor]:
    """Ids and mask padded to a length, both on the device of the ids."""
    more = (0, length - ids.shape[1])
    return pad(ids, more, value=pad_id or 0), pad(mask.to(ids.device), more)


class Backbone:
    """Token ids in, one vector for each sequence out.

    Mean pooling is that of Sentence-BERT (Reimers & Gurevych 2019, arXiv:1908.10084).
    Longformer, BigBird, ModernBERT and the RoBERTa family are read as they require, see `attention_of`; no vector
    depends on padding. A BERT that is only to encode on a CPU is read faster, and without torch, by
    `engine.encoders.cpu`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        device: str | None = None,
        dtype: torch.dtype | None = None,
        pooling: Pooling = Pooling.MEAN,
    ) -> None:
        """Load the model and the tokenizer of a folder."""
        hardware.set_up_kernels()
        self.folder = folder
        self.pooling = pooling
        self.device = device or hardware.default_device()
        self.dtype = dtype or hardware.default_dtype(self.device)
        self.sha256 = weights_sha256(folder)
        self.tokenizer = Tokenizer(folder)
        self.reader = hardware.BatchReader(self.device)
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

    def embed(self, sequences: Sequence[Sequence[int]], token_budget: int) -> Tensor:
        """Encode token sequences, with gradients where torch records them: (N, D) float32, unit rows, on `device`.

        Args:
            sequences: N lists of ids, without special tokens, each at most `max_tokens` long.
            token_budget: most tokens of one forward pass, padding counted; see `BatchReader.read` for GPUs.
        """
        return torch.nn.functional.normalize(self.pool(sequences, token_budget), dim=-1)

    def pool(self, sequences: Sequence[Sequence[int]], token_budget: int) -> Tensor:
        """As `embed`, before rows are scaled to unit length: (N, D) float32."""
        if not sequences:
            return torch.empty((0, self.width), device=self.device)

        def read(batch: Sequence[Sequence[int]]) -> Tensor:
            ids, mask = self.tokenizer.pad(batch)
            hidden = self.hidden_states(ids, mask).float()
            if self.pooling is Pooling.CLS:
                return hidden[:, 0]
            weights = hardware.copy_to(self.device, mask).unsqueeze(-1).float()  # (B, L, 1)
            return (hidden * weights).sum(1) / weights.sum(1)  # (B, D)

        return self.reader.read(sequences, token_budget, self.batches, read)

    def hidden_states(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Last hidden states (B, L, H) of ids and mask, as from `Tokenizer.pad`; gradients if torch records them."""
        return self._attention.hidden_states(hardware.copy_to(self.device, ids), mask)

    def round_to(self, dtype: torch.dtype) -> None:
        """Convert the parameters to another precision; buffers such as rotary frequencies stay, as in transformers."""
        for weight in self.model.parameters():
            weight.data = weight.data.to(dtype)
        self.dtype = dtype

    def freeze(self, n_layers: int) -> None:
        """Freeze the embeddings and the first layers, none at 0; half the layers save a third of the work."""
        weights = dict(self.model.named_parameters())
        numbers = {name: int(match[1]) for name in weights if (match := LAYER.search(name))}
        n_own = max(numbers.values(), default=-1) + 1
        if n_layers > n_own:
            raise EncoderError(f"{n_layers} layers of {self.folder} are to be frozen, it has {n_own}; freeze fewer")
        for name, weight in weights.items():
            is_below = numbers[name] < n_layers if name in numbers else name.startswith("embeddings.")
            weight.requires_grad_(not (n_layers and is_below))

    def checkpoint_gradients(self) -> None:
        """Keep only the inputs of each layer while training, and recompute the rest for the gradient.

        Chen et al. (2016, arXiv:1604.06174): the same gradients for less memory and one more forward pass.
        """
        for model in self._attention.models:
            if not model.supports_gradient_checkpointing:
                raise EncoderError(
                    f"{self.folder} is a {model.config.model_type}, which cannot checkpoint gradients; "
                    "train it without, with smaller batches"
                )
            # transformers 5 names these methods differently.
            word = "activation" if hasattr(model, "activation_checkpointing_enable") else "gradient"
            getattr(model, f"{word}_checkpointing_enable")({"use_reentrant": False})

    def batches(self, sequences: Sequence[Sequence[int]], token_budget: int) -> Iterator[list[int]]:
        """Batches of positions of sequences to read together, each position once; `token_budget` as in `embed`."""
        companies: dict[int, list[int]] = {}
        lengths = [len(sequence) + self.tokenizer.n_special for sequence in sequences]
        for position, length in enumerate(lengths):
            companies.setdefault(self._attention.company(length), []).append(position)
        for _, positions in sorted(companies.items(), reverse=True):
            padded = [self._attention.padded_length(lengths[position]) for position in positions]
            for batch in hardware.token_budget_batches(padded, token_budget):
                yield [positions[at] for at in batch]

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
