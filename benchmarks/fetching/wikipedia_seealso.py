"""Articles of Wikipedia as documents, from the lines of a dump."""

from __future__ import annotations

import re
from collections.abc import Iterator

from benchmarks.fetching.sources import (
    CorpusDocument,
    Files,
    Recipe,
    Recorded,
    SectionBuilder,
    corpus_document,
    github_archive,
)

MIN_WORDS = 8  # of a section
MIN_LETTERS = 0.45  # share of letters in a paragraph; formulas, empty tables and coordinates have fewer
_MAX_HEADING, _MAX_HEADING_WORDS = 75, 10
_FORMULA = "$$"
_BLOCK = re.compile(r"(\n*)((?:[^\n]+\n?)+)")
_BACK_MATTER = re.compile(
    r"^(see also|notes?|references?|external links?|further reading|gallery|bibliography|footnotes?|sources?"
    r"|citations?|works cited|literature|notes and references|references and notes|notes and citations"
    r"|citations and notes)\b",
    re.IGNORECASE,
)
_RULE = re.compile(r"[\s+\-=]*[-=]{3,}[\s+\-=]*")
_FOOTNOTE = re.compile(r"\[\d+\]")
_TAG = re.compile(r"</?[a-z][^<>]*>")
_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}")
_LEFTOVER = re.compile(r"\{\{|\}\}|\[\[|\]\]")
_IMAGE = re.compile(r"\S+\.(?:jpe?g|png|svg|gif)\b", re.IGNORECASE)
_EMPHASIS = re.compile(r"(?<![^\W_])_([^_\s][^_\n]*?)_(?![^\W_])")
_LEFT_OVER_ARGUMENT = re.compile(r"\|\s*\w+\s*=")  # of a truncated template, for example "|alt="
_SPACE = re.compile(r"[ \t\n]+")
_BULLETS = re.compile(r"^(?:- )+- ")


def parse_page(text: str) -> tuple[tuple[str, str], ...]:
    """Read the sections of one page: heading and text. The first section is named Introduction.

    "See also", notes, references and their subsections are left out: "See also" lists the relevant targets.
    """
    builder = SectionBuilder("Introduction")
    blocks = [(blank, block.strip("\n")) for blank, block in _BLOCK.findall(text) if block.strip()]
    for place, (blank, paragraph) in enumerate(blocks):
        below = blocks[place + 1][1] if place + 1 < len(blocks) else ""
        heading = paragraph.strip()
        if _is_heading(heading) and not below.startswith(_FORMULA):
            # A heading of the first level has two blank lines above it, and ends a section that is left out.
            if len(blank) >= 2 or not builder.is_skipping:
                builder.open(heading)
                builder.is_skipping = bool(_BACK_MATTER.match(heading)) or "Category:" in heading
        elif "Category:" not in paragraph and heading != "[TABLE]" and not _LEFT_OVER_ARGUMENT.match(paragraph):
            plain = _plain(paragraph)
            if plain and sum(map(str.isalpha, plain)) / len(plain) >= MIN_LETTERS:
                builder.paragraph(plain)
    return builder.sections(MIN_WORDS)


def _is_heading(line: str) -> bool:
    if "\n" in line or _IMAGE.search(line) or len(line) > _MAX_HEADING or len(line.split()) > _MAX_HEADING_WORDS:
        return False
    starts = line[0].isdigit() or (line[0].isalpha() and not line[0].islower())
    return starts and not re.match(r"\d+\.\s", line) and not re.search(r"[.:;,?!\]}]$", line)


def _plain(paragraph: str) -> str:
    text = " ".join(line.strip() for line in paragraph.split("\n") if not _RULE.fullmatch(line))
    text = _LEFTOVER.sub(" ", _TEMPLATE.sub(" ", _TAG.sub(" ", _FOOTNOTE.sub("", text))))
    text = _EMPHASIS.sub(r"\1", _IMAGE.sub(" ", text))
    return _BULLETS.sub("- ", _SPACE.sub(" ", text).strip())


_FILE = re.compile(r"(?:^|/)Page/(.+)\.md$")


def _key(name: str) -> str:
    found = _FILE.search(name)
    return found[1] if found else ""


def _documents(recorded: Recorded, files: Files) -> Iterator[CorpusDocument]:
    for doc_id in filter(files.__contains__, recorded.ids):
        sections = parse_page(files[doc_id].decode("utf-8", "replace"))
        meta = {"url": f"https://en.wikipedia.org/wiki/{doc_id}"}
        yield corpus_document(doc_id, doc_id.replace("_", " "), sections, meta)


RECIPE = Recipe(
    "wikipedia_seealso",
    (github_archive("chinapedia/wikipedia.abstract.en", "4f3e897da088cbe89a4f1d4cba3fa2e439c3721b"),),
    _key,
    bool,
    _documents,
)
