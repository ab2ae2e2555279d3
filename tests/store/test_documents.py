"""Documents come back from the catalog as they went in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.store.checks import content_hash, stored_documents
from engine.store.writer import Writer
from engine.text.document import Document
from engine.text.segmentation import Section
from tests.fakes import FakeEncoder, make_document

DOCUMENT = Document(
    doc_id="a/ü 'b\".md",
    title="Ein “Titel”",
    text="Zero\x00, tab\t, emoji 🦊, line\u2028break, e\u0301.\n" * 3,
    sections=(Section("", (), 0, 40), Section("H “q”", ("A", "H “q”"), 40, 120, n_merged=3, part=2, n_parts=5)),
    metadata={"a.b c": "x", "n": 2**62, "f": 0.1, "yes": True, "none": None, "list": ["é", 1, False, None]},
    source="/tmp/ä b.md",
    pages=(0, 17, 55),
)


def test_a_document_comes_back_equal(tmp_path: Path, encoder: FakeEncoder) -> None:
    with Writer(tmp_path / "x.lm") as writer:
        ids = writer.commit([(DOCUMENT, encoder.encode([DOCUMENT])[0])])
        with writer.read() as connection:
            ((document, coverage),) = stored_documents(connection, ids)
    assert document == DOCUMENT
    assert coverage == encoder.segment(DOCUMENT).coverage


def test_documents_come_in_the_requested_order(tmp_path: Path, encoder: FakeEncoder) -> None:
    documents = [make_document(name, "some words") for name in "abc"]
    with Writer(tmp_path / "x.lm") as writer:
        one, two, three = writer.commit(list(zip(documents, encoder.encode(documents), strict=True)))
        with writer.read() as connection:
            found = stored_documents(connection, [three, 999, one, two])
    assert [document.doc_id for document, _ in found] == ["c", "a", "b"]


@pytest.mark.slow
def test_more_documents_than_one_statement_takes_come_back(tmp_path: Path) -> None:
    encoder = FakeEncoder(width=1)
    documents = [make_document(f"d{number}", "w") for number in range(1201)]
    with Writer(tmp_path / "x.lm") as writer:
        ids = writer.commit(list(zip(documents, encoder.encode(documents), strict=True)))
        with writer.read() as connection:
            found = stored_documents(connection, ids[::-1])
    assert [document.doc_id for document, _ in found] == [f"d{number}" for number in range(1200, -1, -1)]


@pytest.mark.parametrize(
    "change",
    [
        {"text": "other"},
        {"title": "other"},
        {"sections": (Section("", (), 0, 41), Section("H “q”", ("A", "H “q”"), 41, 120))},
        {"sections": (Section("G", ("G",), 0, 40), *DOCUMENT.sections[1:])},
    ],
)
def test_the_hash_changes_with_all_that_the_encoder_sees(change: dict[str, object]) -> None:
    assert content_hash(replace(DOCUMENT, **change)) != content_hash(DOCUMENT)  # type: ignore[arg-type]


def test_the_hash_ignores_doc_id_metadata_and_source() -> None:
    changed = replace(DOCUMENT, doc_id="other", metadata={}, source="elsewhere")
    assert content_hash(changed) == content_hash(DOCUMENT)


@given(st.text(max_size=20), st.text(max_size=20), st.text(min_size=1, max_size=5))
def test_text_that_moves_between_title_and_body_changes_the_hash(title: str, text: str, moved: str) -> None:
    one = Document("d", title + moved, text, ())
    assert content_hash(one) != content_hash(Document("d", title, moved + text, ()))
