"""Saves, checks and loads the parameters that an encoder keeps in its own file, and detects changes by checksum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from engine.encoders.files import weight_shapes
from engine.encoders.trainable import module_sha256
from engine.errors import EncoderError

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
