"""Markdown: the text as it is in the file, without front matter and comments; headings are found by a block parse."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from functools import partial
from html import unescape
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Any, ClassVar

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock

from engine.errors import DocumentError
from engine.readers import left_out as reasons
from engine.readers.blocks import MAX_HEADING_CHARS
from engine.readers.encoding import decode
from engine.readers.fields import case_fields, case_name, names_of, typed_scalar
from engine.readers.jsonl import flattened
from engine.readers.markup import tex_text
from engine.readers.text import header_fields, metadata_of, without_star_pages
from engine.text.cleaning import joined_words, raised, without_encoded, without_gaps, without_readings
from engine.text.document import Document, MetadataValue, assemble, is_made_up_title
from engine.text.headings import names_part
from engine.text.segmentation import Heading

_MAX_CHARS, _OPENING_CHARS = 100_000, 5_000
_MAX_VALUES = 10_000
_YAML = re.compile(
    r"---[ \t]*\n(?![ \t]*\n)"
    r"(?P<fields>(?:(?!---|\.\.\.[ \t]*$)[^\n]*\n)*?)(?:---(?:[ \t]+(?P<part>[a-z_]{1,20}))?|\.\.\.)[ \t]*$\n?",
    re.MULTILINE,
)
_PART = re.compile(
    r"^---[ \t]+(abstract|middle|back|note_[a-z]{1,20})[ \t]*$", re.MULTILINE
)  # of RFC sources, kramdown
_TOML = re.compile(r"(?:\+\+\+|---toml)[ \t]*\n(?P<fields>.*?)^(?:\+\+\+|---)[ \t]*$\n?", re.MULTILINE | re.DOTALL)
_JSON = re.compile(
    r"(?:(?:---json|;;;)[ \t]*\n(?P<fields>.*?)^(?:---|;;;)[ \t]*$\n?|(?P<bare>\{[ \t]*\n.*?\n\}[ \t]*$)\n)",
    re.MULTILINE | re.DOTALL,
)
_TITLE_BLOCK = re.compile(
    r"%[ \t]++(?P<title>[^\n]++(?:\n[ \t]++[^\n]++)*+)\n"
    r"(?:%[ \t]*+(?P<authors>[^\n]*+(?:\n[ \t]++[^\n]++)*+)\n(?:%[ \t]*+(?P<date>[^\n]*+)\n)?)?(?=[ \t]*\n)"
)  # of pandoc
_NOTE = re.compile(r"\^?\[\^?[^\[\]]*\]$")  # behind a name
_FIELD_LINE = re.compile(r"[A-Za-z_][\w .-]{0,100}:(?:\s|$)|[ \t#]|-\s|$")  # of fields that a parser of YAML may refuse
_BARE = re.compile(  # a value that YAML may refuse without quotes
    r"^([ \t-]{0,40}[A-Za-z_][\w .-]{0,100}:[ \t]+)"
    r"((?:[^\s\"'\[{|>#&!]|\{(?=\{)|[\"'\[{](?=[^\n]*[^\"'\]}\n]$))[^\n]*)$",
    re.MULTILINE,
)
_AUTHORS = ("authors", "author", "by", "creator")


def front_matter(text: str) -> tuple[dict[str, MetadataValue], str]:
    """The fields before a text, and the text after them; no fields where it starts with a mere rule."""
    forms = ((_YAML, _yaml), (_TOML, _toml), (_JSON, _json), (_TITLE_BLOCK, None))
    start = len(text) - len(text.lstrip("\n"))
    for pattern, parse in forms if text.startswith(("---", "+++", ";;;", "{", "%"), start) else ():
        match = pattern.match(text, start, _MAX_CHARS)
        fields = None if match is None else _title_block(match) if parse is None else parse(_fields_of(match))
        if match is not None and fields is not None:
            rest, part = text[match.end() :], match.groupdict().get("part")
            if part in ("abstract", "middle"):
                rest = _PART.sub(lambda line: "# Abstract" if line[1] == "abstract" else "", f"--- {part}\n{rest}")
            return fields, rest
    return {}, text


def _fields_of(match: re.Match[str]) -> str:
    return next((text for text in match.groupdict().values() if text is not None), "")


def _title_block(match: re.Match[str]) -> dict[str, MetadataValue] | None:
    names = [" ".join(line.split()) for line in (match["authors"] or "").split("\n")]
    return _flat({"title": match["title"], "authors": "; ".join(names), "date": match["date"] or None})


def _parsed(lines: str, load: Callable[[str], object]) -> dict[str, MetadataValue] | None:
    try:
        return _flat(load(lines))
    except (ValueError, RecursionError):
        return None


_toml, _json = partial(_parsed, load=tomllib.loads), partial(_parsed, load=json.loads)


def _yaml(lines: str) -> dict[str, MetadataValue] | None:
    """The fields; None where the lines are no fields but text."""
    import yaml  # slow to import

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Values as the filters compare them: no dates, and "no" is a word."""

        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    def scalar(loader: Any, node: Any) -> object:  # noqa: ANN401
        plain = not node.style
        if plain and node.value in ("", "~", "null"):
            return None
        return typed_scalar(node.value) if plain else node.value.rstrip("\n")

    Loader.add_constructor("tag:yaml.org,2002:str", scalar)
    try:
        return _flat(yaml.load(lines, Loader))
    except (yaml.YAMLError, RecursionError, ValueError):
        quoted = _BARE.sub(lambda match: match[1] + json.dumps(match[2].rstrip()), lines)
        return _yaml(quoted) if quoted != lines and all(map(_FIELD_LINE.match, lines.split("\n"))) else None


