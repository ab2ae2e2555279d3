"""Markdown: the text stays as it is in the file, without front matter; headings are found by a block parse."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate, pairwise

from markdown_it import MarkdownIt

from engine.readers.encoding import decode
from engine.readers.left_out import FIGURES
from engine.readers.scalars import typed_scalar
from engine.text.blocks import MAX_HEADING_CHARS
from engine.text.document import Document, MetadataValue, assemble
from engine.text.spans import Heading

# Headings need only the block structure: without inline parsing the parser is 16 times as fast.
_PARSER = MarkdownIt("commonmark").enable("table").disable("inline")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"([A-Za-z_][\w .-]*?)[ \t]*:(?:[ \t]+(.*?))?[ \t]*$")
_CODE = re.compile(r"(`+)(.+?)\1")
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
    file's name. Simple `key: value` lines of the front matter are metadata. The front matter is no part of the text.

    Raises:
        DocumentError: no text, too much, or not decodable.
    """
    text = decode(data)
    match = _FRONT_MATTER.match(text)
    metadata = dict(_front_matter(match.group(1))) if match else {}
    text = text[match.end() :] if match else text
    find = _headings if text.count("\n") < _MAX_PARSED_LINES else _headings_by_line
    headings = list(find(text))
    title = metadata.pop("title", None) or next((head.title for head in headings if head.level == 1), "")
    return assemble(
        text,
        headings,
        doc_id=doc_id,
        source=source,
        title=str(title),
        metadata=metadata,
        left_out={FIGURES: len(_PICTURE.findall(text))},
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


def _front_matter(lines: str) -> Iterator[tuple[str, MetadataValue]]:
    """Fields of one line and lists of `- item` lines; deeper YAML is skipped."""
    key, items = "", list[str]()
    for line in [*lines.split("\n"), "end:"]:
        if len(line) > _MAX_LINE_CHARS:
            continue
        if key and (item := re.match(r"\s*-\s+(.*\S)", line)):
            items.append(item.group(1))
            continue
        if items:
            yield key, [typed_scalar(item) for item in items]
        key, items = "", []
        match = _FIELD.match(line)
        if match is None:
            continue
        if match.group(2):
            yield match.group(1), _value(match.group(2))
        else:
            key = match.group(1)


def _value(raw: str) -> MetadataValue:
    if raw.startswith("[") and raw.endswith("]"):
        return [typed_scalar(item.strip()) for item in raw[1:-1].split(",") if item.strip()]
    return typed_scalar(raw)
