"""Weights that an encoder keeps in a file of its own: written, checked, read, known again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from engine.encoders.backbone.weights import weight_shapes
from engine.encoders.trainable import module_sha256
from engine.errors import EncoderError

ModuleT = TypeVar("ModuleT", bound=nn.Module)


def save_weights(weights: Mapping[str, Tensor], file: Path, *, dtype: torch.dtype | None = None) -> None:
    """Write weights by name, in another precision where one is given; whole numbers stay what they are."""
    save_file(
        {
            name: value.detach().to("cpu", dtype if value.is_floating_point() else None).contiguous()
            for name, value in weights.items()
        },
        file,
    )


def load_weights(make: Callable[[], ModuleT], file: Path) -> ModuleT:
    """Make a module with the weights of a file.

    Their shapes are compared before the module takes memory. Torch's own random
    numbers stay as they are.

    Args:
        make: makes it with any weights, always the same shapes.
        file: that `save_weights` wrote.

    Raises:
        EncoderError: the file cannot be read, or holds weights of other names or shapes.
    """
    with torch.random.fork_rng(devices=[]):
        with torch.device("meta"):
            expected = {name: tuple(value.shape) for name, value in make().state_dict().items()}
        try:
            found = weight_shapes(file)
            for name in sorted(found.keys() | expected.keys()):
                if found.get(name) != expected.get(name):
                    raise EncoderError(
                        f"{file} has {name} of shape {found.get(name)}, the other files require {expected.get(name)}; "
                        "save the encoder again"
                    )
            module = make()
            module.load_state_dict(load_file(file))
        except (OSError, SafetensorError) as error:
            raise EncoderError(f"{file} cannot be read ({error}); save the encoder again") from error
    return module


@dataclass(frozen=True, slots=True)
class Loaded:
    """The weights that a module was loaded with, which memory may hold at a lower precision than the files.

    An encoder has the fingerprint of its files, and is saved as they are, until it is trained.
    """

    in_files: str  # sha256
    in_memory: str  # sha256 of the same, as they were rounded

    @classmethod
    def rounded(cls, module: nn.Module, round_weights: Callable[[], object]) -> Self:
        """Bring the weights of a module from files into the precision they are held in."""
        in_files = module_sha256(module)
        round_weights()
        return cls(in_files, module_sha256(module))

    def are_in(self, module: nn.Module) -> bool:
        """Whether the module still holds them."""
        return module_sha256(module) == self.in_memory


def sha256_of(module: nn.Module, loaded: Loaded | None) -> str:
    """SHA-256 of a module's weights; that of the files where they are still those it was loaded with."""
    found = module_sha256(module)
    return loaded.in_files if loaded is not None and found == loaded.in_memory else found
