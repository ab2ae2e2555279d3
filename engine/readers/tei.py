"""TEI, the XML of the humanities and of GROBID, which makes it from scientific PDFs."""

from __future__ import annotations

import re

from engine.readers import left_out as reasons
from engine.readers import markup
from engine.readers.blocks import Blocks
from engine.readers.fields import iso_date, split_names
from engine.readers.markup import Element, Grammar, HeadingMark, local_name, tex_text, words, write
from engine.text.cleaning import one_line
from engine.text.document import Document, MetadataValue

_DIVISION = re.compile(r"div[0-7]?$")
_PART = re.compile(r"div[0-7]?$|front$|body$|back$|group$")  # that a head can stand above
_REASONS = {
    **markup.MARKED,
    "teiHeader": "",
    "listBibl": reasons.REFERENCES,
    "fw": reasons.RUNNING_HEADS,
    "graphic": reasons.FIGURES,
    "media": reasons.FIGURES,
    **dict.fromkeys(["facsimile", "sourceDoc", "standOff"], reasons.FRONT_MATTER),
    "surplus": reasons.DELETED,
}
_DROPPED_DIVISIONS = {
    **dict.fromkeys(["references", "bibliography"], reasons.REFERENCES),
    **dict.fromkeys(["contents", "toc"], reasons.CONTENTS),
}
_KEYWORDS = ("{*}term", "{*}list/{*}item")
_NUMBER = re.compile(r"[0-9A-Z]+(?:\.\d+)*\.?$")
_HEADS = ("{*}text/{*}front//{*}docTitle", "{*}text/{*}body/{*}head")  # of a text whose header has no title
_CHOICES = {"choice": ("corr", "reg", "expan", "unclear"), "app": ("lem",), "rdgGrp": (), "subst": ("add",)}


def read_tree(root: Element, doc_id: str, source: str) -> Document:
    """Read the title, the abstract and the text with its divisions; not the reference list."""
    title, others = _titles(root)
    blocks = Blocks()
    blocks.expect(markup.all_text(root))
    blocks.opening = next((words(one) for path in _HEADS for one in root.iterfind(path)), "")
    blocks.add(words(title))
    for other in others:
        blocks.add(words(other))
    abstract = root.find(".//{*}profileDesc/{*}abstract")
    if words(abstract):
        if abstract.find(".//{*}head") is None:
            blocks.add_heading("Abstract", 1)
        write(abstract, _GRAMMAR, blocks)
        blocks.resume("", 1)
    texts = root.findall("{*}text") or root.findall("{*}sourceDoc/*")  # a transcription of leaves alone
    for text in texts:
        _join_labels(text)
        markup.lift(text, frozenset(["note", "figure", "table"]), frozenset(["p", "ab", "head"]))
        write(text, _GRAMMAR, blocks)
    header = root.find("{*}teiHeader")
    if header is not None:
        markup.leave_outside(header, [title, *others, abstract], reasons.FRONT_MATTER, blocks, _used(header))
    markup.leave_outside(root, [header, *texts], reasons.FRONT_MATTER, blocks)
    return blocks.document(doc_id, source, words(title), _metadata(root))


def _join_labels(text: Element) -> None:
    """Make labels in a list the numbers of their items, and leave out those that repeat the number of a figure."""
    for label in [*text.iter("{*}label")]:
        item, above = label.getnext(), label.getparent()
        if item is not None and local_name(item) == "item":
            markup.join_numbers([label])
            item.set(markup.LABEL, "")
        elif local_name(above) == "figure" and words(label) in words(above.find("{*}head")).split():
            markup.take_out(label)
            above.remove(label)


def _titles(root: Element) -> tuple[Element | None, list[Element]]:
    """The main title, and the others of the title statement."""
    titles = root.findall(".//{*}titleStmt/{*}title")
    least = ("sub", "short", "alt", "desc")
    main = min(titles, key=lambda one: (one.get("type") != "main", one.get("type") in least), default=None)
    return main, [title for title in titles if title is not main and words(title) != words(main)]


def _left_out(element: Element, tag: str) -> str | None:
    """Of passages with several readings one is text: the editor's, or else the first."""
    parent = element.getparent()
    above = "" if parent is None else local_name(parent)
    if above in _CHOICES:
        siblings = list(parent.iterchildren("*"))
        wanted = next((one for one in siblings if local_name(one) in _CHOICES[above]), siblings[0])
        return None if element is wanted else reasons.DELETED if tag == "del" else reasons.VARIANTS
    if tag in _REASONS:
        return None if tag == "del" and above == "restore" else _REASONS[tag]
    return _DROPPED_DIVISIONS.get(element.get("type") or "") if _DIVISION.match(tag) else None


def _is_raised(element: Element, tag: str) -> bool:
    if tag == "hi":
        return any(re.search(r"\bsup", element.get(name) or "") for name in ("rend", "rendition", "style"))
    is_number = re.fullmatch(r"\W*\d{1,3}\W*", words(element)) is not None
    is_mark = is_number and (element.get("target") or "").startswith("#")
    return tag == "ref" and (element.get("type") in ("bibr", "foot", "note", "noteAnchor") or is_mark)


