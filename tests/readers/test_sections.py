"""Properties of every reader: sections cover the text without gaps, and a heading is in its section."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.text.cleaning import one_line
from tests.readers.made import document_of, docx_bytes, pdf_bytes

Parts = list[tuple[str, str]]
_WORDS = st.text("abcdefghij éß漢", min_size=1, max_size=400).map(one_line).filter(lambda words: len(words) > 3)
_TITLES = st.text("ABCDEfgh ijk", min_size=4, max_size=40).map(one_line).filter(lambda title: len(title) > 3)
_PARTS = st.lists(st.tuples(_TITLES, _WORDS), min_size=1, max_size=6)


_FORMS = {  # of a section
    "a.txt": "{n}. {title}\n\n{words}\n\n",
    "a.rst": "{title}\n{line}\n\n{words}\n\n",
    "a.md": "# {title}\n\n{words}\n\n",
    "a.html": "<h2>{title}</h2><p>{words}</p>",
    "a.xml": "<sec><title>{title}</title><p>{words}</p></sec>",
    "a.tei": "<div><head>{title}</head><p>{words}</p></div>",
    "a.tex": "\\section{{{title}}}\n{words}\n",
}
_FRAMES = {"a.xml": "<article><body>%s</body></article>", "a.tei": "<TEI><text><body>%s</body></text></TEI>"}


def _pdf(parts: Parts) -> bytes:
    pages = []
    for title, words in parts:
        ascii_words = words.encode("ascii", "replace").decode()
        lines = [(ascii_words[start : start + 80], 72.0, 660.0 - start / 5, 10.0, False) for start in range(0, 400, 80)]
        pages.append([(title, 72.0, 700.0, 16.0, True), *(line for line in lines if line[0].strip())])
    return pdf_bytes(pages)


def _made(name: str, parts: Parts) -> bytes:
    if name == "a.pdf":
        return _pdf(parts)
    if name == "a.docx":
        return docx_bytes(part for title, words in parts for part in (("Heading 1", title), ("Normal", words)))
    if name == "a.jsonl":
        return json.dumps(
            {"id": "a", "sections": [{"heading": title, "text": words} for title, words in parts]}
        ).encode()
    form = _FORMS[name]
    sections = (
        form.format(n=n, title=title, line="=" * len(title), words=words) for n, (title, words) in enumerate(parts, 1)
    )
    return (_FRAMES.get(name, "%s") % "".join(sections)).encode()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*_FORMS, "a.jsonl", "a.docx", "a.pdf"])
@settings(max_examples=15, deadline=None)
@given(parts=_PARTS)
def test_sections_tile_the_text(name: str, parts: Parts) -> None:
    document = document_of(name, _made(name, parts))
    sections = document.sections
    assert (sections[0].start, sections[-1].stop) == (0, len(document.text))
    assert all(a.stop == b.start for a, b in pairwise(sections))
    for section in sections:
        if section.part == 1:
            assert section.heading in one_line(document.text[section.start : section.stop])
    for _, words in parts:
        first = words.split()[0].encode("ascii", "replace").decode()[:80]
        assert first in one_line(document.text) or words in document.text
