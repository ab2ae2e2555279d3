"""XML: distinguishes JATS, TEI, patents and others by the root element. No entity is expanded and no DTD loaded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, pairwise

from lxml import etree

from engine.errors import DocumentError
from engine.readers import jats, patents, tei, xml_text
from engine.readers.markup import Element, local_name, parse_safely
from engine.text.cleaning import MAX_DOCUMENT_BYTES, too_large
from engine.text.document import Document, Unreadable

_READERS: dict[str, Callable[[Element, str, str], Document]] = {
    "article": jats.read_tree,
    "TEI": tei.read_tree,
    "TEI.2": tei.read_tree,
    "us-patent-grant": patents.read_tree,
    "us-patent-application": patents.read_tree,
    "ep-patent-document": patents.read_tree,
    **dict.fromkeys(
        ["patent-document", "wo-patent-document", "exchange-document", "fulltext-document"], patents.read_tree
    ),  # ST.36, OPS
    **dict.fromkeys(["PATDOC", "patent-application-publication"], patents.read_tree),  # USPTO, 2001 to 2004
    **dict.fromkeys(xml_text.KNOWN, xml_text.read_tree),
}
_DECLARATION = re.compile(rb"<\?xml\s")
_OWN_IDS = ("number", "doi", "pmc", "pmid")  # metadata that names a document of a file of several


def read(data: bytes, doc_id: str, source: str) -> Document | Iterator[Document | Unreadable]:
    """Read JATS, TEI, patents, or any XML of sentences; a file can hold several, as weekly files of patents do.

    Named characters of the formats' DTDs are read as in HTML; other entities are not
    expanded and stay in the text as names, so a file whose entities grow without end stays small.
    """
    try:
        root = parse_safely(data)
    except DocumentError as error:
        starts = [match.start() for match in _DECLARATION.finditer(data)]
        if len(starts) < 2 and re.search(
            "Extra content|declaration allowed", str(error)
        ):  # roots one after the other, without declarations
            bare = re.sub(rb"<\?xml[^>]*\?>|<!DOCTYPE[^>\[]*(?:\[[^\]]*\])?[^>]*>", b"", data)
            return _several(parse_safely(b"<several>" + bare + b"</several>").iterchildren("*"), doc_id, source)
        if len(starts) < 2:
            raise
        pieces = (data[start:stop] for start, stop in pairwise([*starts, len(data)]))
        return _several(map(parse_safely, pieces), doc_id, source)
    if len(data) > MAX_DOCUMENT_BYTES:
        raise too_large("file", f"{len(data):,}", MAX_DOCUMENT_BYTES)
    if local_name(root) == "article" and next(root.iterchildren("{*}front", "{*}body", "{*}back"), None) is None:
        return xml_text.read_tree(root, doc_id, source)  # of DocBook
    if local_name(root) in _READERS:
        return _READERS[local_name(root)](root, doc_id, source)
    inside = [node for node in root.iter(etree.Element) if local_name(node) in _READERS and not _is_nested(node)]
    if not inside:
        return xml_text.read_tree(root, doc_id, source)
    return (
        _several(iter(inside), doc_id, source)
        if len(inside) > 1
        else _READERS[local_name(inside[0])](inside[0], doc_id, source)
    )


def _is_nested(node: Element) -> bool:
    return any(local_name(above) in _READERS for above in node.iterancestors())


def _several(roots: Iterator[Element], doc_id: str, source: str) -> Iterator[Document | Unreadable]:
    """The documents of a file, named by their own numbers, or else by their places."""
    seen: set[str] = set()
    for number in count(1):
        try:
            root = next(roots, None)
            if root is None:
                return
            if local_name(root) not in _READERS:
                raise DocumentError(f"it is XML with root <{local_name(root)}>, which is no document")
            document = _READERS[local_name(root)](root, doc_id, source)
        except DocumentError as error:
            yield Unreadable(f"{source}:{number}", str(error), f"{doc_id}#{number}")
            continue
        own = next((str(value) for field in _OWN_IDS if (value := document.metadata.get(field))), "")
        name = own if own and own not in seen else str(number)
        seen.add(name)
        yield replace(document, doc_id=f"{doc_id}#{name}")
