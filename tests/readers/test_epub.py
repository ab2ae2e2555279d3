"""EPUB books: order of chapters, metadata, and files that are refused."""

from __future__ import annotations

import io
import zipfile

import pytest

from engine.errors import DocumentError
from engine.readers.epub import read
from tests.readers.zipped import epub_bytes, zip_bytes

BODY = "A sentence of the body that is long enough. " * 6
PAGES = {
    "b.xhtml": f"<h1>Second</h1><p>{BODY}</p>",
    "nav.xhtml": "<h1>Contents</h1>",
    "a.xhtml": f"<h1>First</h1><p>{BODY}</p>",
}


def test_chapters_are_in_the_order_of_the_spine() -> None:
    document = read(epub_bytes(PAGES, ["nav.xhtml", "a.xhtml", "b.xhtml"]), "a", "a.epub")
    assert [section.path for section in document.sections] == [("First",), ("Second",)]
    assert document.text == f"First\n\n{BODY.strip()}\n\nSecond\n\n{BODY.strip()}"


def test_metadata_is_that_of_the_package() -> None:
    document = read(epub_bytes(PAGES), "a", "a.epub")
    assert document.title == "On Pumps"
    assert document.metadata == {
        "authors": ["Ann Lee", "Ben Roy"], "date": "2015-03-03", "year": 2015, "identifier": "urn:isbn:1",
        "language": "en", "left_out_contents_words": 1,
    }  # fmt: skip


def test_a_page_named_again_and_again_is_read_once() -> None:
    assert read(epub_bytes({"a.xhtml": "<p>once</p>"}, ["a.xhtml"] * 999), "a", "a.epub").text == "once"


def test_names_do_not_leave_the_archive() -> None:
    with pytest.raises(DocumentError, match="no text"):
        read(epub_bytes({"../../../../etc/passwd": "<p>x</p>"}), "a", "a.epub")


def test_a_protected_book_is_refused() -> None:
    links = "".join(f"<CipherReference URI='OEBPS/{name}'/>" for name in PAGES)
    encryption = f"<encryption>{links}</encryption>"
    with pytest.raises(DocumentError, match="encrypted"):
        read(epub_bytes(PAGES, **{"META-INF/encryption.xml": encryption}), "a", "a.epub")


def test_encrypted_fonts_do_no_harm() -> None:
    encryption = "<encryption><CipherReference URI='OEBPS/font.otf'/></encryption>"
    assert "First" in read(epub_bytes(PAGES, **{"META-INF/encryption.xml": encryption}), "a", "a.epub").text


def test_a_book_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.readers.archive.MAX_CONTAINER_BYTES", 100)
    with pytest.raises(DocumentError, match=r"unpacked file is .* bytes, the limit is 100"):
        read(epub_bytes(PAGES), "a", "a.epub")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a whole EPUB"),
        (epub_bytes(PAGES)[:-30], "not a whole EPUB"),
        (zip_bytes({"a.txt": "x"}), "has no META-INF/container.xml"),
        (zip_bytes({"META-INF/container.xml": "<container/>"}), "names no book"),
        (epub_bytes({}), "no text"),
    ],
)
def test_files_that_are_no_book_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        read(data, "a", "a.epub")


def test_a_damaged_chapter_is_refused() -> None:
    data = bytearray(epub_bytes({"a.xhtml": f"<p>{BODY}</p>"}))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        start = archive.getinfo("OEBPS/a.xhtml").header_offset
    data[start + 60 : start + 70] = b"\xff" * 10
    with pytest.raises(DocumentError, match="damaged EPUB"):
        read(bytes(data), "a", "a.epub")


def test_a_book_whose_table_of_members_points_before_its_start_is_refused() -> None:
    data = bytearray(epub_bytes(PAGES))
    offset = int.from_bytes(data[-6:-2], "little")
    data[-6:-2] = (offset + 20).to_bytes(4, "little")
    with pytest.raises(DocumentError, match=r"damaged EPUB file \(negative seek"):
        read(bytes(data), "a", "a.epub")
