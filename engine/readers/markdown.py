"""Markdown: the text as it is in the file, without front matter and comments; headings are found by a block parse."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate, pairwise

from markdown_it import MarkdownIt

from engine.readers import left_out as reasons
from engine.readers.blocks import MAX_HEADING_CHARS
from engine.readers.encoding import decode
from engine.readers.front_matter import front_matter
from engine.text.cleaning import joined_words, without_encoded
from engine.text.document import Document, assemble, is_made_up_title
from engine.text.spans import Heading

# Headings need only the block structure: without inline parsing the parser is 16 times as fast.
_PARSER = MarkdownIt("commonmark").enable("table").disable("inline")
_COMMENT = re.compile(
    r"^ {0,3}(?P<fence>`{3,}|~{3,})[^\n]*|(?P<ticks>`+)[^`\n]|(?P<comment><!--)"
    r"|(?P<struck>(?<![~\\])~~(?=[^~\s])[^~\n]{1,1000}(?<!\s)~~(?!~)"
    r"|\{--[^{}\n]{1,1000}--\}|<(?P<tag>del|s|strike|rt|rp)>[^<\n]{0,1000}</(?P=tag)>)[ \t]?"
    r"|(?P<note>^ {0,3}\[(?://|comment)\]:[ \t]*[#<][^\n]*\n?)",
    re.MULTILINE,
)
_LEFT_OUT = re.compile(r"<!--|~~|<(?:del|s|strike|rt|rp)>|\{--|\[(?://|comment)\]:")
_CODE = re.compile(r"(`++)(.+?)\1")
_MAX_LINE_CHARS = 2_000  # of a heading or a field, with its markup
_MAX_PARSED_LINES = 200_000  # the parser makes several objects of each line
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*$")
_LINE = re.compile(r"^ {0,3}[#`~][^\n]{0,2000}$", re.MULTILINE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_PRIVATE_USE = 0xF0000  # stands for a code span while the marks around it are read
_PICTURE = re.compile(r"!\[[^\[\]\n]{0,500}\](?:\(|\[)")
_INLINE = (
    (re.compile(r"!?\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"!?\[([^\]]*)\]\[[^\]]*\]"), r"\1"),
    (re.compile(r"\s*\{[#.:][^}]*\}\s*$"), ""),
    (re.compile(r"</?[A-Za-z][^>]*>"), ""),
    (re.compile(r"(\*\*|__)(.+?)\1"), r"\2"),
    (re.compile(r"(?<!\w)([*_])(\S(?:.*?\S)?)\1(?!\w)"), r"\2"),
    (re.compile(r"\\([!-/:-@\[-`{-~])"), r"\1"),
)


def read(data: bytes, doc_id: str, source: str) -> Document:
    """Read a Markdown document.

    The title is that of the front matter, else the first heading of level 1, else the
    file's name. The fields of the front matter (YAML or TOML) are metadata, and no part of the text.
    """
    text, n_encoded = without_encoded(decode(data))
    fields, text = front_matter(text)
    text = joined_words(text)
    text, counts = _without_comments(text)
    find = _headings if text.count("\n") < _MAX_PARSED_LINES else _headings_by_line
    headings = list(find(text))
    declared = str(fields.pop("title", ""))
    title = next((head.title for head in headings if head.level == 1), "") if is_made_up_title(declared) else declared
    return assemble(
        text,
        headings,
        doc_id=doc_id,
        source=source,
        title=title,
        metadata=fields,
        left_out={
            reasons.FIGURES: len(_PICTURE.findall(text)),
            reasons.ENCODED: n_encoded,
        }
        | counts,
    )


def plain(markup: str) -> str:
    """The words of a line of inline Markdown: no emphasis, code marks, link targets or tags."""
    codes: list[str] = []

    def put_aside(match: re.Match[str]) -> str:
        codes.append(match.group(2).strip())
        return chr(_PRIVATE_USE + len(codes) - 1)

    markup = _CODE.sub(put_aside, markup)
    for pattern, replacement in _INLINE:
        markup = pattern.sub(replacement, markup)
    return "".join(codes[place] if 0 <= (place := ord(char) - _PRIVATE_USE) < len(codes) else char for char in markup)


def _headings(text: str) -> Iterator[Heading]:
    offsets = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    tokens = _PARSER.parse(text)
    for token, content in pairwise(tokens):
        if token.type != "heading_open" or token.level or token.map is None:
            continue
        if len(content.content) > _MAX_LINE_CHARS:
            continue
        title = plain(content.content)
        if title.strip() and len(title) <= MAX_HEADING_CHARS:
            yield Heading(title, int(token.tag[1]), offsets[token.map[0]])


def _headings_by_line(text: str) -> Iterator[Heading]:
    """The headings that start with `#`, outside of fenced code; for texts of too many lines to be parsed."""
    fence = ""
    for match in _LINE.finditer(text):
        line = match.group()
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark.group(1)
        elif mark and mark.group(1).startswith(fence) and not line[mark.end() :].strip():
            fence = ""
        elif not fence and (found := _ATX.match(line)) and found.group(2):
            title = plain(found.group(2))
            if title.strip() and len(title) <= MAX_HEADING_CHARS:
                yield Heading(title, len(found.group(1)), match.start())


def _without_comments(text: str) -> tuple[str, dict[str, int]]:
    """Leave out comments, struck words and readings, but not in code; returns the rest and the words by reason."""
    parts: list[str] = []
    counts = dict.fromkeys([reasons.COMMENT_WORDS, reasons.DELETED, reasons.READINGS], 0)
    start = place = 0
    while _LEFT_OUT.search(text, place) and (match := _COMMENT.search(text, place)) is not None:
        place = match.end()
        if match["comment"]:
            stop = text.find("-->", place)
            if stop < 0:
                break
            counts[reasons.COMMENT_WORDS] += len(text[place:stop].split())
            parts.append(text[start : match.start()])
            start = place = stop + 3
        elif match["note"]:
            counts[reasons.COMMENT_WORDS] += len(match["note"].split()) - 2
            parts.append(text[start : match.start()])
            start = place
        elif match["struck"]:
            if match["tag"] != "rp":
                counts[reasons.READINGS if match["tag"] == "rt" else reasons.DELETED] += len(match["struck"].split())
            parts.append(text[start : match.start()])
            start = place = match.end() if match["tag"] not in ("rt", "rp") else match.end("struck")
        elif match["ticks"]:
            stop = text.find(match["ticks"], place, place + _MAX_LINE_CHARS)
            place = stop + len(match["ticks"]) if stop >= 0 else place
        else:
            closing = re.compile(rf"^ {{0,3}}{match['fence']}[`~]*[ \t]*$", re.MULTILINE).search(text, place)
            if closing is None:
                break
            place = closing.end()
    return "".join([*parts, text[start:]]), counts
