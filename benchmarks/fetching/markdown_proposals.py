"""EIPs: Markdown below a preamble of "name: value" lines, read into sections."""

from __future__ import annotations

import re

from benchmarks.fetching.parsed import ParsedDocument, SectionBuilder, one_line

MAX_CODE = 1500  # characters of a block of code that are kept, its opening fence included
DROPPED = re.compile(
    r"\W*(?:references?|footnotes?|copyright|acknowledge?ments?|history|revision history|change ?(?:log|history)"
    r"|citation|bibliography|authors? address(?:es)?|legal notices?)\b.*",
    re.IGNORECASE,
)
_PREAMBLE = re.compile(r"---\n(.*?)\n---\n(.*)", re.DOTALL)
_FIELD = re.compile(r"^([\w-]+):\s*(.*)$", re.MULTILINE)
_BLOCK = re.compile(r"```.*?```", re.DOTALL)
_FENCE = re.compile(r"\s*```")
_HEADING = re.compile(r"(#+)\s+(.*?)\s*#*\s*$")
_IMAGE = re.compile(r"!\[([^\]]*)\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_TAG = re.compile(r"</?[a-z][^>]*>")
_EMPHASIS = re.compile(r"[`*]")


def parse_eip(text: str) -> ParsedDocument:
    """Read one EIP. Code longer than `MAX_CODE` is cut, which may leave its fence open, as in the recorded corpus."""
    preamble, body = _split(text)
    fields = dict(_FIELD.findall(preamble))
    builder = SectionBuilder("Preamble")
    skipped_level: int | None = None
    in_code = False
    for line in _BLOCK.sub(lambda found: found[0][:MAX_CODE], body).split("\n"):
        if _FENCE.match(line):
            in_code = not in_code
            continue
        heading = None if in_code else _HEADING.match(line)
        if not heading and line.strip():
            builder.line(line.strip())
            continue
        builder.paragraph(_plain(builder.take_lines()))
        if not heading or (skipped_level is not None and len(heading[1]) > skipped_level):
            continue
        name = _EMPHASIS.sub("", one_line(heading[2]))
        builder.open(name)
        builder.is_skipping = bool(DROPPED.fullmatch(name))
        skipped_level = len(heading[1]) if builder.is_skipping else None
    builder.paragraph(_plain(builder.take_lines()))
    meta = {
        "status": fields.get("status"),
        "type": fields.get("category") or fields.get("type"),
        "created": fields.get("created"),
    }
    return ParsedDocument(fields.get("title", ""), builder.sections(3), meta)


def _split(text: str) -> tuple[str, str]:
    found = _PREAMBLE.match(text)
    return (found[1], found[2]) if found else ("", text)


def _plain(text: str) -> str:
    return one_line(_TAG.sub(" ", _LINK.sub(r"\1", _IMAGE.sub(" ", text))))
