"""An index of documents that share words, and the corpora of `corpora`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.index import Index
from tests.benchmarks.corpora import write_faceted, write_long
from tests.fakes import FakeEncoder


@pytest.fixture
def index(built_folder: Path) -> Iterator[Index]:
    with Index.open(built_folder, encoder=FakeEncoder()) as opened:
        yield opened


@pytest.fixture(scope="session")
def long_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_long(tmp_path_factory.mktemp("datasets") / "long")


@pytest.fixture
def faceted_folder(tmp_path: Path) -> Path:
    return write_faceted(tmp_path / "facets")
