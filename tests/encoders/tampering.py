"""Helpers for tests of tampered encoder folders."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.encoders.encoder import Encoder
from engine.encoders.loading import load_trainable
from tests.fakes import make_document

Take = Callable[[str], Path]  # a kind, or "backbone", to a copy of its folder


def load(folder: Path) -> Encoder:
    return load_trainable(str(folder), device="cpu", dtype=torch.float32)


def tamper(file: Path, **values: Any) -> None:  # noqa: ANN401
    content = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**content, **values}))


def assert_same_vectors(one: Path, other: Path) -> None:
    document = make_document("d", "the quick brown fox jumps over the lazy dog. " * 9)
    vectors = [load(folder).encode([document])[0].chunks for folder in (one, other)]
    assert np.array_equal(*vectors)
