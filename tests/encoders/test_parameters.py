"""Weights in a file of their own: saved, loaded, checked before they take memory, and rounded."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from engine.encoders.backbone import Loaded, load_weights, module_sha256, save_weights, sha256_of
from engine.errors import EncoderError


class Layers(nn.Module):
    def __init__(self, width: int = 3) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 2)
        self.largest: Tensor
        self.register_buffer("largest", torch.tensor(7))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save_weights(Layers().state_dict(), tmp_path / "w.safetensors")
    return tmp_path / "w.safetensors"


def test_weights_come_back(tmp_path: Path) -> None:
    layers = Layers()
    save_weights(layers.state_dict(), tmp_path / "w.safetensors")
    loaded = load_weights(Layers, tmp_path / "w.safetensors")
    assert module_sha256(loaded) == module_sha256(layers)
    assert loaded.linear.weight.requires_grad and loaded.linear.weight.device.type == "cpu"


def test_another_precision_applies_to_floating_point_tensors_alone(tmp_path: Path) -> None:
    layers = Layers()
    layers.largest.fill_(257)  # which bfloat16 does not hold
    save_weights(layers.state_dict(), tmp_path / "w.safetensors", dtype=torch.bfloat16)
    loaded = load_weights(Layers, tmp_path / "w.safetensors")
    assert torch.equal(loaded.linear.weight, layers.linear.weight.bfloat16().float())
    assert loaded.largest.item() == 257


def test_weights_of_another_shape_are_refused_before_they_are_made(file: Path) -> None:
    devices: list[str] = []

    def huge() -> Layers:
        layers = Layers(10**9)  # 8 GB
        devices.append(layers.linear.weight.device.type)
        return layers

    with pytest.raises(EncoderError) as raised:
        load_weights(huge, file)
    assert str(raised.value) == (
        f"{file} has linear.weight of shape (2, 3), the other files need (2, 1000000000); save the encoder again"
    )
    assert devices == ["meta"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: nn.ModuleDict({"linear": nn.Linear(3, 2)}),
            r"has largest of shape \(\), the other files need None",
        ),
        (lambda: nn.ModuleDict({"l": Layers()}), r"has l\.largest of shape None, the other files need \(\)"),
    ],
)
def test_weights_of_other_names_are_refused(file: Path, make: type[nn.Module], message: str) -> None:
    with pytest.raises(EncoderError, match=message):
        load_weights(make, file)


@pytest.mark.parametrize("content", [None, b"", b"no weights", b"\xff" * 64])
def test_a_damaged_file_is_an_encoder_error(file: Path, content: bytes | None) -> None:
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(EncoderError, match=r"w\.safetensors cannot be read \(.*\); save the encoder again$"):
        load_weights(Layers, file)


def test_rounded_weights_have_the_checksum_of_the_files_until_they_are_trained() -> None:
    layers = Layers()
    exact = module_sha256(layers)
    loaded = Loaded.rounded(layers, layers.bfloat16)
    assert sha256_of(layers, None) == module_sha256(layers) != exact
    assert sha256_of(layers, loaded) == exact and loaded.are_in(layers)
    with torch.no_grad():
        layers.linear.bias.add_(1)
    assert sha256_of(layers, loaded) == module_sha256(layers) and not loaded.are_in(layers)