def _flat(fields: object) -> dict[str, MetadataValue] | None:
    """The fields with dotted names; None where they are no fields, or too many."""
    if not isinstance(fields, dict) or not fields or _n_values(fields) > _MAX_VALUES:
        return None
    if all(" " in str(key) for key in fields):  # a sentence with a colon
        return None
    flat: dict[str, MetadataValue] = {}
    for key, value in fields.items():
        name = "title" if str(key).lower() == "title" else str(key)
        try:
            flat |= flattened({name: value.isoformat() if isinstance(value, date) else value})
        except DocumentError:
            continue  # a value that no filter can compare
    named = next((key for name in _AUTHORS for key in fields if str(key).lower() == name and fields[key]), None)
    authors = [_NOTE.sub("", name).strip() for name in names_of(fields[named])] if named is not None else []
    known: dict[str, MetadataValue] = {
        key: value for key, value in flat.items() if value is not None and not (authors and key == named)
    }
    return known | {"authors": [*authors]} if authors else known


def _n_values(value: object) -> int:
    """The number of values; an alias counts each time, and the count ends above `_MAX_VALUES`."""
    count, todo = 0, [value]
    while todo and count <= _MAX_VALUES:
        count += 1
        one = todo.pop()
        todo.extend(one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
    return count


_PROSE_LINES = re.compile(  # paragraphs and simple lists, each before a line that is not indented
    r"(?:(?:[ ]*+(?:(?:[-*+]|\d{1,9}[.)])[ ]++)?+(?!\d{1,9}[.)]\s|\*\*\*)(?:[^\s#>`~<=*+_|:\\-]|\*+[^\s*-])"
    r"[^\n]*+\n){1,50}+(?:[ \t]*+\n)++(?!\s))++"
)


def _skip_prose(state: StateBlock, line: int, _: int, __: bool) -> bool:
    """Skip blocks that hold no heading, which the parser would read line by line."""
    found = None if state.level or "is_whole" in state.env else _PROSE_LINES.match(state.src, state.bMarks[line])
    if found:
        state.line = line + found.group().count("\n")
    return found is not None


# Headings need only the block structure: without inline parsing the parser is 16 times as fast.
_PARSER = MarkdownIt("commonmark").enable("table").disable("inline")
_PARSER.block.ruler.before("table", "prose", _skip_prose)
_COMMENT = re.compile(
    r"(?P<comment><!--)"
    r"|(?P<critic>\{(?P<sign>\+\+|==|>>|~~)(?P<first>(?:(?!~>)[^{}]){1,1000})(?:~>(?P<second>[^{}]{0,1000}))?(?:\+\+|==|<<|~~)\})"
    r"|(?P<struck>(?<![~\\])~~(?=[^~\s])(?:[^~\n]|\n(?![ \t]*\n)){1,1000}(?<!\s)~~(?!~)"
    r"|\{--[^{}\n]{1,1000}--\}|\[[^\[\]\n]{1,1000}\]\{\.deletion\b[^{}\n]{0,300}\}"
    r"|<(?P<tag>del|s|strike|rt|rp)>[^<\n]{0,1000}</(?P=tag)>)[ \t]?"
    r"|(?:</t[dh]>\s*(?=<t[dh]))?(?P<mark></?(?P<name>a|abbr|address|article|aside|b|big|blockquote|br|caption|center|cite|code|colgroup|col|dd|details|dfn|div|dl|dt|em|fieldset|figcaption"
    r"|figure|font|footer|h[1-6]|header|hr|i|img|ins|kbd|legend|li|main|mark|nav|ol|p|picture|q|ruby|samp|script|section|small|source|span|strong|style|sub|summary"
    r"|sup|table|tbody|td|tfoot|th|thead|time|tr|tt|u|ul|var|video|wbr)(?P<attributes>(?:\s+[\w:@.-]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'"
    r"|[^\s\"'=<>`]+))?){0,50}\s*)/?>)"
    r"|(?P<entity>&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[a-zA-Z]\w{1,30});)"
    r"|(?P<stars>(?<![^\W\d_*])\*{1,3}(?!\*))(?P<initial>[^\W\d_]{1,60})(?P=stars)(?=[^\W\d_])"
    r"|(?P<marks>(?<=[^\W\d_])\*{1,3}(?!\*))(?P<within>[^\W\d_]{1,60})(?P=marks)(?!\*)"
    r"|(?P<wiki>(?<![\w\]])!?\[\[(?P<page>[^\[\]|\n]{1,300}?)(?:\\?\|(?P<shown>[^\[\]\n]{0,300}))?\]\](?![(\[]))"
    r"|(?P<div>^[ \t]{0,12}:{3,}(?:[ \t]*(?:\{[^}\n]{0,300}\}|[\w-]{1,50})(?:\[(?P<label>[^\]\n]{1,300})\]"
    r"|[ \t]+(?P<caption>[^\n:{]{1,300}?))?)?[ \t]*(?:\{[^}\n]{0,300}\})?[ \t]*:*[ \t]*$)"
    r"|(?P<upper>(?<=[\w)\]*])\^(?P<raised>[\w+\u2212.,()-]{1,30})\^(?:(?<=,\^)(?=\d)|(?![\w{\\^])))"
    r"|(?P<lower>(?<=[\w)\]])~(?P<lowered>[\w+\u2212.,()-]{1,30})~(?!~))"
    r"|(?P<aside>(?<!\S)%%(?:[^%\n]|\n(?![ \t]*\n)){1,1000}%%(?![\w%])|\{/\*(?:(?!\*/|\{/\*)[\s\S]){0,2000}\*/\}"
    r"|\[[^\[\]\n]{0,1000}\]\{\.comment-(?:start|end)[^{}\n]{0,300}\}|^%%[ \t]*\n(?:(?!%%)[^\n]*\n){1,200}%%[ \t]*$)"
    r"|(?P<code>^import[ \t](?:[^\n]{1,300}[ \t])?[\"'][^\"'\n]{1,300}[\"'];?[ \t]*$"
    r"|^export[ \t]+(?:(?:const|let)[ \t]+\w+[ \t]*=|default[ \t]+(?:function|class)\b|(?:async )?function[ \t]+\w+\()"
    r"(?:[^\n]+\n?){1,200}"
    r"|\{\{[<%][^{}\n]{1,300}[>%]\}\}|\{%-?\s[^{}\n]{1,300}%\}|\{:\s?[.#\w][^{}\n]{0,200}\}"
    r"|(?<!\S)(?-i:</?[A-Z])[\w.]{0,40}(?:\s[^<>\n]{0,300})?/?>(?=[ \t]*$))"
    r"|(?P<note>^\[(?://|comment)\]:[ \t]*[#<][^\n]*\n?)"
    r"|\{(?P<role>[a-z][\w:+.-]{0,30})\}`(?P<of_role>[^`\n]{1,500})`"
    r"|(?P<attributes_of>(?<=[\])`*_])\{(?:[.#]|[\w-]{1,40}=)[^{}\n]{1,300}\}"
    r"|(?<=[ \t])\{[.#][^{}\n]{1,300}\}(?=[ \t]*$))"
    r"|(?P<tex>(?<![\w\\$])(?:\$\$(?P<display>[^$]{1,2000})\$\$|\$(?P<inline>(?=\S)[^$\n]{1,500}(?:\n[^$\n]{1,500})?(?<=[^\s\\]))\$(?![\w$])"
    r"|\\\((?P<round>(?:(?!\\\().){1,500}?)\\\)|\\\[(?P<square>(?:(?!\\\[)[^$]){1,2000}?)\\\]))",
    re.MULTILINE | re.IGNORECASE,
)
_SHOWN = ("stars", "marks", "div", "upper", "lower", "attributes_of")  # marks around words, some of them of pandoc
_TITLE_TAG = re.compile(r"h[1-6]$", re.IGNORECASE)
_HEADER = re.compile(r"([A-Za-z][A-Za-z-]{1,30}):[ \t]+(\S.*)")  # of MultiMarkdown, which stays in the text
_IS_TEX = re.compile(r"\\[A-Za-z]|[_^=<>+]|^\s*[A-Za-z]\s*$")
_PROSE = re.compile(r"^[^\\]*(?<![A-Za-z])[A-Za-z]{3,}\s+[A-Za-z]{3,}[^\\]*$|(?<!\\)%")
_MATH_FENCE = re.compile(  # of GitHub and MyST
    r"^ {0,3}(```+|~~~+)[ \t]*\{?math\}?[^\n]{0,200}\n(?:[ \t]*:[\w-]+:[^\n]*\n){0,9}"
    r"(.{1,2000}?)\n {0,3}\1[ \t]*$",
    re.M | re.S,
)
_DIRECTIVE = re.compile(
    r"^ {0,12}(?P<fence>`{3,}|~{3,}|:{3,})\{(?P<name>[a-z][\w:+-]{0,40})\}[ \t]*(?P<title>.*)$", re.M
)
_CODE_DIRECTIVES = frozenset(
    "code code-block code-cell literalinclude mermaid raw eval-rst r python julia ojs bash sh sql stan rcpp js css dot "
    "tikz node perl ruby asis cat".split()
)
_OPTION = re.compile(r"[ \t]*:[\w-]{1,40}:(?:[ \t]|$)")
_TARGET = re.compile(r"\([^()\n]{1,80}\)=[ \t]*|\+\+\+.*")
_CALLOUT = re.compile(r"(^:{3,}[ \t]*\{[^}\n]{0,300}\.callout-[^}\n]{0,300}\}[ \t]*\n+)#{1,6}[ \t]+", re.M)
_HIDDEN = re.compile(r"display\s*:\s*none|(?<![\w-])visibility\s*:\s*hidden|\shidden(?:[\s=/>]|$)", re.IGNORECASE)
_FIRST_CELL = re.compile(r"<tr[^<>]*>\s*$", re.IGNORECASE)
_SPACED = {"br": "\n", "li": "\n- ", "tr": "\n", "td": " | ", "th": " | ", **dict.fromkeys(
    ["p", "div", "summary", "dt", "dd", "figcaption", "blockquote", "section", "center", "details", "table", "caption",
     "article", "aside", "footer", "header", "main"], "\n")}  # fmt: skip
_SIGN = re.compile(  # where a `_COMMENT` may begin, or code; begins with a set of characters, which is found fast
    r"[<~`{\[&^$\\!*%](?:(?<=[~`$])|(?<=<)(?=!--|/?[a-zA-Z])|(?<=\{)(?=[-+=>~.#\w{/%:])"
    r"|(?<=\[)(?=\[|//|(?i:comment)\]|[^\[\]\n]{0,1000}\]\{\.)|(?<=&)(?=[#a-zA-Z])|(?<=\^)(?=[\w+\u2212.,()-])"
    r"|(?<=\\)(?=[(\[])|(?<=!)(?=\[\[)|(?<=\*)(?<!\*\*)\**(?=[^\W\d_])|(?<=%)(?=%))"
)
_SIGN_OF_LINE = re.compile(r"\n(?:[ \t]{0,12}:::|(?:im|ex)port[ \t])")  # behind a newline, found faster than "^"
_TICKS = re.compile(r"`+")
_NAME_OF_DIV = re.compile(r"\b(?:title|name|label)=\"([^\"]+)\"")
_CODE = re.compile(r"(`++)(.+?)\1")
_TAG = re.compile(r"#(?<!\S#)([^\s!-,.:-@\[-^`{-~\u2000-\u206f\u3000-\u303f]+)")  # of Obsidian; "a/b" is below "a"
_MAX_TAG_CHARS, _MAX_NESTED = 20_000, 50  # of a part that a tag hides, and tags of its name inside
_NESTED = frozenset(["div", "span", "section", "details", "table", "ul", "ol", "dl", "blockquote"])
_MAX_LINE_CHARS = 2_000  # of a heading or a field, with its markup
_MAX_PARSED_LINES = 200_000  # the parser makes several objects of each line
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*$")
_LINE = re.compile(r"^ {0,3}[#`~][^\n]{0,2000}$", re.MULTILINE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_PRIVATE_USE = 0xF0000  # stands for a code span while the marks around it are read
_PICTURE = re.compile(r"!\[[^\[\]\n]{0,500}\](?:\(|\[)")
_MARKED = re.compile(r"[`\[{<*_\\]")  # what each of `_INLINE` has
_INLINE = (
    (re.compile(r" ?\[\^[^\]\s]{1,60}\]"), ""),  # the mark of a note
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

    The title is that of the front matter, else the first heading of level 1, else the parties of a court paper, else
    the file's name. The fields of the front matter (YAML or TOML) are metadata, and no part of the text.
    So are the tags within a note of Obsidian, a file below a folder that holds ".obsidian".
    """
    text, n_encoded = without_encoded(decode(data))
    fields, text = front_matter(text)
    header = header_fields(text, _HEADER) if not fields and _HEADER.match(text) else {}
    fields |= metadata_of(header) if "title" in header else {}
    text, n_readings = without_readings(joined_words(without_gaps(text)))
    text, counts = _without_comments(text)
    text, n_pages = without_star_pages(text) if "[*" in text or "[Pg " in text else (text, 0)
    counts.update({reasons.READINGS: n_readings, reasons.RUNNING_HEADS: n_pages, reasons.ENCODED: n_encoded})
    counts[reasons.FIGURES] += len(_PICTURE.findall(text))
    find = _headings if text.count("\n") < _MAX_PARSED_LINES else _headings_by_line
    found = (replace(heading, title=plain(heading.title)) for heading in find(text))
    headings = [heading for heading in found if heading.title.strip() and len(heading.title) <= MAX_HEADING_CHARS]
    if _TAG.search(text) and any(Path(folder, ".obsidian").is_dir() for folder in Path(source).absolute().parents):
        named = fields.get("tags") or []
        tags = named if isinstance(named, list) else re.split(r"[,\s]+", str(named))
        fields["tags"] = [*dict.fromkeys([*tags, *_tags(text)])]
    declared = plain(str(fields.pop("title", "")))
    titles = (head.title for head in headings if head.level == 1 and not names_part(head.title))
    title = next(titles, "") if is_made_up_title(declared) else declared
    opening = "" if title else "\n".join(map(plain, text[:_OPENING_CHARS].split("\n")))
    if case := case_name(opening):
        title, fields = case, case_fields(opening) | fields
    return assemble(
        text,
        headings,
        doc_id=doc_id,
        source=source,
        title=title,
        metadata=fields,
        left_out=counts,
    )


def _tags(text: str) -> Iterator[str]:
    """The tags within a note of Obsidian; none of them is in code, or is a number."""
    for token in _PARSER.parse(text, {"is_whole": True}):
        if token.type == "inline":
            found = (tag.strip("/") for tag in _TAG.findall(_CODE.sub("", token.content)))
            yield from (tag for tag in found if tag and not tag.isdigit())


def plain(markup: str) -> str:
    """The words of a line of inline Markdown: no emphasis, code marks, link targets or tags."""
    if not _MARKED.search(markup):
        return markup
    codes: list[str] = []

    def put_aside(match: re.Match[str]) -> str:
        codes.append(match.group(2).strip())
        return chr(_PRIVATE_USE + len(codes) - 1)

    markup = _CODE.sub(put_aside, markup)
    for pattern, replacement in _INLINE:
        markup = pattern.sub(replacement, markup)
    return "".join(codes[place] if 0 <= (place := ord(char) - _PRIVATE_USE) < len(codes) else char for char in markup)


def _headings(text: str) -> Iterator[Heading]:
    """The headings, with their markup."""
    offsets = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    for token, content in pairwise(_PARSER.parse(text)):
        is_heading = token.type == "heading_open" and not token.level and len(content.content) <= _MAX_LINE_CHARS
        if is_heading and token.map is not None:
            yield Heading(content.content, int(token.tag[1]), offsets[token.map[0]])


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
            yield Heading(found.group(2), len(found.group(1)), match.start())


def _without_comments(text: str) -> tuple[str, Counter[str]]:
    """Leave out comments, struck words, readings and tags, but not in code; returns the rest and words by reason."""
    parts: list[str] = []
    counts: Counter[str] = Counter()
    start = place = 0
    text = _MATH_FENCE.sub(r"$$\2$$", text) if "math" in text else text
    if "{" in text and _DIRECTIVE.search(text):
        text = _without_directives(text, counts)
    text = _CALLOUT.sub(r"\1", text) if ".callout-" in text else text
    found = *_SIGN.finditer(text), *_SIGN_OF_LINE.finditer(f"\n{text}")  # a newline more: where the line begins
    for sign in sorted(match.start() for match in found):
        if sign < place or (text[sign] in "`~" and (place := _end_of_code(text, sign)) > sign):
            continue
        match = _COMMENT.match(text, sign)
        shown, stop = "", 0
        if match is not None:
            shown, stop = (_without_tag if match["mark"] else _without_mark)(
                match, text, counts, text[max(0, match.start() - 24) : match.start()]
            )
        if match is not None and stop >= 0:  # else a comment without an end
            before = text[start:sign]
            parts += [before.rstrip(" \t") if match["attributes_of"] else before, shown]
            start = place = stop
    return "".join([*parts, text[start:]]), counts


def _end_of_code(text: str, start: int) -> int:
    """Where the code ends whose marks begin at `start`; `start` where there is no code."""
    line = text.rfind("\n", max(0, start - 4), start) + 1  # a fence has three blanks before it at most
    fence = _FENCE.match(text, line)
    if fence is not None and fence.start(1) == start:
        closing = re.compile(rf"^ {{0,3}}{fence.group(1)}[`~]*[ \t]*$", re.MULTILINE).search(text, fence.end())
        return len(text) if closing is None else closing.end()
    ticks = _TICKS.match(text, start)
    if ticks is None:
        return start
    stop = text.find(ticks.group(), ticks.end(), ticks.end() + _MAX_LINE_CHARS)
    return stop + len(ticks.group()) if stop >= 0 else ticks.end()


def _without_mark(match: re.Match[str], text: str, counts: Counter[str], before: str) -> tuple[str, int]:
    """What a comment, struck words, a reading or a mark leave in the text, and where it goes on; -1 without an end."""
    stop = match.end()
    if match["comment"]:
        end = text.find("-->", stop)
        counts[reasons.COMMENT_WORDS] += len(text[stop:end].split()) if end >= 0 else 0
        return "", end + 3 if end >= 0 else -1
    unread = next((name for name in ("note", "aside", "code") if match[name]), "")
    if unread:  # comments of several programs, code of MDX, and tags of templates
        reason = reasons.RAW if unread == "code" else reasons.COMMENT_WORDS
        counts[reason] += len(match[unread].strip("%").split()) - (2 if unread == "note" else 0)
        titled = _NAME_OF_DIV.search(match["code"]) if match.group()[0] == "<" else None
        return titled[1] if titled else "", stop
    if match["wiki"]:  # of Obsidian and wikis
        return _link(match, counts), stop
    if match["entity"]:
        return unescape(match["entity"]).replace("\u00ad", ""), stop
    if match["tex"] or match["role"]:
        return _formula(match) if match["tex"] else _of_role(match, before), stop
    if any(map(match.group, _SHOWN)):
        titled = _NAME_OF_DIV.search(match["div"]) if match["div"] else None
        shown = match["label"] or match["caption"] or match["lowered"] or match["initial"] or match["within"] or ""
        shown = shown or (titled[1] if titled else "")
        return raised(before, match["raised"]) if match["upper"] else shown, stop
    if match["critic"]:
        is_comment, second = match["sign"] == ">>", match["second"]
        if is_comment or second is not None:
            counts[reasons.COMMENT_WORDS if is_comment else reasons.DELETED] += len(match["first"].split())
        return "" if is_comment else match["first"] if second is None else second, stop
    tag = (match["tag"] or "").lower()
    if tag != "rp":
        counts[reasons.READINGS if tag == "rt" else reasons.DELETED] += len(match["struck"].split())
    return "", match.end("struck") if tag in ("rt", "rp") else stop


def _formula(match: re.Match[str]) -> str:
    """A formula in TeX as its text; what is none as it is."""
    source = next(filter(None, map(match.group, ("display", "inline", "round", "square")))).strip(" `\n")
    return tex_text(source) if _IS_TEX.search(source) and not _PROSE.search(source) else match["tex"]


def _of_role(match: re.Match[str], before: str) -> str:
    """What a role of MyST shows: its words, or those before the target of a link."""
    name, words = match["role"], match["of_role"]
    if name.startswith("sup"):
        return raised(before, words)
    return tex_text(words) if name == "math" else re.sub(r"\s*<[^<>]*>$", "", words)


def _without_directives(text: str, counts: Counter[str]) -> str:
    """Leave out the fences, options, comments and labels of MyST, of which the words are counted.

    The words behind a fence are a title or a caption; of a picture they are its file.
    """
    lines, fences, code, is_option = list[str](), list[str](), "", False
    for line in text.split("\n"):
        fence, option, mark = _DIRECTIVE.match(line), is_option and _OPTION.match(line), _FENCE.match(line)
        is_option = bool(fence or option)
        if code:
            code = "" if line.strip() == code else code
            lines.append(line)
        elif fence is not None and fence["name"] not in _CODE_DIRECTIVES:
            fences.append(fence["fence"])
            lines.append(f"![]({fence['title']})" if fence["name"] in ("figure", "image") else fence["title"])
        elif fences and line.strip() == fences[-1]:
            fences.pop()
            lines.append("")
        elif mark:
            code = mark[1]
            lines.append(line)
        elif line.startswith("% "):
            counts[reasons.COMMENT_WORDS] += len(line.split()) - 1
        elif option or _TARGET.fullmatch(line):
            counts[reasons.RAW] += len(line.split())
        else:
            lines.append(line)
    return "\n".join(lines)


def _link(match: re.Match[str], counts: Counter[str]) -> str:
    """What a link between notes shows: its own words, or the name of the page and the heading; nothing of a picture.

    A name alone stays in its brackets, which also mark tables of TOML.
    """
    page = match["page"].strip()
    if match["wiki"][0] == "[" and match["shown"] is None and "#" not in page:
        return match["wiki"]
    if match["wiki"].startswith("!") and "." in page.rpartition("/")[2]:
        counts[reasons.FIGURES] += 1
        return ""
    return match["shown"] or " > ".join(part.strip() for part in page.split("#") if part and part[0] != "^")


def _without_tag(tag: re.Match[str], text: str, counts: Counter[str], before: str) -> tuple[str, int]:
    """What a tag of HTML leaves in the text, and where the text goes on."""
    name, stop = tag["name"].lower(), tag.end()
    if name == "img":
        counts[reasons.FIGURES] += 1
        return "", stop
    if tag["mark"].startswith("</"):
        is_end = _TITLE_TAG.match(name) or (_SPACED.get(name) == "\n" and not text.startswith("\n", stop))
        return "\n" if is_end else "", stop
    if _TITLE_TAG.match(name) and not before.rpartition("\n")[2].strip():
        return f"{'#' * int(name[1])} ", stop
    is_silent = name in ("script", "style")
    if name != "sup" and not is_silent and not _HIDDEN.search(tag["attributes"] or ""):
        name = "" if name in ("td", "th") and _FIRST_CELL.search(before) else name
        return _SPACED.get(name, "").lstrip("" if name == "br" or before.rstrip(" ")[-1:].strip() else "\n"), stop
    end, depth = None, 1
    marks = re.compile(rf"<(/?){name}\b[^<>]{{0,200}}>", re.IGNORECASE)
    for mark in islice(marks.finditer(text, stop, stop + (200 if name == "sup" else _MAX_TAG_CHARS)), _MAX_NESTED):
        depth += -1 if mark[1] else name in _NESTED
        if not depth:
            end = mark
            break
    inner = text[stop : end.start()] if end is not None else ""
    if end is None or (name == "sup" and "<" in inner):
        return "", stop
    if name == "sup":
        return raised(before, inner), end.end()
    counts[reasons.HIDDEN] += 0 if is_silent else len(inner.split())
    return "", end.end()