def _tex(element: Element, tag: str) -> str:
    """A formula in TeX; GROBID has formulas as they look."""
    is_tex = tag == "formula" and "tex" in (element.get("notation") or "").lower()
    return tex_text("".join(element.itertext())) if is_tex else ""


def _heading(element: Element, tag: str) -> HeadingMark | None:
    """The head of a division. GROBID does not nest divisions: there the level comes from the number."""
    parent = element.getparent()
    if tag != "head" or parent is None or not _PART.match(local_name(parent)):
        return None
    number = element.get("n") or ""
    depth = max(1, sum(_DIVISION.match(local_name(above)) is not None for above in element.iterancestors()))
    if not _NUMBER.match(number):
        return HeadingMark(depth)
    return HeadingMark(max(depth, number.strip(".").count(".") + 1), number)


def _form_of(items: Element) -> str:
    """The form of the numbers of a list: "1.", or "a." for "ordered:loweralpha" of pandoc."""
    kind = f"{items.get('type')} {items.get('rend')}"
    return (markup.form_of(kind) or "1.") if re.search(r"\b(?:order|number)", kind) else ""


_BLOCKS = frozenset([
    "ab", "abstract", "argument", "back", "bibl", "body", "byline", "castList", "cit", "closer", "dateline", "div",
    "div0", "div1", "div2", "div3", "div4", "div5", "div6", "div7", "docTitle", "epigraph", "figDesc", "figure",
    "floatingText", "formula", "front", "head", "lg", "list", "note", "opener", "p", "salute", "signed", "sp",
    "docAuthor", "docDate", "entry", "etym", "form", "person", "place", "sense", "surface", "u", "zone",
     "docImprint", "imprimatur", "postscript", "speaker", "stage", "table", "text", "titlePage",
    "titlePart", "trailer",
])  # fmt: skip
_WORDS = frozenset([
    "addrLine", "author", "biblScope", "date", "forename", "gramGrp", "gloss", "hyph", "lbl", "label", "orgName",
    "orth", "placeName", "pos", "pron", "publisher", "pubPlace", "s", "seg", "surname", "title", "usg", "w",
])  # fmt: skip
_GRAMMAR = Grammar(
    blocks=_BLOCKS,
    items=frozenset(["item", "castItem"]),
    rows=frozenset(["row"]),
    cells=frozenset(["cell"]),
    breaks=frozenset(["lb", "pb", "cb", "gb", "line", "l"]),
    verbatim=frozenset(["eg", "egXML"]),
    heading=_heading,
    left_out=_left_out,
    is_raised=_is_raised,
    sections=frozenset(["div", *(f"div{level}" for level in range(8))]),
    words=_WORDS,
    is_inside_word=lambda element: bool(element.get("break") == "no"),
    ordered=_form_of,
    tex=_tex,
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
        "date": next((date for date in map(iso_date, dates) if len(date) > 4), ""),
        "year": years[0] if years else None,
        "keywords": [words(one) for path in _KEYWORDS for one in header.iterfind(f".//{{*}}keywords//{path}")],
        "editors": [words(editor) for editor in header.iterfind(".//{*}titleStmt/{*}editor")],
        "subtitle": "; ".join(words(title) for title in _titles(root)[1]),
    }
    return {field: value for field, value in fields.items() if value}


def _used(header: Element) -> list[Element | None]:
    """Elements of the header that are metadata."""
    paths = ("keywords", "idno[@type='DOI']", "monogr/{*}title", "titleStmt/{*}author", "titleStmt/{*}editor", "date")
    names = [name for author in header.iter("{*}author") for name in author.iter("{*}persName", "{*}orgName")]
    return [*names, *(element for path in paths for element in header.iterfind(f".//{{*}}{path}"))]


def _authors(header: Element) -> list[str]:
    authors = header.findall(".//{*}analytic/{*}author") or header.findall(".//{*}titleStmt/{*}author")
    names = [split_names(_name(author)) if not len(author) else [_name(author)] for author in authors]
    return [name for of_author in names for name in of_author if name]


def _name(author: Element) -> str:
    """The name of an author, without the affiliation and the address."""
    for tag in ("persName", "name", "orgName"):
        person = author.find(f"{{*}}{tag}")
        if person is None:
            continue
        parts = [words(name) for tag in ("forename", "nameLink", "surname") for name in person.iterfind(f"{{*}}{tag}")]
        is_mixed = any(re.search(r"[^\W\d_]", text or "") for text in (person.text, *(one.tail for one in person)))
        return words(person) if is_mixed or not any(parts) else one_line(" ".join(parts))
    parts = [author.text or ""]
    for child in author.iterchildren("*"):
        is_name = local_name(child) not in ("affiliation", "email", "idno", "address", "note", "ptr")
        parts += [words(child) if is_name else " ", child.tail or ""]
    return one_line(" ".join(parts) if len(author) else parts[0]).strip(" ,;")
