"""Parameters of an encoder: saved, checked, loaded, taken over from a published BERT, and compared by checksum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from engine.encoders.backbone.model_folder import load_model
from engine.encoders.files import weight_shapes
from engine.encoders.trainable import module_sha256
from engine.errors import EncoderError

_WORDS = "embeddings.word_embeddings.weight"
# Tables that can be copied in part: ours can have fewer rows, never more.
_TABLES = (_WORDS, "embeddings.position_embeddings.weight")

ModuleT = TypeVar("ModuleT", bound=nn.Module)


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
    """Make a module with the parameters of a file.

    Shapes are compared before the module takes memory. The state of torch's random
    generator is kept.

    Args:
        make: makes the module with any parameters, always of the same shapes.
        file: a file that `save_weights` wrote.

    Raises:
        EncoderError: the file cannot be read, or holds parameters of other names or shapes.
    """
    with torch.random.fork_rng(devices=[]):
        with torch.device("meta"):
            expected = {name: tuple(value.shape) for name, value in make().state_dict().items()}
        try:
            found = weight_shapes(file)
            for name in sorted(found.keys() | expected.keys()):
                if found.get(name) != expected.get(name):
                    raise EncoderError(
                        f"{file} has {name} of shape {found.get(name)}, the other files need {expected.get(name)}; "
                        "save the encoder again"
                    )
            module = make()
            module.load_state_dict(load_file(file))
        except (OSError, SafetensorError) as error:
            raise EncoderError(f"{file} cannot be read ({error}); save the encoder again") from error
    return module


@dataclass(frozen=True, slots=True)
class Loaded:
    """Checksums of the parameters that a module was loaded with; memory can hold them at a lower precision than files.

    Until it is trained, an encoder has the fingerprint of its files and is saved unchanged.
    """

    in_files: str  # sha256 of the parameters in the files
    in_memory: str  # sha256 of the parameters after rounding

    @classmethod
    def rounded(cls, module: nn.Module, round_weights: Callable[[], object]) -> Self:
        """Round parameters from the precision of their files to that in memory, and record both checksums."""
        in_files = module_sha256(module)
        round_weights()
        return cls(in_files, module_sha256(module))

    def are_in(self, module: nn.Module) -> bool:
        """Whether the module still holds the loaded parameters."""
        return module_sha256(module) == self.in_memory


def sha256_of(module: nn.Module, loaded: Loaded | None) -> str:
    """SHA-256 of a module's parameters; that of the files if the parameters are unchanged since they were loaded."""
    found = module_sha256(module)
    return loaded.in_files if loaded is not None and found == loaded.in_memory else found


def take_over_bert(bert: Any, folder: Path) -> None:  # noqa: ANN401
    """Copy every parameter of a BERT's folder into a `BertModel` of the same sizes.

    Position and word tables can be shorter here; a pooler that the folder does not
    hold keeps its own parameters. Folders of transformers mostly specify the exact GELU;
    ours is the approximate one that BERT was trained with (they differ by 1e-3).

    Raises:
        EncoderError: the folder holds no BERT, or one of other sizes.
    """
    _copy(bert, _published(folder), folder)


def take_over_words(bert: Any, folder: Path) -> None:  # noqa: ANN401
    """Copy only the word embeddings.

    Raises:
        EncoderError: the folder holds no BERT, or one of another width.
    """
    _copy(bert, {_WORDS: _published(folder)[_WORDS]}, folder)


def _published(folder: Path) -> Mapping[str, Tensor]:
    model, missing = load_model(folder, torch.float32, what="a BERT")
    if model.config.model_type != "bert":
        raise EncoderError(f"{folder} holds a {model.config.model_type}, weights are taken over from a bert alone")
    return {name: value for name, value in model.state_dict().items() if name not in missing}


@torch.no_grad()
def _copy(bert: Any, published: Mapping[str, Tensor], folder: Path) -> None:  # noqa: ANN401
    own: dict[str, Tensor] = bert.state_dict()
    unknown = sorted(published.keys() - own.keys())
    lacking = sorted(name for name in own.keys() - published.keys() if len(published) > 1 and "pooler" not in name)
    if unknown or lacking:
        raise EncoderError(
            f"{folder} does not have the layers of this encoder: {(unknown or lacking)[0]} is only in one of the two; "
            "configure as many layers as it has"
        )
    for name, value in published.items():
        rows = len(own[name]) if name in _TABLES else len(value)
        if value[:rows].shape != own[name].shape:
            raise EncoderError(
                f"{name} of {folder} has shape {tuple(value.shape)}, this encoder needs {tuple(own[name].shape)}; "
                "configure its sizes"
            )
        own[name].copy_(value[:rows])
