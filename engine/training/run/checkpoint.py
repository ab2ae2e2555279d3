"""The state of a training run on disk, from which it resumes as if it had never stopped. Trains nothing.

    checkpoints/
      000007-step-3500/        the seventh checkpoint that was saved
        module.safetensors     parameters and buffers by name
        optimizer.safetensors  tensors of the optimizer's state
        checkpoint.json        everything that is not a tensor, and the checksums of both files

While a folder is written, its name ends in `.tmp`, and loading ignores it. It gets its final
name by one rename, when all its files are on disk. Nothing is pickled.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import xxhash
from safetensors.torch import load, save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from engine.errors import EncoderError, TrainingError
from engine.store.durable import Checksum, fsync_folder, write_durably

MODULE_FILE = "module.safetensors"
OPTIMIZER_FILE = "optimizer.safetensors"
CHECKPOINT_FILE = "checkpoint.json"

_NAME = re.compile(r"(\d{6,})-step-\d+")
_UNFINISHED = ".tmp"
# The first line of the JSON file holds the checksum of all lines below it.
_FIRST_LINE = re.compile(rb'\{"xxh3_128": "([0-9a-f]{32})",')

Json: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that was loaded."""

    path: Path
    step: int  # updates so far
    extra: Mapping[str, Json]  # as it was saved, except that tuples became lists


def save_checkpoint(
    folder: Path, step: int, module: nn.Module, optimizer: Optimizer, extra: Mapping[str, Json], *, keep: int = 2
) -> Path:
    """Save the state of a run; if this fails, the checkpoint before it can still be loaded.

    Args:
        folder: of the checkpoints of this run alone; created if missing.
        step: updates so far. The checkpoint saved last counts, even if its step is not the largest.
        module: with all trained parameters, saved with its buffers; float32 or any other type of safetensors.
        optimizer: any optimizer of torch, over parameters of `module`.
        extra: other values that the run needs to resume, as JSON.
        keep: number of checkpoints to keep, this one included; at least 1.

    Raises:
        EncoderError: the optimizer trains a parameter that is not in the module, or has state of an unknown type.
        OSError: the disk is full, or the folder cannot be written.
    """
    tensors: dict[str, Tensor] = {}
    content = {
        "step": step,
        "optimizer": type(optimizer).__name__,
        "trained": _trained_names(module, optimizer),
        "state": _pack(optimizer.state_dict(), "", tensors),
        "extra": extra,
    }
    for leftover in folder.glob("*" + _UNFINISHED):
        shutil.rmtree(leftover)
    before = _saved(folder)
    number = _number(before[-1]) + 1 if before else 1
    path = folder / f"{number:06d}-step-{step}"
    unfinished = path.with_name(path.name + _UNFINISHED)
    unfinished.mkdir(parents=True)
    checksums = {
        MODULE_FILE: asdict(_write_tensors(unfinished / MODULE_FILE, module.state_dict())),
        OPTIMIZER_FILE: asdict(_write_tensors(unfinished / OPTIMIZER_FILE, tensors)),
    }
    _write_json(unfinished / CHECKPOINT_FILE, {**content, "files": checksums})
    unfinished.replace(path)
    fsync_folder(folder)
    for old in before[: max(0, len(before) + 1 - keep)]:
        shutil.rmtree(old)
    return path


def latest_checkpoint(folder: Path) -> Path | None:
    """The last complete checkpoint; None where there is none."""
    saved = _saved(folder)
    return saved[-1] if saved else None


def load_checkpoint(folder: Path, module: nn.Module, optimizer: Optimizer) -> Checkpoint:
    """Put the state of the last checkpoint into a module and an optimizer, bit for bit.

    If this raises, neither has changed.

    Args:
        folder: as given to `save_checkpoint`.
        module: with parameters of the same names, shapes and types, on any device.
        optimizer: of the same class, over the same parameters in the same groups; its
            settings (learning rate, betas, weight decay) become the saved ones.
            Torch keeps its state in the type of the parameters: train in float32.

    Raises:
        TrainingError: there is no checkpoint, or a file is missing or damaged.
        EncoderError: module or optimizer differ in shape from the saved ones.
    """
    path = latest_checkpoint(folder)
    if path is None:
        raise TrainingError(f"{folder} holds no checkpoint; start the run again")
    content = _read_json(path / CHECKPOINT_FILE)
    weights, state = (
        load(_read_checked(path / name, Checksum(**content["files"][name]))) for name in (MODULE_FILE, OPTIMIZER_FILE)
    )
    _check_module(path, weights, module)
    _check_optimizer(path, content, module, optimizer)
    module.load_state_dict(weights)
    optimizer.load_state_dict(_unpack(content["state"], state))
    return Checkpoint(path, content["step"], content["extra"])


def _saved(folder: Path) -> list[Path]:
    """Complete checkpoints, in the order in which they were saved."""
    return sorted((path for path in folder.glob("*") if _NAME.fullmatch(path.name)), key=_number)


def _number(path: Path) -> int:
    return int(path.name.partition("-")[0])


