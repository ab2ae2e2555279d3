"""Properties of every reader: sections cover the text without gaps, and a heading is in its section."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.readers import read_bytes
from engine.text.cleaning import one_line
from engine.text.document import Document
from tests.readers.made import docx_bytes, pdf_bytes

Parts = list[tuple[str, str]]
_WORDS = st.text("abcdefghij éß漢", min_size=1, max_size=400).map(one_line).filter(lambda words: len(words) > 3)
_TITLES = st.text("ABCDEfgh ijk", min_size=4, max_size=40).map(one_line).filter(lambda title: len(title) > 3)
_PARTS = st.lists(st.tuples(_TITLES, _WORDS), min_size=1, max_size=6)


def _text(parts: Parts) -> bytes:
    return "\n\n".join(f"{n}. {title}\n\n{words}" for n, (title, words) in enumerate(parts, 1)).encode()


def _rst(parts: Parts) -> bytes:
    return "\n\n".join(f"{title}\n{'=' * len(title)}\n\n{words}" for title, words in parts).encode()


def _markdown(parts: Parts) -> bytes:
    return "\n\n".join(f"# {title}\n\n{words}" for title, words in parts).encode()


def _html(parts: Parts) -> bytes:
    return "".join(f"<h2>{html.escape(title)}</h2><p>{words}</p>" for title, words in parts).encode()


def _jats(parts: Parts) -> bytes:
    inner = "".join(f"<sec><title>{title}</title><p>{words}</p></sec>" for title, words in parts)
    return f"<article><body>{inner}</body></article>".encode()


def _tei(parts: Parts) -> bytes:
    inner = "".join(f"<div><head>{title}</head><p>{words}</p></div>" for title, words in parts)
    return f"<TEI><text><body>{inner}</body></text></TEI>".encode()


def _latex(parts: Parts) -> bytes:
    return "\n".join(rf"\section{{{title}}}" + f"\n{words}" for title, words in parts).encode()


def _lines(parts: Parts) -> bytes:
    sections = [{"heading": title, "text": words} for title, words in parts]
    return json.dumps({"id": "a", "sections": sections}).encode()


def _docx(parts: Parts) -> bytes:
    return docx_bytes(part for title, words in parts for part in (("Heading 1", title), ("Normal", words)))


def _pdf(parts: Parts) -> bytes:
    pages = []
    for title, words in parts:
        ascii_words = words.encode("ascii", "replace").decode()
        lines = [(ascii_words[start : start + 80], 72.0, 660.0 - start / 5, 10.0, False) for start in range(0, 400, 80)]
        pages.append([(title, 72.0, 700.0, 16.0, True), *(line for line in lines if line[0].strip())])
    return pdf_bytes(pages)


_MADE: dict[str, Callable[[Parts], bytes]] = {
    "a.txt": _text, "a.rst": _rst, "a.md": _markdown, "a.html": _html, "a.xml": _jats, "a.tei": _tei, "a.tex": _latex,
    "a.jsonl": _lines, "a.docx": _docx, "a.pdf": _pdf,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", _MADE)
@settings(max_examples=15, deadline=None)
@given(parts=_PARTS)
def test_sections_tile_the_text(name: str, parts: Parts) -> None:
    (document,) = read_bytes(_MADE[name](parts), name)
    assert isinstance(document, Document)
    sections = document.sections
    assert (sections[0].start, sections[-1].stop) == (0, len(document.text))
    assert all(a.stop == b.start for a, b in pairwise(sections))
    for section in sections:
        if section.part == 1:
            assert section.heading in one_line(document.text[section.start : section.stop])
    for _, words in parts:
        assert (
            words.split()[0].encode("ascii", "replace").decode()[:80] in one_line(document.text)
            or words in document.text
        )
