"""TEI, the XML of the humanities and of GROBID, which makes it from scientific PDFs."""

from __future__ import annotations

import re

from engine.readers.left_out import FIGURES, REFERENCES, elements_left_out
from engine.readers.markup import Element, Grammar, HeadingMark, local_name, words, write
from engine.text.blocks import Blocks
from engine.text.cleaning import one_line
from engine.text.document import Document, MetadataValue, assemble

_DIVISION = re.compile(r"div[0-7]?$")
_DROPPED = frozenset([
    "listBibl", "teiHeader", "fw", "orig", "sic", "graphic", "facsimile", "sourceDoc", "standOff",
])  # fmt: skip
_DROPPED_DIVISIONS = frozenset(["references", "bibliography", "contents", "toc"])
_NUMBER = re.compile(r"[0-9A-Z]+(?:\.\d+)*\.?$")


def read_tree(root: Element, doc_id: str, source: str) -> Document:
    """Read the title, the abstract and the text with its divisions; not the reference list.

    Raises:
        DocumentError: no text, or too much.
    """
    title = words(root.find(".//{*}titleStmt/{*}title"))
    blocks = Blocks()
    blocks.add(title)
    abstract = root.find(".//{*}profileDesc/{*}abstract")
    if words(abstract):
        if abstract.find(".//{*}head") is None:
            blocks.add_heading("Abstract", 1)
        write(abstract, _GRAMMAR, blocks)
    text = root.find("{*}text")
    if text is not None:
        write(text, _GRAMMAR, blocks)
    lists = [*root.iter("{*}listBibl")]
    left_out = elements_left_out(lists, dict.fromkeys(["bibl", "biblStruct", "biblFull"], REFERENCES))
    left_out.update(elements_left_out([root], {"graphic": FIGURES}))
    return assemble(
        blocks.text,
        blocks.headings,
        doc_id=doc_id,
        source=source,
        title=title,
        metadata=_metadata(root),
        left_out=left_out,
    )


def _is_dropped(element: Element) -> bool:
    tag = local_name(element)
    return tag in _DROPPED or (_DIVISION.match(tag) is not None and element.get("type") in _DROPPED_DIVISIONS)


def _heading(element: Element) -> HeadingMark | None:
    """The head of a division. GROBID does not nest divisions: there the level comes from the number."""
    parent = element.getparent()
    if local_name(element) != "head" or parent is None or not _DIVISION.match(local_name(parent)):
        return None
    number = element.get("n") or ""
    depth = sum(_DIVISION.match(local_name(above)) is not None for above in element.iterancestors())
    if not _NUMBER.match(number):
        return HeadingMark(depth)
    return HeadingMark(max(depth, number.strip(".").count(".") + 1), number)


_BLOCKS = frozenset([
    "ab", "abstract", "argument", "back", "bibl", "body", "byline", "castList", "cit", "closer", "dateline", "div",
    "div0", "div1", "div2", "div3", "div4", "div5", "div6", "div7", "docTitle", "epigraph", "figDesc", "figure",
    "floatingText", "formula", "front", "head", "l", "lg", "list", "note", "opener", "p", "salute", "signed", "sp",
    "speaker", "stage", "table", "text", "titlePage", "titlePart", "trailer",
])  # fmt: skip
_GRAMMAR = Grammar(
    blocks=_BLOCKS,
    items=frozenset(["item", "castItem"]),
    rows=frozenset(["row"]),
    cells=frozenset(["cell"]),
    breaks=frozenset(["lb"]),
    verbatim=frozenset(["eg", "egXML"]),
    is_dropped=_is_dropped,
    heading=_heading,
)


def _metadata(root: Element) -> dict[str, MetadataValue]:
    header = root.find("{*}teiHeader")
    if header is None:
        return {}
    dates = [date.get("when") or words(date) for date in header.iter("{*}date")]
    years = [int(match.group()) for date in dates if (match := re.search(r"\b\d{4}\b", date))]
    fields: dict[str, MetadataValue] = {
        "authors": [*_authors(header)],
        "journal": words(header.find(".//{*}monogr/{*}title")),
        "doi": words(header.find(".//{*}idno[@type='DOI']")),
        "year": years[0] if years else None,
        "keywords": [words(term) for term in header.iterfind(".//{*}keywords//{*}term")],
    }
    return {field: value for field, value in fields.items() if value}


def _authors(header: Element) -> list[str]:
    authors = header.findall(".//{*}analytic/{*}author") or header.findall(".//{*}titleStmt/{*}author")
    names = []
    for author in authors:
        person = author.find("{*}persName")
        if person is None:
            names.append(words(author))
        else:
            forenames = " ".join(words(name) for name in person.iterfind("{*}forename"))
            names.append(one_line(f"{forenames} {words(person.find('{*}surname'))}") or words(person))
    return [name for name in names if name]
