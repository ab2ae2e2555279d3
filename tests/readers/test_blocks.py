"""Assembly of a document: headings, title, and the limit of its size."""

import pytest

from engine.errors import DocumentError
from engine.readers.blocks import MAX_HEADING_CHARS, Blocks
from engine.text.cleaning import MAX_DOCUMENT_BYTES
from engine.text.document import assemble, stem


def test_blocks_know_where_their_headings_start() -> None:
    blocks = Blocks()
    blocks.add("before")
    blocks.add_heading(" A\n title ", 2)
    blocks.add("  ")
    blocks.add("after", "\n")
    assert blocks.text == "before\n\nA title\nafter"
    assert [(heading.title, heading.level, heading.start) for heading in blocks.headings] == [("A title", 2, 8)]


def test_a_paragraph_too_long_for_a_heading_is_text() -> None:
    blocks = Blocks()
    blocks.add_heading("x" * (MAX_HEADING_CHARS + 1), 1)
    assert blocks.headings == []
    assert blocks.size == MAX_HEADING_CHARS + 1


def test_a_document_without_title_has_the_name_of_its_file() -> None:
    assert assemble("x", (), doc_id="d", source="a/b.report.txt.gz").title == "b.report"
    assert assemble("x", (), doc_id="d", source="a/2004.14974.gz").title == "2004.14974"
    assert stem("a/b.tar") == "b"


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [("x" * (MAX_DOCUMENT_BYTES + 1), "33,554,433"), ("é" * (MAX_DOCUMENT_BYTES // 2 + 1), "33,554,434")],
    ids=["characters of one byte", "bytes count, not characters"],
)
def test_a_text_over_the_limit_is_refused(text: str, n_bytes: str) -> None:
    with pytest.raises(DocumentError, match=f"the text is {n_bytes} bytes, the limit is 33,554,432; split it"):
        assemble(text, (), doc_id="d", source="a.txt")


def test_words_of_the_source_that_are_nowhere_are_counted() -> None:
    blocks = Blocks()
    blocks.expect("The keeper of the upper lock, and a bargeman; sedi ment. Ann Vane, Weir Lab, 2020")
    blocks.skip("and a bargeman")
    blocks.describe("Ann Vane, Weir Lab, 2020")
    blocks.add("The keeper of lock. Sediment and sedimentation")
    document = blocks.document("a", "a.xml", "", {"authors": ["Ann Vane"], "year": 2020})
    assert document.left_out == {"front_matter_words": 2, "unexplained_words": 2}  # Weir Lab; the upper
