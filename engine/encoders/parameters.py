"""The parameters of torch modules: checksums, files, rounding, and modules that only encode."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from engine.encoders.files import weight_shapes
from engine.errors import EncoderError

ModuleT = TypeVar("ModuleT", bound=nn.Module)


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

    Raises:
        EncoderError: the file cannot be read, or holds parameters of other names or shapes.
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
