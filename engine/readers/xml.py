"""XML: tells JATS from TEI by the root element. No entity is expanded and no DTD loaded."""

from __future__ import annotations

from collections.abc import Callable

from lxml import etree

from engine.document import Document
from engine.errors import DocumentError
from engine.readers import jats, tei
from engine.readers.assembly import one_line
from engine.readers.markup import Element, local_name

_READERS: dict[str, Callable[[Element, str, str], Document]] = {
    "article": jats.read_tree,
    "TEI": tei.read_tree,
    "TEI.2": tei.read_tree,
}
_WRAPPERS = frozenset(["pmc-articleset", "OAI-PMH", "teiCorpus"])


def read(data: bytes, doc_id: str, source: str) -> Document:
    """Read a JATS or TEI document.

    Named characters of the formats' DTDs are read as in HTML; other entities are left
    out, so a file whose entities grow without end stays as small as it is.

    Raises:
        DocumentError: not well-formed, another kind of XML, or no text.
    """
    root = _parse(data)
    if local_name(root) in _WRAPPERS:
        root = next((node for node in root.iter(etree.Element) if local_name(node) in _READERS), root)
    read_tree = _READERS.get(local_name(root))
    if read_tree is None:
        raise DocumentError(
            f"it is XML with root <{local_name(root)}>, neither JATS (<article>) nor TEI (<TEI>); "
            "convert it to one of these, to HTML or to JSON lines"
        )
    return read_tree(root, doc_id, source)


def _parse(data: bytes) -> Element:
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True, huge_tree=False
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise DocumentError(f"it is not well-formed XML: {one_line(error.msg)}") from error
