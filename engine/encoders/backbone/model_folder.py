"""Checks a model folder, then loads it. No code in it runs, and nothing in it is unpickled.

A plain BERT is read by `bert_tokenizer` and `plain_bert` of this package; transformers reads
anything else, and is imported only for that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.encoders.backbone.bert_tokenizer import LoadedTokenizer, read_tokenizer
from engine.encoders.backbone.plain_bert import PlainBert, read_bert
from engine.encoders.files import check_files, parse_json, weight_shapes
from engine.errors import EncoderError

LAYER = re.compile(r"\blayers?\.(\d+)\.")  # in the names of parameters of BERT, RoBERTa, Longformer, ModernBERT
_WEIGHTS = "model.safetensors"
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


def load_tokenizer(folder: Path) -> tuple[LoadedTokenizer, list[int], list[int]]:
    """Load the tokenizer of a folder.

    Returns:
        The tokenizer, and the ids that it puts before and after a text.

    Raises:
        EncoderError: it cannot be loaded, gives no offsets, or does not keep a text as it is.
    """
    with _naming_folder(folder, "an encoder backbone"):
        loaded = read_tokenizer(folder, _description(folder)) or _loaded(load_fast_tokenizer(folder))
        bare, dressed = (loaded.ids("a", with_special=special) for special in (False, True))
        if not bare or bare[0] not in dressed:
            raise ValueError(f"its tokenizer makes {bare} of 'a', and {dressed} with special tokens around it")
        at = dressed.index(bare[0])
        return loaded, dressed[:at], dressed[at + len(bare) :]


def load_fast_tokenizer(folder: Path) -> Any:  # noqa: ANN401
    """Load the tokenizer of a folder as one of transformers.

    Raises:
        EncoderError: it cannot be loaded, or gives no offsets.
    """
    from transformers import AutoTokenizer

    with _naming_folder(folder, "an encoder backbone"), quiet_transformers():
        _description(folder)
        fast = AutoTokenizer.from_pretrained(folder, use_fast=True, trust_remote_code=False)
        if not getattr(fast, "is_fast", False):
            raise EncoderError(f"{folder} has no fast tokenizer, so text offsets are unknown; add a tokenizer.json")
        if not 1 <= fast.model_max_length < math.inf:
            raise ValueError(f"its tokenizer_config.json has model_max_length {fast.model_max_length}")
        return fast


def _loaded(fast: Any) -> LoadedTokenizer:  # noqa: ANN401
    max_length = int(fast.model_max_length)
    return LoadedTokenizer.of(fast.backend_tokenizer, max_length, fast.pad_token_id, fast.mask_token_id)


def load_plain_bert(folder: Path, dtype: torch.dtype) -> PlainBert | None:
    """Load the parameters of a plain BERT, on the CPU; None where the folder needs `load_model`.

    Args:
        folder: as in `load_model`.
        dtype: as in `load_model`.

    Raises:
        EncoderError: its config.json is damaged, or leads to other files, packages or code.
    """
    with _naming_folder(folder, "an encoder backbone"):
        description = _description(folder)
        return read_bert(folder, description, dtype) if _weight_files(folder) == [folder / _WEIGHTS] else None


def load_model(folder: Path, dtype: torch.dtype, *, what: str = "an encoder backbone") -> tuple[Any, frozenset[str]]:
    """Load the model of a folder as one of transformers, on the CPU.

    Args:
        folder: with a config.json and safetensors.
        dtype: of the parameters in memory.
        what: the use of the model, for the message.

    Returns:
        The model, and the names of parameters that the folder does not hold, which are
        random: at most those of a pooler.

    Raises:
        EncoderError: it cannot be loaded, or its config.json and parameters do not belong together.
    """
    from transformers import AutoConfig, AutoModel

    with _naming_folder(folder, what), quiet_transformers():
        description = _description(folder)
        shapes: dict[str, tuple[int, ...]] = {}
        for file in _weight_files(folder):
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
def _naming_folder(folder: Path, what: str) -> Iterator[None]:
    try:
        yield
    except EncoderError:
        raise
    except Exception as error:  # transformers raises many kinds of errors for a damaged folder
        reason = " ".join(str(error).split()) or type(error).__name__
        raise EncoderError(
            f"{folder} cannot be loaded as {what}: {reason}; take one that save_pretrained of transformers wrote"
        ) from error


def _description(folder: Path) -> Mapping[str, Any]:
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


def _weight_files(folder: Path) -> list[Path]:
    """The files that transformers will read."""
    if (folder / _WEIGHTS).exists() or not (folder / _WEIGHTS_INDEX).exists():
        return [folder / _WEIGHTS]
    names = set(parse_json(folder / _WEIGHTS_INDEX)["weight_map"].values())
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise ValueError(f"its {_WEIGHTS_INDEX} names {name!r}, only *.safetensors beside it are read")
    return [folder / name for name in sorted(names)]


_WORDS = "embeddings.word_embeddings.weight"
# Tables that can be copied in part: ours can have fewer rows, never more.
_TABLES = (_WORDS, "embeddings.position_embeddings.weight")


def take_over_bert(bert: Any, folder: Path) -> None:  # noqa: ANN401
    """Copy every parameter of a BERT's folder into a `BertModel` of the same sizes.

    Position and word tables can be shorter here; a pooler that the folder does not
    hold keeps its own parameters. Folders of transformers mostly specify the exact GELU;
    ours is the approximate one that BERT was trained with (they differ by 1e-3).

    Raises:
        EncoderError: the folder holds no BERT, or one of other sizes.
    """
    _copy(bert, _published(folder), folder)


def take_over_words(bert: Any, folder: Path) -> None:  # noqa: ANN401
    """Copy only the word embeddings.

    Raises:
        EncoderError: the folder holds no BERT, or one of another width.
    """
    _copy(bert, {_WORDS: _published(folder)[_WORDS]}, folder)


def _published(folder: Path) -> Mapping[str, Tensor]:
    model, missing = load_model(folder, torch.float32, what="a BERT")
    if model.config.model_type != "bert":
        raise EncoderError(f"{folder} holds a {model.config.model_type}, weights are taken over from a bert alone")
    return {name: value for name, value in model.state_dict().items() if name not in missing}


@torch.no_grad()
def _copy(bert: Any, published: Mapping[str, Tensor], folder: Path) -> None:  # noqa: ANN401
    own: dict[str, Tensor] = bert.state_dict()
    unknown = sorted(published.keys() - own.keys())
    lacking = sorted(name for name in own.keys() - published.keys() if len(published) > 1 and "pooler" not in name)
    if unknown or lacking:
        raise EncoderError(
            f"{folder} does not have the layers of this encoder: {(unknown or lacking)[0]} is only in one of the two; "
            "configure as many layers as it has"
        )
    for name, value in published.items():
        rows = len(own[name]) if name in _TABLES else len(value)
        if value[:rows].shape != own[name].shape:
            raise EncoderError(
                f"{name} of {folder} has shape {tuple(value.shape)}, this encoder needs {tuple(own[name].shape)}; "
                "configure its sizes"
            )
        own[name].copy_(value[:rows])
