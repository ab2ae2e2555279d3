"""PEPs, EIPs and XEPs as documents: reStructuredText, Markdown and XML of the repositories at a fixed commit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from lxml import etree

from benchmarks.fetching.sources import (
    CITE,
    CorpusDocument,
    Files,
    ParsedDocument,
    Recipe,
    Recorded,
    SectionBuilder,
    corpus_document,
    github_archive,
    one_line,
)

_FIELD = re.compile(r"^([\w-]+):[ \t]*(.*(?:\n[ \t]+.*)*)", re.MULTILINE)
_ADORNMENT = re.compile(r"([=\-~^\"'`#*+.:_<>])\1{2,}\s*$")
_TARGET = re.compile(r"\.\. (?:_|\[)")  # a link target or a footnote
_DIRECTIVE = re.compile(
    r"\.\. (?:code|code-block|list-table|note|highlight|image|figure|contents|sectnum|warning|raw)\b"
)
_OPTION = re.compile(r"\s*:[\w-]+:\s*\S*\s*$")
_NUMBER_ROLE = re.compile(r":(?:pep|rfc):`([^`<]*?)\s*(?:<[^`>]*>)?`")
_ROLE = re.compile(r":[a-zA-Z][\w:.+-]*:`~?([^`<]*?)(?:\s*<[^`>]*>)?`")
_LINK = re.compile(r"`([^`<]+?)\s*<[^`>]+>`__?")
_LITERAL = re.compile(r"``([^`]+)``")


def parse_pep(text: str) -> ParsedDocument:
    """Read one PEP. Sections of references, footnotes, history and copyright are left out."""
    preamble, _, body = text.partition("\n\n")
    fields = {name.lower(): one_line(value) for name, value in _FIELD.findall(preamble)}
    builder = SectionBuilder("Preamble")
    lines = body.split("\n")
    place = 0
    while place < len(lines):
        line = lines[place]
        if _is_heading(lines, place):
            builder.paragraph(_plain(builder.take_lines()))
            builder.open(one_line(line))
            builder.is_skipping = bool(DROPPED.fullmatch(one_line(line)))
            place += 2
            continue
        place += 1
        if _ADORNMENT.fullmatch(line) or _OPTION.match(line):
            continue
        if _TARGET.match(line):
            place = _after_indented(lines, place)
        if not line.strip() or _TARGET.match(line) or _DIRECTIVE.match(line):
            builder.paragraph(_plain(builder.take_lines()))
        else:
            builder.line(line.strip())
    builder.paragraph(_plain(builder.take_lines()))
    meta = {name: fields.get(name) for name in ("status", "type", "created")}
    return ParsedDocument(fields.get("title", ""), builder.sections(3), meta)


def _is_heading(lines: Sequence[str], place: int) -> bool:
    """Whether an unindented line has an adornment of enough characters below it."""
    line, below = lines[place], lines[place + 1] if place + 1 < len(lines) else ""
    if not line.strip() or line.startswith(" ") or _ADORNMENT.fullmatch(line):
        return False
    return bool(_ADORNMENT.fullmatch(below)) and len(below.strip()) >= min(len(line.strip()), 4)


def _after_indented(lines: Sequence[str], place: int) -> int:
    while place < len(lines) and lines[place].startswith(" ") and lines[place].strip():
        place += 1
    return place


def _plain(text: str) -> str:
    text = _NUMBER_ROLE.sub(r"PEP \1", text)  # RFC numbers too, as in the recorded corpus
    return one_line(_LITERAL.sub(r"\1", _LINK.sub(r"\1", _ROLE.sub(r"\1", text))))


MAX_CODE = 1500  # characters of a block of code that are kept, its opening fence included
DROPPED = re.compile(
    r"\W*(?:references?|footnotes?|copyright|acknowledge?ments?|history|revision history|change ?(?:log|history)"
    r"|citation|bibliography|authors? address(?:es)?|legal notices?)\b.*",
    re.IGNORECASE,
)
_PREAMBLE = re.compile(r"---\n(.*?)\n---\n(.*)", re.DOTALL)
_EIP_FIELD = re.compile(r"^([\w-]+):\s*(.*)$", re.MULTILINE)
_BLOCK = re.compile(r"```.*?```", re.DOTALL)
_FENCE = re.compile(r"\s*```")
_HEADING = re.compile(r"(#+)\s+(.*?)\s*#*\s*$")
_IMAGE = re.compile(r"!\[([^\]]*)\]\([^)]*\)")
_EIP_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_TAG = re.compile(r"</?[a-z][^>]*>")
_EMPHASIS = re.compile(r"[`*]")


def parse_eip(text: str) -> ParsedDocument:
    """Read one EIP. Code longer than `MAX_CODE` is cut; this can leave its fence open, as in the recorded corpus."""
    found = _PREAMBLE.match(text)
    preamble, body = found.groups() if found else ("", text)
    fields = dict(_EIP_FIELD.findall(preamble))
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
        builder.paragraph(_plain_markdown(builder.take_lines()))
        if not heading or (skipped_level is not None and len(heading[1]) > skipped_level):
            continue
        name = _EMPHASIS.sub("", one_line(heading[2]))
        builder.open(name)
        builder.is_skipping = bool(DROPPED.fullmatch(name))
        skipped_level = len(heading[1]) if builder.is_skipping else None
    builder.paragraph(_plain_markdown(builder.take_lines()))
    meta = {
        "status": fields.get("status"),
        "type": fields.get("category") or fields.get("type"),
        "created": fields.get("created"),
    }
    return ParsedDocument(fields.get("title", ""), builder.sections(3), meta)


def _plain_markdown(text: str) -> str:
    return one_line(_TAG.sub(" ", _EIP_LINK.sub(r"\1", _IMAGE.sub(" ", text))))


MAX_EXAMPLE = 3000  # characters of an example that are kept
_FORMAL = re.compile(
    r"(?:iana considerations|xmpp registrar considerations|(?:xml )?schemas?)\b.*", re.IGNORECASE
)  # the same few sentences in most XEPs, or a formal schema
_CDATA = re.compile(r"(<!\[CDATA\[.*?\]\]>)", re.DOTALL)
_DOCTYPE = re.compile(r"<!DOCTYPE.*?\]>", re.DOTALL)
_PROCESSING = re.compile(r"<\?xml[^>]*\?>")
_XEP_ENTITY = re.compile(r"&xep(\d{4});")
_ENTITY = re.compile(r"&(?!lt;|gt;|amp;|quot;|apos;|#)([\w.-]+);")
_SECTION = re.compile(r"section\d")
_BLANK = re.compile(r"\n\s*\n")


def parse_xep(text: str) -> ParsedDocument:
    """Read one XEP. A broken file is read as far as the parser can repair it; an unreadable one has no section."""
    root = _root(text)
    if root is None:
        return ParsedDocument("", ())
    for note in root.iter("note"):
        note.text = None  # footnotes name sources; the text of elements inside them stays
    sections = [("Abstract", [_header(root, "abstract")])]
    for child in root:
        _collect(child, sections)
    joined = ((heading, "\n\n".join(paragraphs)) for heading, paragraphs in sections)
    kept = tuple((heading, body) for heading, body in joined if len(body.split()) >= 3)
    meta = {name: _header(root, name) for name in ("status", "type")}
    return ParsedDocument(_header(root, "title"), kept, meta)


def _root(text: str) -> etree._Element | None:
    parts = _CDATA.split(_PROCESSING.sub("", _DOCTYPE.sub("", text, count=1)))
    parts[::2] = [_ENTITY.sub(r" \1 ", _XEP_ENTITY.sub(r"XEP-\1", part)) for part in parts[::2]]
    # Entities are replaced above and none is resolved, so that the text cannot make the parser open a file or address.
    parser = etree.XMLParser(
        recover=True, remove_comments=True, remove_pis=True, resolve_entities=False, no_network=True, huge_tree=True
    )
    try:
        root: etree._Element | None = etree.fromstring("".join(parts).strip().encode(), parser)
    except etree.XMLSyntaxError:
        return None
    return root


def _collect(element: etree._Element, sections: list[tuple[str, list[str]]]) -> None:
    """Add a section and the sections inside it, each with its own text only."""
    if not isinstance(element.tag, str) or not _SECTION.match(element.tag):
        return
    heading = one_line(element.get("topic") or "")
    if DROPPED.fullmatch(heading) or _FORMAL.fullmatch(heading):
        return
    paragraphs: list[str] = []
    sections.append((heading, paragraphs))
    for child in element:
        if isinstance(child.tag, str) and _SECTION.match(child.tag):
            _collect(child, sections)
        elif isinstance(child.tag, str):
            text = "".join(child.itertext())
            text = text[:MAX_EXAMPLE] if child.tag in ("example", "code") else text
            paragraphs += [one_line(part) for part in _BLANK.split(text) if part.strip()]


def _header(root: etree._Element, name: str) -> str:
    found = root.find(f"header/{name}")
    return one_line("".join(found.itertext())) if found is not None else ""


_FAMILY = r"(?:PEP|EIP|ERC|XEP)"
_SERIES = rf"{_FAMILY}s?(?:[\s:#-]*\d+|[\s:-]*`\d+`)"
_MORE = rf"(?:,?\s*(?:and/or|and|or|/|,)\s*(?:and\s+|or\s+)?)(?:{_FAMILY}s?[\s-]*)?\d{{2,}}\b"
_URL = r"https?://\S*(?:(?:pep|eip|erc|xep)s?[-/]?\d+|EIPs/(?:issues|pull)/\d+)\S*"
_PROPOSAL = re.compile(rf"{_URL}|\b{_SERIES}(?:{_MORE})*", re.IGNORECASE)
_ONE_XEP = re.compile(rf"{_URL}|\b{_SERIES}", re.IGNORECASE)


def mask_proposals(text: str, *, lists: bool = True) -> str:
    """Mask the numbers of PEPs, EIPs, ERCs and XEPs and the addresses of such pages.

    With `lists`, "PEP 1 and PEP 2" becomes one mask rather than two.
    """
    return (_PROPOSAL if lists else _ONE_XEP).sub(CITE, text)


_PARSERS = {"pep": parse_pep, "eip": parse_eip, "xep": parse_xep}
_FILE = re.compile(r"(?:^|/)(?:peps/(pep)-(\d{4})\.rst|EIPS/(eip)-(\d+)\.md|(?<!inbox/)(xep)-(\d{4})\.xml)$")


def parse_proposal(doc_id: str, text: str) -> ParsedDocument:
    """Read a proposal by its family, the first three letters of its id."""
    return _PARSERS[doc_id[:3]](text)


def _key(name: str) -> str:
    found = _FILE.search(name)
    if not found:
        return ""
    family, number = (part for part in found.groups() if part)
    return f"{family}{int(number)}"


def _documents(recorded: Recorded, files: Files) -> Iterator[CorpusDocument]:
    for doc_id in filter(files.__contains__, recorded.ids):
        parsed = parse_proposal(doc_id, files[doc_id].decode("utf-8", "replace"))
        mask = partial(mask_proposals, lists=not doc_id.startswith("xep"))
        meta = {"family": doc_id[:3], "number": int(doc_id[3:]), **parsed.meta}
        sections = [(mask(heading), mask(text)) for heading, text in parsed.sections]
        yield corpus_document(doc_id, mask(parsed.title), sections, meta)


RECIPE = Recipe(
    "proposals",
    (
        github_archive("python/peps", "ba4deeb7969588d937da609008d05bb83a47b1ab"),
        github_archive("ethereum/EIPs", "f767a1e8078e17c9b381a91d35a09492189ede1b"),
        github_archive("xsf/xeps", "3ad7aaaa34241eeb4deb1231e05227823baa6676"),
    ),
    _key,
    bool,
    _documents,
)
