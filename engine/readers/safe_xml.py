"""Parses untrusted XML: no entity is expanded, no DTD loaded, nothing fetched."""

from __future__ import annotations

from lxml import etree

from engine.errors import DocumentError
from engine.readers.markup import Element
from engine.text.cleaning import one_line

_MAX_TAGS = 2_000_000  # lxml needs some 200 bytes for an element, however short it is in the file


def parse_safely(data: bytes) -> Element:
    """The root element of an XML document.

    Raises:
        DocumentError: not well-formed, or over `_MAX_TAGS`.
    """
    check_tags(data.count(b"<"))
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True, huge_tree=False
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise DocumentError(f"it is not well-formed XML: {one_line(error.msg)}") from error


def check_tags(n_tags: int) -> None:
    """Refuse more start and end tags than fit into reasonable memory.

    Raises:
        DocumentError: there are more than `_MAX_TAGS`.
    """
    if n_tags > _MAX_TAGS:
        raise DocumentError(f"it has {n_tags:,} tags, the limit is {_MAX_TAGS:,}; convert it to plain text")
