"""Finds long documents with long documents, and shows why: everything that a query needs.

The names below are loaded when first used, so that `import engine` costs nothing
and works on a machine whose FAISS or torch is broken.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from engine.environment import wait_passively

if TYPE_CHECKING:
    from engine.encoders.loading import load_encoder
    from engine.errors import EngineError
    from engine.index import Index
    from engine.readers import read_document
    from engine.scoring.evidence import Scoring
    from engine.text.document import Document
    from engine.views import Hit, Result

wait_passively()

__all__ = ["Document", "EngineError", "Hit", "Index", "Result", "Scoring", "load_encoder", "read_document"]

_HOMES = {
    "Document": "engine.text.document",
    "EngineError": "engine.errors",
    "Hit": "engine.views",
    "Index": "engine.index",
    "Result": "engine.views",
    "Scoring": "engine.scoring.evidence",
    "load_encoder": "engine.encoders.loading",
    "read_document": "engine.readers",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'engine' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
