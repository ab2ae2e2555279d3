"""RFCs as documents: the index, and the text of a page-broken memo as headed sections."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from benchmarks.fetching.sources import (
    CITE,
    CorpusDocument,
    FetchError,
    Files,
    Recipe,
    Recorded,
    SectionBuilder,
    Source,
    corpus_document,
    decoded,
    one_line,
)

_FOOT = re.compile(r"^.*\[Page\s+[\divxlc]+\]\s*$", re.IGNORECASE)
_HEAD = re.compile(r"^\s*RFC\s*#?\s*\d+\b.*\d{4}\s*$|^.*\bRFC\s+\d+\s*$")
_ENDS_PARAGRAPH = re.compile(r"[.:;?!)]$")
_HEADING = re.compile(
    r"^((?:Appendix|APPENDIX)\s+(?:[A-Z]|\d+)(?:\.\d+)*(?=[.:]?\s)[:]?|[A-Z](?:\.\d{1,2})+|[A-Z](?=\.)"
    r"|\d{1,2}(?:\.\d+)*)\.?\s+(?:--?\s+)?(\S.*)$"
)
_KNOWN = re.compile(
    r"^(abstract|introduction|overview|background|terminology|preface|summary|discussion|notes?|examples?"
    r"|security considerations|iana considerations|conclusions?|appendix(?:: .*| [a-z0-9]+\.?)):?$",
    re.IGNORECASE,
)
_DROPPED = re.compile(
    r"((status of th|(full )?copyright|(table of )?contents$"
    r"|((non-)?normative |informat(ive|ional) )?(references\b|reference$)|chair's address"
    r"|(authors?|editors?)('?s?'?)?( (contact )?(address|information)|$)|acknowledge?ments?\b|contributors"
    r"|intellectual property|index$|iesg note|disclaimer|bibliography).*)$",
    re.IGNORECASE,
)
_REFERENCES = re.compile(r"references?:?$|bibliography", re.IGNORECASE)
_LABEL = re.compile(r"\s*\[([^\]\n]{1,40})\]")
_DRAWING = re.compile(r"[\s+\-|=_.*/\\:<>~^#0-9v'`]*")  # a line without words: part of a figure
_NO_HEADING = re.compile(r"\.{3,}|\s\.\s\.|[.,;]$|[{|]")  # contents lines, sentences, grammars
_MAX_INDENT, _MAX_WIDTH, _MAX_WORDS = 4, 72, 6


@dataclass(frozen=True)
class _Heading:
    name: str
    number: str  # "" if the heading has none
    title: str  # the name without the number


def parse_rfc(text: str) -> tuple[tuple[tuple[str, str], ...], frozenset[str]]:
    """Read the sections of one RFC: heading and text.

    Front matter, status, copyright, contents, references, addresses and
    acknowledgements are left out, with the sections below them.

    Returns: the sections, and the labels in brackets of the list of references.
    """
    builder = SectionBuilder()
    builder.is_skipping = True
    labels: set[str] = set()
    lines = _without_pages(text)
    dropped, in_references, after_blank = "", False, True
    for place, line in enumerate(lines):
        if not line.strip():
            builder.paragraph(one_line(builder.take_lines()))
            after_blank = True
            continue
        below = lines[place + 1] if place + 1 < len(lines) else ""
        heading = _heading(line) if after_blank and (not line.startswith(" ") or _DRAWING.fullmatch(below)) else None
        if heading is None:
            after_blank = False
            label = _LABEL.match(line) if in_references else None
            labels |= {label[1]} if label else set()
            if not _DRAWING.fullmatch(line):
                builder.line(line.strip())
            continue
        builder.paragraph(one_line(builder.take_lines()))
        is_below = builder.is_skipping and dropped != "" and heading.number.startswith(f"{dropped}.")
        in_references = bool(_REFERENCES.search(heading.title)) or (in_references and is_below)
        if _DROPPED.match(heading.title):
            builder.is_skipping, dropped = True, heading.number
        elif not is_below:
            builder.open(heading.name)
            dropped = ""
    builder.paragraph(one_line(builder.take_lines()))
    return builder.sections(1), frozenset(labels)


def _without_pages(text: str) -> list[str]:
    """Join the pages without running heads and feet; paragraphs that a page break cut are joined."""
    lines: list[str] = []
    for number, page in enumerate(text.replace("\r\n", "\n").split("\f")):
        body = _stripped(page.split("\n"), has_head=number > 0)
        if lines and body:
            before, after = lines[-1].strip(), body[0].strip()
            is_cut = before and not _ENDS_PARAGRAPH.search(before) and after[:1].islower()
            lines += [] if is_cut else [""]
        lines += body
    return lines


def _stripped(lines: list[str], *, has_head: bool) -> list[str]:
    body = _trimmed(lines)
    if body and _FOOT.match(body[-1]):
        body = _trimmed(body[:-1])
    if has_head and body and _HEAD.match(body[0]):
        body = _trimmed(body[1:])
    return body


def _trimmed(lines: list[str]) -> list[str]:
    """The lines without blank ones at both ends."""
    filled = [number for number, line in enumerate(lines) if line.strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def _heading(line: str) -> _Heading | None:
    text = line.strip()
    indent = len(line.rstrip()) - len(text)
    found = _HEADING.match(text)
    if found and indent <= _MAX_INDENT and len(text) <= _MAX_WIDTH and not _NO_HEADING.search(text):
        number, title = found[1], found[2]
        if _is_title(number, title, is_indented=indent > 0):
            return _Heading(f"{number} {title}", number.rstrip(":"), title)
    if indent <= _MAX_INDENT and _KNOWN.match(text):
        return _Heading(text.rstrip(":"), "", text)
    is_outer = indent == 0 or (indent <= _MAX_INDENT and text.lower().endswith("contents"))
    if is_outer and _DROPPED.match(text) and len(text.split()) <= _MAX_WORDS and not text.endswith("."):
        return _Heading(text, "", text)
    return None


def _is_title(number: str, title: str, *, is_indented: bool) -> bool:
    """Whether numbered words are a heading rather than an item of a list."""
    if len(number) == 1 and number.isupper() and is_indented:
        return False
    if "." in number or title[0].isupper():
        return True
    word = title.split()[0]
    return not is_indented and (not word[0].isalpha() or any(map(str.isupper, word)))


_AND_RFC = r"(?:,\s*(?:and/or\s+|and\s+|or\s+)?|\s+(?:and/or|and|or)\s+|/)(?:RFCs?[\s-]*)?\d{3,4}\b"
_RFCS = rf"RFC(?:s?\s*|-)\d+(?:bis)?(?:{_AND_RFC})*"
_RFC = rf"https?://\S*rfc\S*|\b(?:{_RFCS}|(?:STD|BCP|IEN)(?:\s*|-)\d{{1,4}}\b)"
_BRACKET_OR_RFC = re.compile(rf"\[([^\]\[]{{1,60}})\](?=[\s.,;:)\]'\"]|$)|{_RFC}", re.IGNORECASE)
_RFC_ALONE = re.compile(_RFC, re.IGNORECASE)
_RFC_LABEL = re.compile(r"(?:RFC|STD|BCP|IEN)s?[ -]?\d", re.IGNORECASE)
_NAMED = re.compile(r"[A-Za-z]|\d{1,3}$")  # a label that is a date or the number of a standard is left alone


def mask_rfcs(text: str, labels: Collection[str]) -> str:
    """Mask RFC, STD, BCP and IEN numbers, their addresses, and references to `labels`, given without brackets."""

    def masked(found: re.Match[str]) -> str:
        inside = found[1]
        if inside is None or _RFC_LABEL.match(inside) or (inside in labels and _NAMED.match(inside)):
            return CITE
        return f"[{_RFC_ALONE.sub(CITE, inside)}]"

    return _BRACKET_OR_RFC.sub(masked, text)


_INDEX = "rfc-index.xml"
_FILE = re.compile(r"(?:^|/)rfc0*(\d+)\.(txt|json)$")
_NAMESPACE = "{https://www.rfc-editor.org/rfc-index}"


def _key(name: str) -> str:
    if name.rpartition("/")[2] == _INDEX:
        return _INDEX
    found = _FILE.search(name)
    return f"rfc{found[1]}.{found[2]}" if found else ""


def _documents(recorded: Recorded, files: Files) -> Iterator[CorpusDocument]:
    index = _read_index(files[_INDEX]) if _INDEX in files else {}
    for doc_id in recorded.ids:
        text = files.get(f"{doc_id}.txt")
        if text is None:
            continue
        page = files.get(f"{doc_id}.json")
        meta = _read_page(doc_id, page) if page is not None else index.get(doc_id)
        if meta is None:
            raise FetchError(
                f"the title of {doc_id} is in neither {doc_id}.json nor {_INDEX}; "
                f"put https://www.rfc-editor.org/{_INDEX} beside the texts"
            )
        yield _document(doc_id, decoded(text, "utf-8-sig"), meta)


def _document(doc_id: str, text: str, page: Mapping[str, object]) -> CorpusDocument:
    sections, labels = parse_rfc(text)
    meta = {
        "number": int(doc_id[3:]),
        "date": page["pub_date"],
        "status": page["pub_status"],
        "wg": page["source"],
        "keywords": page["keywords"],
        "obsoletes": page["obsoletes"],
        "updates": page["updates"],
    }
    masked = [(mask_rfcs(heading, labels), mask_rfcs(body, labels)) for heading, body in sections]
    return corpus_document(doc_id, one_line(str(page["title"])), masked, meta)


def _read_page(doc_id: str, data: bytes) -> Mapping[str, object]:
    try:
        page: Mapping[str, object] = json.loads(data)
    except ValueError as error:
        raise FetchError(f"{doc_id}.json cannot be read ({error}); delete it and download it again") from error
    return page


def _read_index(data: bytes) -> dict[str, Mapping[str, object]]:
    """The entries of the RFC Editor's index, with fields named as in its JSON pages; working groups as acronyms."""
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise FetchError(f"{_INDEX} cannot be read ({error}); delete it and download it again") from error
    return {_doc_id(_text(entry, "doc-id")): _entry(entry) for entry in root.iter(f"{_NAMESPACE}rfc-entry")}


