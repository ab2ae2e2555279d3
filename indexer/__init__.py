"""Everything that writes an index, and that trains an encoder."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from indexer.build_report import BuildReport
    from indexer.builder import build
    from indexer.compaction import compact
    from indexer.corpus import read_corpus
    from indexer.restoration import repair
    from indexer.training import pretrain, train
    from indexer.verification import verify

__all__ = ["BuildReport", "build", "compact", "pretrain", "read_corpus", "repair", "train", "verify"]

_HOMES = {
    "BuildReport": "indexer.build_report",
    "build": "indexer.builder",
    "compact": "indexer.compaction",
    "pretrain": "indexer.training",
    "read_corpus": "indexer.corpus",
    "repair": "indexer.restoration",
    "train": "indexer.training",
    "verify": "indexer.verification",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'indexer' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
