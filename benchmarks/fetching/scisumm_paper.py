"""Papers of CL-SciSumm: sentences in <S>, sections in <SECTION title=...>; many files are no valid XML.

The files are read by their few tags, since a parser of XML would stop at the first bare "<" or "&".
"""

from __future__ import annotations

import html
import re

from benchmarks.fetching.parsed import ParsedDocument, one_line

_SENTENCE = re.compile(r"<S\b[^>]*>(.*?)</S>", re.DOTALL)
_ABSTRACT = re.compile(r"<ABSTRACT\b[^>]*>(.*?)</ABSTRACT>", re.DOTALL)
_TITLE = re.compile(r"<PAPER[^>]*>\s*<S\b[^>]*>(.*?)</S>", re.DOTALL)
_SECTION = re.compile(r"<SECTION\b[^>]*?title\s*=\s*\"([^>]*?)\"(?:\s+number[^>]*)?>(.*?)</SECTION>", re.DOTALL)
_DROPPED = re.compile(r"^[\d.\s]*(references?|acknowledge?ments?|bibliography)\b", re.IGNORECASE)


def parse_paper(text: str) -> ParsedDocument:
    """Read one paper; its abstract is not a section but `meta["abstract"]`, as summaries often repeat it."""
    abstracts = [_sentences(found) for found in _ABSTRACT.findall(text)]
    sections = []
    for title, body in _SECTION.findall(text):
        heading, sentences = _unescaped(title), _sentences(body)
        if heading.lower().startswith("abstract"):
            abstracts.append(sentences)
        elif sentences and not _DROPPED.match(heading):
            sections.append((heading, sentences))
    found = _TITLE.search(text)
    meta = {"abstract": " ".join(filter(None, abstracts))}
    return ParsedDocument(_unescaped(found[1]) if found else "", tuple(sections), meta)


def parse_summary(text: str) -> list[str]:
    """The lines of a summary that are not empty; tags of sentences are read where the file has them."""
    lines = _SENTENCE.findall(text) if "<S" in text else text.split("\n")
    return [line for line in map(_unescaped, lines) if line]


def decode_paper(data: bytes) -> str:
    """The text of a file: UTF-8, or Latin-1 where the file is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _sentences(markup: str) -> str:
    return " ".join(filter(None, map(_unescaped, _SENTENCE.findall(markup))))


def _unescaped(text: str) -> str:
    """Text whose entities were escaped up to three times."""
    for _ in range(3):
        text = html.unescape(text)
    return one_line(text)
