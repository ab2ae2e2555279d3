"""Markup languages as tables of templates, and the renderer that fills them. Writes no whole files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape as escape_xml

from demo.blocks import Block, BlockKind, Part
from demo.spans import Span, SpanKind, spans


@dataclass(frozen=True)
class Markup:
    """Templates of one language, each with one place "{}" for text that is already escaped."""

    escape: Callable[[str], str]
    escape_code: Callable[[str], str]  # inside a line
    verbatim: Callable[[str], str]  # lines of code and tables
    spans: Mapping[SpanKind, str]  # a kind that is missing is written as text
    blocks: Mapping[BlockKind, str]  # around the lines
    items: Mapping[BlockKind, str]  # around each line
    part: tuple[str, str]  # before the blocks (with a place for the heading), and after the blocks

    def inline(self, text: str) -> str:
        """One line of prose."""
        return "".join(self._span(span) for span in spans(text))

    def block(self, block: Block) -> str:
        """One block, a line break at its end."""
        is_verbatim = block.kind in (BlockKind.CODE, BlockKind.TABLE)
        item = self.items.get(block.kind, "{}")
        lines = [item.format(self.verbatim(line) if is_verbatim else self.inline(line)) for line in block.lines]
        return self.blocks[block.kind].format("\n".join(lines)) + "\n"

    def body(self, written: Sequence[Part]) -> str:
        """Parts one after the other."""
        before, after = self.part
        return "".join(
            before.format(self.inline(part.heading)) + "".join(self.block(block) for block in part.blocks) + after
            for part in written
        )

    def _span(self, span: Span) -> str:
        escape = self.escape_code if span.kind is SpanKind.CODE else self.escape
        return self.spans.get(span.kind, "{}").format(escape(span.text))


def _same(text: str) -> str:
    return text


def _xml(text: str) -> str:
    return escape_xml(text)


_TEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
} | {sign: f"\\{sign}" for sign in "#$%&_"}


def _tex(text: str) -> str:
    return "".join(_TEX.get(sign, sign) for sign in text)


def _markdown_text(text: str) -> str:
    """Put a backslash only before a sign that would begin or end a tag or emphasis."""
    return re.sub(r"<(?=[A-Za-z/])|\*(?=\S)|(?<=\S)\*", lambda sign: "\\" + sign[0], text)


_LISTS = {BlockKind.BULLETS: "- {}", BlockKind.NUMBERED: "1. {}"}

MARKDOWN = Markup(
    escape=_markdown_text,
    escape_code=_same,
    verbatim=_same,
    spans={SpanKind.CODE: "`{}`", SpanKind.STRONG: "**{}**", SpanKind.EMPHASIS: "*{}*"},
    blocks=dict.fromkeys(BlockKind, "{}\n") | {BlockKind.CODE: "```\n{}\n```\n"},
    items=_LISTS,
    part=("## {}\n\n", ""),
)
HTML = Markup(
    escape=_xml,
    escape_code=_xml,
    verbatim=_xml,
    spans={SpanKind.CODE: "<code>{}</code>", SpanKind.STRONG: "<strong>{}</strong>", SpanKind.EMPHASIS: "<em>{}</em>"},
    blocks={
        BlockKind.PARAGRAPH: "<p>{}</p>",
        BlockKind.BULLETS: "<ul>\n{}\n</ul>",
        BlockKind.NUMBERED: "<ol>\n{}\n</ol>",
        BlockKind.CODE: "<pre><code>{}</code></pre>",
        BlockKind.TABLE: "<pre>{}</pre>",
    },
    items=dict.fromkeys((BlockKind.BULLETS, BlockKind.NUMBERED), "<li>{}</li>"),
    part=("<section>\n<h2>{}</h2>\n", "</section>\n"),
)
LATEX = Markup(
    escape=_tex,
    escape_code=_tex,
    verbatim=_same,
    spans={SpanKind.CODE: r"\texttt{{{}}}", SpanKind.STRONG: r"\textbf{{{}}}", SpanKind.EMPHASIS: r"\emph{{{}}}"},
    blocks={
        BlockKind.PARAGRAPH: "{}\n",
        BlockKind.BULLETS: "\\begin{{itemize}}\n{}\n\\end{{itemize}}\n",
        BlockKind.NUMBERED: "\\begin{{enumerate}}\n{}\n\\end{{enumerate}}\n",
        BlockKind.CODE: "\\begin{{verbatim}}\n{}\n\\end{{verbatim}}\n",
        BlockKind.TABLE: "\\begin{{verbatim}}\n{}\n\\end{{verbatim}}\n",
    },
    items=dict.fromkeys((BlockKind.BULLETS, BlockKind.NUMBERED), r"\item {}"),
    part=("\\section{{{}}}\n\n", ""),
)
JATS = Markup(
    escape=_xml,
    escape_code=_xml,
    verbatim=_xml,
    spans={
        SpanKind.CODE: "<monospace>{}</monospace>",
        SpanKind.STRONG: "<bold>{}</bold>",
        SpanKind.EMPHASIS: "<italic>{}</italic>",
    },
    blocks={
        BlockKind.PARAGRAPH: "<p>{}</p>",
        BlockKind.BULLETS: '<list list-type="bullet">\n{}\n</list>',
        BlockKind.NUMBERED: '<list list-type="order">\n{}\n</list>',
        BlockKind.CODE: "<code>{}</code>",
        BlockKind.TABLE: "<preformat>{}</preformat>",
    },
    items=dict.fromkeys((BlockKind.BULLETS, BlockKind.NUMBERED), "<list-item><p>{}</p></list-item>"),
    part=("<sec>\n<title>{}</title>\n", "</sec>\n"),
)
TEI = Markup(
    escape=_xml,
    escape_code=_xml,
    verbatim=_xml,
    spans={
        SpanKind.CODE: "<code>{}</code>",
        SpanKind.STRONG: '<hi rend="bold">{}</hi>',
        SpanKind.EMPHASIS: "<emph>{}</emph>",
    },
    blocks={
        BlockKind.PARAGRAPH: "<p>{}</p>",
        BlockKind.BULLETS: '<list rend="bulleted">\n{}\n</list>',
        BlockKind.NUMBERED: '<list rend="numbered">\n{}\n</list>',
        BlockKind.CODE: "<eg>{}</eg>",
        BlockKind.TABLE: "<eg>{}</eg>",
    },
    items=dict.fromkeys((BlockKind.BULLETS, BlockKind.NUMBERED), "<item>{}</item>"),
    part=("<div>\n<head>{}</head>\n", "</div>\n"),
)
