"""XML: distinguishes JATS, TEI and patents by the root element. No entity is expanded and no DTD loaded."""

from __future__ import annotations

import re
from collections.abc import Callable

from lxml import etree

from engine.errors import DocumentError
from engine.readers import jats, patents, tei
from engine.readers.markup import Element, local_name, parse_safely
from engine.text.document import Document

_READERS: dict[str, Callable[[Element, str, str], Document]] = {
    "article": jats.read_tree,
    "TEI": tei.read_tree,
    "TEI.2": tei.read_tree,
    "us-patent-grant": patents.read_tree,
    "us-patent-application": patents.read_tree,
    "ep-patent-document": patents.read_tree,
}
_DECLARATION = re.compile(rb"^<\?xml\s", re.MULTILINE)
_WRAPPERS = frozenset(["pmc-articleset", "OAI-PMH", "teiCorpus"])


def read(data: bytes, doc_id: str, source: str) -> Document:
    """Read a JATS or TEI document, or a patent of the USPTO or the EPO.

    Named characters of the formats' DTDs are read as in HTML; other entities are not
    expanded and stay in the text as names, so a file whose entities grow without end stays small.

    Raises:
        DocumentError: not well-formed, several documents in one file, another kind of XML, or no text.
    """
    root = _parse(data)
    if local_name(root) in _WRAPPERS:
        root = next((node for node in root.iter(etree.Element) if local_name(node) in _READERS), root)
    read_tree = _READERS.get(local_name(root))
    if read_tree is None:
        raise DocumentError(
            f"it is XML with root <{local_name(root)}>, neither JATS (<article>) nor TEI (<TEI>) "
            "nor a patent (<us-patent-grant>, <us-patent-application>, <ep-patent-document>); "
            "convert it to one of these, to HTML or to JSON lines"
        )
    return read_tree(root, doc_id, source)


def _parse(data: bytes) -> Element:
    try:
        return parse_safely(data)
    except DocumentError:
        n_documents = len(_DECLARATION.findall(data))
        if n_documents < 2:
            raise
        raise DocumentError(
            f"it holds {n_documents:,} XML documents, as bulk files of patents do; "
            "split it before each line that starts with <?xml"
        ) from None
