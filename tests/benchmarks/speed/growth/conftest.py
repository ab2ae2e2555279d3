from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.speed.growth.source import Source
from engine.store.snapshot import Snapshot


@pytest.fixture
def snapshot(real_folder: Path) -> Iterator[Snapshot]:
    with Snapshot(real_folder) as opened:
        yield opened


@pytest.fixture
def source(snapshot: Snapshot) -> Source:
    return Source(snapshot)
