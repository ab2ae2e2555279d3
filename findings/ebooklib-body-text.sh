#!/usr/bin/env bash
# ebooklib: get_content() of a chapter drops the words that stand right in <body> before the first element, and saving drops them too.
#
# Expected: get_content() gives the chapter that is in the file. EPUB 3 is HTML 5, where text may stand in <body> without a paragraph,
# as in files that were made of plain text with <br/>.
# What happens: read_epub() keeps the bytes, but get_content() builds a new page: it makes a <body> and moves the children of the old one
# into it. Text before the first child is no child and is lost; text behind a child is kept. get_body_content() has all of it, but
# of a body of text alone, without any element, it has nothing either. write_epub() writes what get_content() gives, so a book
# that is read and saved with new metadata has lost the words for good.
# Who meets this: an indexer of e-books, and whoever sets titles or authors in a library of them.
# Versions: EbookLib 0.20, lxml 6.1.3. Source: none found; seen in EpubHtml.get_content of ebooklib/epub.py.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check EbookLib==0.20 lxml==6.1.3 2>/dev/null

"$folder/venv/bin/python" -W ignore - "$folder" <<'PYTHON'
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

from ebooklib import epub
from lxml import etree

folder = Path(sys.argv[1])
PAGE = '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>One</title></head><body id="b">{}</body></html>'
CONTAINER = (
    '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)
PACKAGE = (
    '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="u">'
    '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="u">lock</dc:identifier><dc:title>Locks</dc:title>'
    '<dc:language>en</dc:language><meta property="dcterms:modified">2020-01-01T00:00:00Z</meta></metadata><manifest>'
    '<item id="nav" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>'
    '<item id="one" href="one.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="one"/></spine></package>'
)
NAV = (
    '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"><head><title>Contents</title></head>'
    '<body><nav epub:type="toc"><ol><li><a href="one.xhtml">One</a></li></ol></nav></body></html>'
)


def words(markup: bytes) -> str:
    return " ".join("".join(etree.fromstring(markup, etree.HTMLParser(encoding="utf-8")).find("body").itertext()).split())


def chapter(file: Path) -> epub.EpubHtml:
    return epub.read_epub(file).get_item_with_id("one")


def write(body: str) -> Path:
    book = folder / "book.epub"
    members = {"META-INF/container.xml": CONTAINER, "book.opf": PACKAGE, "nav.xhtml": NAV, "one.xhtml": PAGE.format(body)}
    with zipfile.ZipFile(book, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        for name, content in members.items():
            archive.writestr(name, content)
    return book


def views(body: str) -> tuple[str, ...]:
    book, saved = write(body), folder / "saved.epub"
    epub.write_epub(saved, epub.read_epub(book))
    found = chapter(book)
    texts = tuple(map(words, (found.content, found.get_body_content(), found.get_content(), chapter(saved).content)))
    print(body, *(f"\n    {name}: {text!r}" for name, text in zip(("file", "get_body_content", "get_content", "saved"), texts)))
    return texts


print("EbookLib", version("EbookLib"))
whole = "The gate opens. Then it closes."
assert views("<p>The gate opens.</p> Then it closes.") == (whole,) * 4
assert views("The gate opens.<br/> Then it closes.") == (whole, whole, "Then it closes.", "Then it closes.")
assert views("The <b>gate</b> opens. Then it closes.") == (whole, whole, *["gate opens. Then it closes."] * 2)
only_text = chapter(write(whole))
print(whole, "\n    get_body_content:", only_text.get_body_content(), "\n    get_content:", only_text.get_content()[-60:])
assert b"gate" not in only_text.get_body_content() + only_text.get_content() and whole.encode() in only_text.content
PYTHON
