"""A small index of words with pages and metadata, and a query."""

from dataclasses import replace
from pathlib import Path

import pytest

import longmatch
from engine.text.document import Document
from tests.fakes import make_document

TOPICS = ("fox", "house", "ship", "bank")
QUERY = "The old fox crossed the river.\n\nThe fox and the ship met at the river bank."


@pytest.fixture(scope="package")
def documents() -> list[Document]:
    """Each of two sections, the second one on a second page."""
    made = []
    for number, topic in enumerate(TOPICS):
        sections = [
            ("Beginning", f"The old {topic} was seen near the river. " * 3),
            ("End", f"A young {topic} and another {topic} came back. " * 3),
        ]
        metadata = {"year": 2000 + number, "status": "Final"}
        document = make_document(topic, sections, title=f"On the {topic}", metadata=metadata)
        made.append(replace(document, pages=(0, document.sections[1].start)))
    return made


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory, documents: list[Document]) -> Path:
    """An index of words alone."""
    path = tmp_path_factory.mktemp("integrations") / "words.lm"
    longmatch.build(path, documents, encode="none", progress=False)
    return path


@pytest.fixture
def expected(folder: Path) -> list[tuple[str, float]]:
    """What a search of the public index gives for `QUERY`."""
    with longmatch.open(folder) as index:
        return [(hit.doc_id, hit.score) for hit in index.search(Document.from_text(QUERY), k=3)]
