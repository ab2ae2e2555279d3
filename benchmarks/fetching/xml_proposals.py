"""XEPs: XML with named entities, read into sections. The entity file is not needed: names stand for themselves."""

from __future__ import annotations

import re

from lxml import etree

from benchmarks.fetching.markdown_proposals import DROPPED
from benchmarks.fetching.parsed import ParsedDocument, one_line

MAX_CODE = 3000  # characters of an example that are kept
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
        note.text = None  # footnotes name sources; what is marked up inside them stays
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
    # Entities are replaced above and none is resolved, so that no file and no address can be named by the text.
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
            text = text[:MAX_CODE] if child.tag in ("example", "code") else text
            paragraphs += [one_line(part) for part in _BLANK.split(text) if part.strip()]


def _header(root: etree._Element, name: str) -> str:
    found = root.find(f"header/{name}")
    return one_line("".join(found.itertext())) if found is not None else ""
