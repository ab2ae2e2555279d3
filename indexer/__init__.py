"""Everything that writes an index, and that trains an encoder."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from indexer.building.builder import build
    from indexer.building.corpus import read_corpus
    from indexer.building.report import BuildReport
    from indexer.generation.generations import compact
    from indexer.training import train
    from indexer.upkeep.repair import repair
    from indexer.upkeep.verify import verify

__all__ = ["BuildReport", "build", "compact", "read_corpus", "repair", "train", "verify"]

_HOMES = {
    "BuildReport": "indexer.building.report",
    "build": "indexer.building.builder",
    "compact": "indexer.generation.generations",
    "read_corpus": "indexer.building.corpus",
    "repair": "indexer.upkeep.repair",
    "train": "indexer.training",
    "verify": "indexer.upkeep.verify",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'indexer' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