def _entry(entry: ElementTree.Element) -> Mapping[str, object]:
    date = " ".join(_text(entry, f"date/{_NAMESPACE}{part}") for part in ("month", "year"))
    return {
        "title": _text(entry, "title"),
        "pub_date": date,
        "pub_status": _text(entry, "publication-status"),
        "source": _text(entry, "wg_acronym"),
        "keywords": _texts(entry, "keywords", "kw"),
        "obsoletes": _texts(entry, "obsoletes", "doc-id"),
        "updates": _texts(entry, "updates", "doc-id"),
    }


def _texts(entry: ElementTree.Element, name: str, part: str) -> list[str]:
    return [found.text or "" for found in entry.iterfind(f"{_NAMESPACE}{name}/{_NAMESPACE}{part}")]


def _text(entry: ElementTree.Element, name: str) -> str:
    return entry.findtext(f"{_NAMESPACE}{name}") or ""


def _doc_id(name: str) -> str:
    """The doc_id of an entry of the index: rfc20 for RFC0020."""
    digits = name.removeprefix("RFC")
    return f"rfc{int(digits)}" if digits.isdigit() else name


RECIPE = Recipe(
    "rfc",
    (
        Source(
            "RFC-all.tar.gz", "https://www.rfc-editor.org/in-notes/tar/RFC-all.tar.gz", ("RFC-all*", "doc-rfc-*.deb")
        ),
        Source(_INDEX, f"https://www.rfc-editor.org/{_INDEX}", (_INDEX,), is_optional=True),
    ),
    _key,
    lambda key: key.endswith(".txt"),
    _documents,
)
