"""Checks a model folder, then loads it with transformers, which is imported only for that.

No code in a folder runs, and nothing in it is unpickled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.encoders.files import check_files, parse_json, weight_shapes
from engine.errors import EncoderError

if TYPE_CHECKING:
    import torch

LAYER = re.compile(r"\blayers?\.(\d+)\.")  # in the names of parameters of BERT, RoBERTa, Longformer, ModernBERT
WEIGHTS_FILE = "model.safetensors"
_WEIGHTS_INDEX = "model.safetensors.index.json"
# Entries by which a config.json leads transformers to other files, other packages, or code from the hub.
_REFUSED = ("transformers_weights", "quantization_config", "compression_config")
_ATTENTION = ("attn_implementation", "_attn_implementation")


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep the loading reports of transformers off the terminal; errors still raise."""
    from transformers.utils import logging as transformers_logging

    level = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        transformers_logging.enable_progress_bar()


def load_fast_tokenizer(folder: Path) -> Any:  # noqa: ANN401
    """Load the tokenizer of a folder as one of transformers.

    Raises:
        EncoderError: it cannot be loaded, or gives no offsets.
    """
    from transformers import AutoTokenizer

    with naming_folder(folder), quiet_transformers():
        read_config(folder)
        fast = AutoTokenizer.from_pretrained(folder, use_fast=True, trust_remote_code=False)
        if not getattr(fast, "is_fast", False):
            raise EncoderError(f"{folder} has no fast tokenizer, so text offsets are unknown; add a tokenizer.json")
        if not 1 <= fast.model_max_length < math.inf:
            raise ValueError(f"its tokenizer_config.json has model_max_length {fast.model_max_length}")
        return fast


def load_model(folder: Path, dtype: torch.dtype, *, what: str = "an encoder backbone") -> tuple[Any, frozenset[str]]:
    """Load the model of a folder as one of transformers, on the CPU; `what` names its use in messages.

    Returns:
        The model, and the names of parameters that the folder does not hold, which are random: those of a pooler.

    Raises:
        EncoderError: it cannot be loaded, or its config.json and parameters do not belong together.
    """
    import torch
    from transformers import AutoConfig, AutoModel

    with naming_folder(folder, what), quiet_transformers():
        description = read_config(folder)
        shapes: dict[str, tuple[int, ...]] = {}
        for file in weight_files(folder):
            shapes |= weight_shapes(file)
        # A wrong size is refused before it takes time or memory.
        for key, value in _entries(description):
            if "layer" in key and type(value) is int and value > len(shapes):
                raise ValueError(f"its config.json has {key} {value}, its weights are {len(shapes)} tensors")
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        with torch.device("meta"):
            empty = AutoModel.from_config(config, trust_remote_code=False)
        described = sum(weight.numel() for name, weight in empty.named_parameters() if "pooler" not in name)
        held = sum(math.prod(shape) for shape in shapes.values())
        if described > held:
            raise ValueError(f"its config.json describes {described:,} parameters, its files hold {held:,}")
        model, report = AutoModel.from_pretrained(
            folder, dtype=dtype, use_safetensors=True, trust_remote_code=False, output_loading_info=True
        )
        missing = frozenset(report["missing_keys"])
        alone = [name for name in missing if "pooler" not in name]
        alone += [name for name in report["unexpected_keys"] if LAYER.search(name)]
        if alone:
            raise ValueError(f"{min(alone)} is either in its config.json or in its weights, not in both")
        return model, missing


@contextmanager
def naming_folder(folder: Path, what: str = "an encoder backbone") -> Iterator[None]:
    """Turn any error into an `EncoderError` that names the folder and what it was read as."""
    try:
        yield
    except EncoderError:
        raise
    except Exception as error:  # transformers raises many kinds of errors for a damaged folder
        reason = " ".join(str(error).split()) or type(error).__name__
        raise EncoderError(
            f"{folder} cannot be loaded as {what}: {reason}; take one that save_pretrained of transformers wrote"
        ) from error


def read_config(folder: Path) -> Mapping[str, Any]:
    """The content of config.json; empty where there is none, as in a folder with a tokenizer alone."""
    check_files(folder)
    if (folder / "adapter_config.json").exists():
        raise ValueError("it holds an adapter; merge it into its model")
    file = folder / "config.json"
    description = parse_json(file) if file.exists() else {}
    if not isinstance(description, dict):
        raise TypeError(f"its config.json holds a {type(description).__name__}, no object")
    for key, value in _entries(description):
        if key in _REFUSED and value is not None:
            raise ValueError(f"its config.json has {key} {value!r:.80}, only plain weights are read")
        if key in _ATTENTION and value not in (None, "eager", "sdpa"):
            raise ValueError(f"its config.json has {key} {value!r:.80}, only eager and sdpa are run")
    return description


def _entries(value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Keys and values of a JSON object, and of the objects in it."""
    for key, own in value.items() if isinstance(value, dict) else ():
        yield key, own
        yield from _entries(own)


def weight_files(folder: Path) -> list[Path]:
    """The files that transformers will read."""
    if (folder / WEIGHTS_FILE).exists() or not (folder / _WEIGHTS_INDEX).exists():
        return [folder / WEIGHTS_FILE]
    names = set(parse_json(folder / _WEIGHTS_INDEX)["weight_map"].values())
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise ValueError(f"its {_WEIGHTS_INDEX} names {name!r}, only *.safetensors beside it are read")
    return [folder / name for name in sorted(names)]
