from pathlib import Path

import pytest

from engine.store.writer import Writer
from tests.fakes import make_corpus
from tests.store.written import ENCODER, commit


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An index of three documents, no generation."""
    folder = tmp_path / "x.lm"
    with Writer(folder) as writer:
        writer.claim(ENCODER)
        commit(writer, *make_corpus(3))
    return folder
