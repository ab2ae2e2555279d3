"""A section's text as blocks: paragraphs, lists, code and tables. Decides no markup.

The data has one paragraph a line: the items of a list and the lines of a code block are joined by spaces,
and some marks of reStructuredText and Markdown are left. This module splits the items again, and removes
leftover reStructuredText.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from demo.proposals import Proposal

CODE_WIDTH = 88


class BlockKind(StrEnum):
    """The kinds of block."""

    PARAGRAPH = "paragraph"
    BULLETS = "bullets"
    NUMBERED = "numbered"
    CODE = "code"
    TABLE = "table"


@dataclass(frozen=True)
class Block:
    """A paragraph (one line), a list (one line per item), code or a table (its lines)."""

    kind: BlockKind
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """A headed part of a proposal, ready to be written."""

    heading: str
    blocks: tuple[Block, ...]


def parts(proposal: Proposal) -> list[Part]:
    """The proposal's sections as blocks; a section that held only directives is left out."""
    from_rst = proposal.family == "pep"
    read = [Part(_heading(section.heading), tuple(_blocks(section.text, from_rst))) for section in proposal.sections]
    return [part for part in read if part.blocks]


def n_words(proposal: Proposal) -> int:
    """Words in headings and blocks, by white space."""
    return sum(
        len(" ".join([part.heading, *(line for block in part.blocks for line in block.lines)]).split())
        for part in parts(proposal)
    )


_DIRECTIVE = re.compile(r"\.\. ")
_NOTE = re.compile(r"\.\. (?:note|attention|warning)::\s*", re.IGNORECASE)
_RST = (
    (re.compile(r"(?:\s*\[[#*]?\w*\]_)+"), ""),  # footnotes, whose section is gone
    (re.compile(r"`([^`<]+?)\s*<[^`>]*>`__?"), r"\1"),
    (re.compile(r"`([^`]+)`__?"), r"\1"),
    (re.compile(r":[\w:-]+:`~?([^`]+)`"), r"`\1`"),
    (re.compile(r"\\ "), ""),
)
_CODE_START = re.compile(
    r"(?:# |>>>|\$ |//|/\*|@\w+|\{|\[ ?\[|from [\w.]+ import |import \w+$|assert |"
    r"async def |def \w+\(|class \w+[(:\[]|function \w+\(|struct \w+ \{|interface \w+ .*\{|"
    r"for \w+ in |try:|with \w+.* as \w+:|while .*:|if .*?: |return |[\w.]+(?:\[.*?\])? = |\+-|\+=)"
)
_NOT_CODE = re.compile(r"`[^`]*`|\[?(?:EIP|ERC|PEP)[- ]\d+\]?|\w+\(\)|\b_+[a-z]\w*_+\b")


def _heading(heading: str) -> str:
    """The heading with single backticks around literals, as in Markdown."""
    return re.sub(r"``([^`]+)``", r"`\1`", heading).replace("\\ ", "").replace("\\", "")


_JOINED = {BlockKind.BULLETS: (), BlockKind.CODE: ("",)}  # kinds that are joined, and the lines between two blocks


def _blocks(text: str, from_rst: bool) -> Iterator[Block]:
    """The blocks of a section; lists and code that empty lines had split are joined again."""
    before: Block | None = None
    for block in _split_blocks(text, from_rst):
        if before and before.kind is block.kind and block.kind in _JOINED:
            before = Block(block.kind, (*before.lines, *_JOINED[block.kind], *block.lines))
            continue
        if before:
            yield before
        before = block
    if before:
        yield before


def _split_blocks(text: str, from_rst: bool) -> Iterator[Block]:
    announced = False  # by "::" or a directive: the next paragraph is code, whatever it looks like
    for paragraph in re.split(r"\n{2,}", text):
        line = _without_rst(paragraph) if from_rst else re.sub(r"(?:^| )> (?=[A-Z`])", " ", paragraph).strip()
        announces = from_rst and line.endswith("::")
        if announces:
            line = line.removesuffix("::") and line.removesuffix(":")
        if line:
            yield _code(line) if announced else _block(line)
        announced = announces


def _without_rst(paragraph: str) -> str:
    """The paragraph without reStructuredText's marks; "::" alone when it announces code."""
    if re.match(r"\.\. (?:code|parsed-literal|productionlist)", paragraph):
        return "::"
    line = _NOTE.sub("Note: ", paragraph)
    if _DIRECTIVE.match(line):
        return ""
    for pattern, replacement in _RST:
        line = pattern.sub(replacement, line)
    return line.strip()


def _block(line: str) -> Block:
    if line.startswith("| ") and re.search(r"\|[ :]*-{2,}", line):
        return Block(BlockKind.TABLE, tuple(_table_rows(line)))
    if line.startswith(("* ", "- ")):
        return Block(BlockKind.BULLETS, tuple(_bullets(line)))
    if line.startswith("1. ") and " 2. " in line:
        return Block(BlockKind.NUMBERED, tuple(_numbered(line)))
    if _is_code(line):
        return _code(line)
    return Block(BlockKind.PARAGRAPH, (line,))


def _code(line: str) -> Block:
    return Block(BlockKind.CODE, tuple(textwrap.wrap(line, CODE_WIDTH, break_on_hyphens=False)))


def _is_code(line: str) -> bool:
    """Whether a line begins like code, or has many signs of code."""
    signs = len(re.findall(r"[=(){}\[\]<>;|_]", _NOT_CODE.sub("", line)))
    return bool(_CODE_START.match(line)) or (len(line) > 20 and signs > 0.07 * len(line))


def _bullets(line: str) -> Iterator[str]:
    """Items of a list; a new item begins where the mark recurs before a word or code."""
    mark = line[0]
    following = r"[A-Za-z`*(\"]" if mark == "*" or line[2:3].islower() else r"[A-Z`*]"
    for item in re.split(rf"(?:^| ){re.escape(mark)} (?={following})", _hidden(line)):
        if item:
            yield _shown(item.removeprefix(f"{mark} "))


def _numbered(line: str) -> Iterator[str]:
    """Items of a list, as long as the numbers are consecutive."""
    rest, number = line.removeprefix("1. "), 2
    while (at := rest.find(f" {number}. ")) >= 0:
        yield rest[:at]
        rest, number = rest[at + len(f" {number}. ") :], number + 1
    yield rest


def _table_rows(line: str) -> Iterator[str]:
    """Rows of a Markdown table, split by the number of cells in its rule, and aligned."""
    rule = re.search(r"\|(?:[ :]*-{2,}[ :]*\|)+", line)
    cells = _hidden(line).split("|")
    if rule is None:
        yield line
        return
    n_cells = rule[0].count("|") - 1
    rows = [cells[start : start + n_cells] for start in range(1, len(cells) - 1, n_cells + 1)]
    shown = [[_shown(cell.replace("`", "")).strip() for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=False)]
    for row in shown:
        is_rule = all(set(cell) <= set(" :-") for cell in row)
        padded = ("-" * width if is_rule else cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        yield f"| {' | '.join(padded)} |"


_HIDE: dict[str, str | int | None] = {"|": "\ue000", "*": "\ue001", "-": "\ue002"}


def _hidden(line: str) -> str:
    """The line with private characters in place of the marks inside code."""
    return re.sub(r"`[^`]*`", lambda code: code[0].translate(str.maketrans(_HIDE)), line)


def _shown(line: str) -> str:
    return line.translate({ord(str(hidden)): mark for mark, hidden in _HIDE.items()})