def _trained_names(module: nn.Module, optimizer: Optimizer) -> list[list[str]]:
    """Names of the parameters in each parameter group."""
    names = {id(weight): name for name, weight in module.named_parameters()}
    for weight in (weight for group in optimizer.param_groups for weight in group["params"]):
        if id(weight) not in names:
            raise EncoderError(
                f"{type(optimizer).__name__} trains a weight of shape {tuple(weight.shape)} that is none of the "
                f"{len(names)} of {type(module).__name__}; register it there"
            )
    return [[names[id(weight)] for weight in group["params"]] for group in optimizer.param_groups]


def _check_module(path: Path, saved: Mapping[str, Tensor], module: nn.Module) -> None:
    own = module.state_dict()
    for name in {**own, **saved}:
        ours, theirs = (_described(weights.get(name)) for weights in (own, saved))
        if ours != theirs:
            raise EncoderError(
                f"{path} holds as weight {name!r} {theirs}, the module {ours}; "
                "give the settings of its first run, or start it again"
            )


def _described(weight: Tensor | None) -> str:
    return "none" if weight is None else f"{str(weight.dtype).removeprefix('torch.')} {tuple(weight.shape)}"


def _check_optimizer(path: Path, content: Mapping[str, Json], module: nn.Module, optimizer: Optimizer) -> None:
    theirs, ours = content["trained"], _trained_names(module, optimizer)
    kinds = content["optimizer"], type(optimizer).__name__
    if kinds[0] != kinds[1]:
        differing = f"the state of {kinds[0]}, the optimizer is {kinds[1]}"
    elif len(theirs) != len(ours):
        differing = f"{len(theirs)} parameter groups, the optimizer has {len(ours)}"
    elif theirs != ours:
        number = next(number for number, (one, other) in enumerate(zip(theirs, ours, strict=True)) if one != other)
        differing = (
            f"parameter group {number} over {_listed(theirs[number])}, the optimizer over {_listed(ours[number])}"
        )
    else:
        return
    raise EncoderError(f"{path} holds {differing}; give the settings of its first run, or start it again")


def _listed(names: list[str]) -> str:
    return f"{len(names)} weights ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})"


def _pack(value: object, name: str, tensors: dict[str, Tensor]) -> Json:
    """JSON for the state of an optimizer; its tensors go into `tensors`, by their path in the state."""
    match value:
        case Tensor():
            tensors[name] = value
            return {"tensor": name}
        case dict():
            return {"dict": [[key, _pack(item, f"{name}/{key}", tensors)] for key, item in value.items()]}
        case tuple():
            return {"tuple": [_pack(item, f"{name}/{at}", tensors) for at, item in enumerate(value)]}
        case list():
            return [_pack(item, f"{name}/{at}", tensors) for at, item in enumerate(value)]
        case None | bool() | int() | float() | str():
            return value
    raise EncoderError(
        f"the optimizer's state {name.removeprefix('/')} is a {type(value).__name__}, neither tensor nor JSON; "
        "use an optimizer of torch"
    )


def _unpack(packed: Json, tensors: Mapping[str, Tensor]) -> Json:
    match packed:
        case {"tensor": name}:
            return tensors[name]
        case {"dict": items}:
            return {key: _unpack(item, tensors) for key, item in items}
        case {"tuple": items}:
            return tuple(_unpack(item, tensors) for item in items)
        case list():
            return [_unpack(item, tensors) for item in packed]
    return packed


def _write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> Checksum:
    written: dict[str, Tensor] = {}
    storages: set[int] = set()
    for name, tensor in tensors.items():
        tensor = tensor.detach().cpu().contiguous()
        # Tied weights share memory, which safetensors refuses: each name gets its own copy.
        storage = tensor.untyped_storage().data_ptr()
        written[name] = tensor.clone() if storage in storages else tensor
        storages.add(storage)
    return write_durably(path, lambda unfinished: save_file(written, unfinished))


def _write_json(path: Path, content: Json) -> None:
    body = f'"checkpoint": {json.dumps(content)}}}\n'.encode()
    first_line = f'{{"xxh3_128": "{xxhash.xxh3_128_hexdigest(body)}",\n'.encode()

    def write(unfinished: Path) -> None:
        unfinished.write_bytes(first_line + body)

    write_durably(path, write)


def _read_json(path: Path) -> Json:
    content = _read(path)
    first_line, _, body = content.partition(b"\n")
    expected = _FIRST_LINE.fullmatch(first_line)
    if expected is None:
        raise TrainingError(f"{path} is damaged: it does not begin with its checksum; {_repair(path)}")
    _compare(path, body, Checksum(len(body), expected[1].decode()))
    return json.loads(content)["checkpoint"]


def _read_checked(path: Path, expected: Checksum) -> bytes:
    content = _read(path)
    _compare(path, content, expected)
    return content


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TrainingError(f"{path} cannot be read ({error.strerror}); {_repair(path)}") from error


def _compare(path: Path, content: bytes, expected: Checksum) -> None:
    found = Checksum(len(content), xxhash.xxh3_128_hexdigest(content))
    if found != expected:
        raise TrainingError(
            f"{path} is damaged: {found.size_bytes} bytes with checksum {found.digest[:12]}, "
            f"not {expected.size_bytes} with {expected.digest[:12]}; {_repair(path)}"
        )


def _repair(path: Path) -> str:
    return f"delete {path.parent}, and the run goes on from the checkpoint before it"
