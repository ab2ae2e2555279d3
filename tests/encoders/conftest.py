"""Documents that test an encoder, and a folder of an encoder of each kind."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.text.document import Document
from tests.encoders.tiny import ENCODERS
from tests.fakes import make_document

SAVED = {"mean": "mean", "smith": "smith fixed attention", "colde": "colde fixed", "tde": "tde fixed"}


@pytest.fixture(scope="session")
def documents() -> list[Document]:
    """A long document with an empty section, one of one word, one of one section, one with odd characters."""
    long = [
        ("Introduction", "The quick brown fox jumps over the lazy dog. We search long documents. " * 6),
        ("", " \n "),
        ("Model", "A model finds the vector of every chunk, one two three four five. Old river bank! " * 4),
    ]
    return [
        make_document("long", long),
        make_document("word", "Fox."),
        make_document("plain", "the old house and the young dog by the river. " * 5),
        make_document("odd", [("", "Red\u00a0green light; 1234 unknownwords!"), ("", ""), ("", "ünïcode… 文書 dog")]),
    ]


@pytest.fixture(scope="session")
def saved(bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {"backbone": bert_folder}
    for kind, name in SAVED.items():
        folders[kind] = tmp_path_factory.mktemp(kind)
        ENCODERS[name](bert_folder).save_pretrained(folders[kind])
    return folders


@pytest.fixture
def take(saved: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    """A function that copies the folder of a kind, to be tampered with."""
    return lambda kind: Path(shutil.copytree(saved[kind], tmp_path / "taken"))
