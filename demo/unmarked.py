"""A proposal as text without markup: lines of a fixed width, or the strings of a JSON record."""

from __future__ import annotations

import json
import textwrap

from demo.blocks import Block, BlockKind, parts
from demo.proposals import Proposal
from demo.spans import plain

TEXT_WIDTH = 79


def plain_text(proposal: Proposal) -> str:
    """Text of a fixed width below mail-like headers: a PEP's headings are underlined, an EIP's numbered."""
    headers = {proposal.family.upper(): proposal.number, "Title": proposal.title, "Status": proposal.status}
    headers |= {"Type": proposal.kind, "Created": proposal.created}
    lines = [f"{key}: {value}" for key, value in headers.items()]
    for number, part in enumerate(parts(proposal), 1):
        heading = plain(part.heading)
        lines += ["", ""] + ([heading, "=" * len(heading)] if proposal.family == "pep" else [f"{number}. {heading}"])
        for block in part.blocks:
            lines += ["", *_plain_block(block)]
    return "\n".join(lines) + "\n"


def json_line(proposal: Proposal) -> str:
    """One record, as a line of JSON."""
    sections = [
        {
            "heading": plain(part.heading),
            "text": "\n\n".join("\n".join(_plain_block(block, 0)) for block in part.blocks),
        }
        for part in parts(proposal)
    ]
    record = {"id": proposal.name, "title": proposal.title, "sections": sections, "metadata": proposal.metadata}
    return json.dumps(record, ensure_ascii=False) + "\n"


def _plain_block(block: Block, width: int = TEXT_WIDTH) -> list[str]:
    """The lines of a block; a width of 0 leaves paragraphs and items in one line."""
    if block.kind in (BlockKind.CODE, BlockKind.TABLE):
        return [f"    {line}".rstrip() for line in block.lines]
    marks = {BlockKind.BULLETS: "* ", BlockKind.NUMBERED: "{}. "}
    lines: list[str] = []
    for number, line in enumerate(block.lines, 1):
        mark = marks.get(block.kind, "").format(number)
        text = mark + plain(line)
        lines += (
            textwrap.wrap(text, width, subsequent_indent=" " * len(mark), break_on_hyphens=False) if width else [text]
        )
    return lines
