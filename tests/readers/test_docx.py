"""Word documents: headings, lists, tables, tracked changes, and damaged files."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import docx
import pytest

from engine.errors import DocumentError
from engine.readers.docx import read

BODY = "A sentence of the body that is long enough. " * 6


def test_heading_styles_make_sections(make_docx: Callable[..., bytes]) -> None:
    parts = [("Title", "My Paper"), ("Heading 1", "One"), ("Normal", BODY), ("Heading 2", "Two"), ("Normal", BODY)]
    document = read(make_docx(parts), "a", "a.docx")
    assert document.title == "My Paper"
    assert [section.path for section in document.sections] == [("One",), ("One", "Two")]


def test_lists_and_tables_stay_in_order() -> None:
    word = docx.Document()
    word.core_properties.title = "From the properties"
    word.add_paragraph("before")
    word.add_paragraph("one", style="List Bullet")
    word.add_paragraph("two", style="List Bullet")
    table = word.add_table(2, 2)
    for place, cell in enumerate(cell for row in table.rows for cell in row.cells):
        cell.text = f"c{place}"
    word.add_paragraph("after\ttab")
    out = io.BytesIO()
    word.save(out)
    document = read(out.getvalue(), "a", "a.docx")
    assert document.text == "before\n\n- one\n- two\n\nc0 | c1\nc2 | c3\n\nafter\ttab"
    assert document.title == "From the properties"


def test_tracked_changes_are_accepted(make_docx: Callable[..., bytes]) -> None:
    xml = b"<w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
    source = zipfile.ZipFile(io.BytesIO(make_docx([("Normal", "HERE")])))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in source.namelist():
            archive.writestr(name, source.read(name).replace(b"<w:r><w:t>HERE</w:t></w:r>", xml))
    assert read(out.getvalue(), "a", "a.docx").text == "new"


def test_a_damaged_file_is_refused(make_docx: Callable[..., bytes]) -> None:
    data = bytearray(make_docx([("Normal", BODY)]))
    middle = data.find(b"word/document.xml") + 60
    data[middle : middle + 20] = b"\xff" * 20
    with pytest.raises(DocumentError, match="it is a damaged DOCX file"):
        read(bytes(data), "a", "a.docx")


def test_a_zip_of_something_else_is_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(DocumentError, match="zip file but not a Word document"):
        read(out.getvalue(), "a", "a.docx")


def test_a_document_with_broken_xml_is_refused(make_docx: Callable[..., bytes]) -> None:
    source, out = zipfile.ZipFile(io.BytesIO(make_docx([("Normal", "Water.")]))), io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in source.namelist():
            broken = name == "word/document.xml"
            archive.writestr(name, source.read(name)[:-5] if broken else source.read(name))
    with pytest.raises(DocumentError, match=r"it is a damaged DOCX file \(.*; save it again"):
        read(out.getvalue(), "a", "a.docx")


def test_a_zip_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.readers.docx.MAX_CONTAINER_BYTES", 1000)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"0" * 100_000)
    with pytest.raises(DocumentError, match="unpacked file is 100,000 bytes, the limit is 1,000"):
        read(out.getvalue(), "a", "a.docx")


@pytest.mark.parametrize(
    ("data", "reason"), [(b"", "not a whole DOCX"), (b"PK", "not a whole DOCX"), (b"\xd0\xcf\x11\xe0", "encrypted")]
)
def test_other_files_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        read(data, "a", "a.docx")


def test_an_empty_document_is_refused(make_docx: Callable[..., bytes]) -> None:
    with pytest.raises(DocumentError, match="no text"):
        read(make_docx([]), "a", "a.docx")
