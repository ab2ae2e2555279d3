#!/usr/bin/env bash
# LlamaIndex: EpubReader reads a book of chapters 1, 2 and 10 as 10, 2, 1, if its files are listed so, and the table of contents as a chapter.
#
# Expected: an EPUB says in which order it is read: the spine. Readers follow it, as MarkItDown and pandoc do. The navigation document, which
# is not in the spine here, is no text of the book.
# What happens: the reader asks ebooklib for all documents, and ebooklib gives them as the manifest lists them, which the standard leaves free:
# by name (ch1, ch10, ch2), by time of making, or notes first. read_epub() keeps the spine, in book.spine, and get_items_of_type(), which
# examples of ebooklib use, does not look at it. The text comes as one document, so windows at the seams join what does not follow.
# Who meets this: whoever retrieves from books by chunks with neighbours, or cites by position: "the chapter before" is another one.
# Versions: llama-index-readers-file 0.7.0, llama-index-core 0.14.25, EbookLib 0.20, markitdown 0.1.9.
# Source: EpubReader in llama_index/readers/file/epub/base.py; issues 149 (open) and 216 of aerkalov/ebooklib.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    llama-index-readers-file==0.7.0 llama-index-core==0.14.25 EbookLib==0.20 html2text==2025.4.15 markitdown==0.1.9 2>/dev/null

"$folder/venv/bin/python" - "$folder/book.epub" 2>/dev/null <<'PYTHON'
import re
import sys
from importlib.metadata import version
from pathlib import Path

from ebooklib import ITEM_DOCUMENT, epub
from llama_index.readers.file import EpubReader
from markitdown import MarkItDown


def write(path: str, listed: list[int]) -> None:
    """A book that is read as 1, 2, 10, whose manifest lists the chapters in another order."""
    book = epub.EpubBook()
    book.set_identifier("book")
    book.set_title("Rivers")
    book.set_language("en")
    chapters = {}
    for number in listed:
        chapters[number] = epub.EpubHtml(title=f"Part {number}", file_name=f"ch{number}.xhtml", uid=f"ch{number}")
        chapters[number].content = f"<h1>Chapter {number}</h1><p>Words of the river.</p>"
        book.add_item(chapters[number])
    book.spine = [chapters[number] for number in sorted(listed)]
    book.toc = book.spine
    book.add_item(epub.EpubNcx())
    book.add_item(epub.EpubNav())
    epub.write_epub(path, book)


def chapters(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"# Chapter (\d+)", text)]


NAMES = ("llama-index-readers-file", "llama-index-core", "EbookLib", "markitdown")
print(*(f"{name} {version(name)}" for name in NAMES), sep=", ")
path = sys.argv[1]
for listed in ([1, 2, 10], [1, 10, 2], [10, 2, 1]):
    write(path, listed)
    (document,) = EpubReader().load_data(Path(path))
    by_markitdown = MarkItDown().convert(path).text_content
    read, spine = chapters(document.text), [uid for uid, _ in epub.read_epub(path).spine]
    names = [item.get_name() for item in epub.read_epub(path).get_items_of_type(ITEM_DOCUMENT)]
    print(f"spine {spine}, files {names}: EpubReader {read}, MarkItDown {chapters(by_markitdown)}")
    assert chapters(by_markitdown) == [1, 2, 10] and "Part 2" not in by_markitdown
    assert read == listed and document.text.count("Part 2") == 1
PYTHON
