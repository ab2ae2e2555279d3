"""The backbone from which encoders of a comparison start: its label, and a copy without its upper layers."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from benchmarks.prepare import encoder_label
from engine.encoders.backbone.backbone import Backbone
from engine.encoders.backbone.weights import resolve_backbone, weights_sha256
from engine.errors import EncoderError


def backbone_label(encoder: str) -> str:
    """An encoder as name@checksum of its parameters, before it is loaded.

    Raises:
        EncoderError: the encoder cannot be found.
    """
    return f"{encoder_label(encoder)}@{weights_sha256(resolve_backbone(encoder))[:12]}"


def shallow_backbone(encoder: str, layers: int, work: Path) -> str:
    """Write a BERT-like model with only its lowest layers, or return the folder written by an earlier call.

    Args:
        encoder: a folder, a hub name or the bundled encoder.
        layers: the number of layers to keep; 0 keeps all.
        work: folder of reusable files.

    Returns:
        A folder for `load_encoder`; `encoder` itself if it has no more layers than that.

    Raises:
        EncoderError: the encoder cannot be found, or does not have exactly one stack of layers.
    """
    if not layers:
        return encoder
    folder = resolve_backbone(encoder)
    whole = Backbone(folder, device="cpu", dtype=torch.float32)
    n_layers = whole.model.config.num_hidden_layers
    if n_layers <= layers:
        return encoder
    name = f"{encoder_label(encoder)}-first{layers}"
    written = work / "papers" / weights_sha256(folder)[:12] / name
    if (written / "config.json").exists():
        return str(written)
    stacks = [part for part in whole.model.modules() if isinstance(part, nn.ModuleList) and len(part) == n_layers]
    if len(stacks) != 1:
        raise EncoderError(f"{folder} has {len(stacks)} stacks of {n_layers} layers, not one; keep all: --layers 0")
    del stacks[0][layers:]
    whole.model.config.num_hidden_layers = layers
    unfinished = written.with_suffix(".tmp")
    unfinished.mkdir(parents=True, exist_ok=True)
    whole.save_pretrained(unfinished, dtype=torch.float32)
    unfinished.rename(written)
    return str(written)
