"""JATS and BITS, the XML of journal articles and of books (PubMed Central, publishers)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lxml import etree

from engine.readers import left_out as reasons
from engine.readers import markup
from engine.readers.blocks import Blocks
from engine.readers.fields import iso_date
from engine.readers.markup import Element, Grammar, HeadingMark, form_of, local_name, rendered, tex_text, words, write
from engine.text.cleaning import one_line
from engine.text.document import KIND, Document, MetadataValue, Scalar

_REASONS = {
    **markup.MARKED,
    **dict.fromkeys(["graphic", "inline-graphic", "media"], reasons.FIGURES),
    **dict.fromkeys(["toc", "toc-group", "index", "index-group"], reasons.CONTENTS),
    **dict.fromkeys(["object-id", "permissions", "counts", "journal-meta"], reasons.FRONT_MATTER),
}
_BOOK_PARTS = frozenset([
    "book-part", "book-app", "dedication", "foreword", "front-matter-part", "preface",
])  # fmt: skip
_HEADED = _BOOK_PARTS | frozenset([
    "sec", "app", "app-group", "abstract", "trans-abstract", "ack", "boxed-text", "fn-group", "glossary", "notes",
    "bio", "ref-list",
])  # fmt: skip
_NOTATIONS = ("math", "tex-math", "textual-form", "preformat")
_PROSE = {"ref-list": ("{*}p", "{*}note"), "ref": ("{*}note",)}  # what is said beside references
_PARTS = ("front-matter", "body", "book-body", "book-part", "floats-group", "floats-wrap", "back", "book-back")
_METAS = ("{*}front/{*}article-meta", "{*}book-part-meta", "{*}book-meta", ".//{*}article-meta")
_TITLES = ("{*}title-group/{*}article-title", "{*}title-group/{*}title", "{*}book-title-group/{*}book-title",
           "{*}product/{*}source")  # fmt: skip  # that of a review is the book's
_STATEMENT = re.compile("availability|impact statement", re.IGNORECASE)
_IDS = {"doi": "doi", "pmid": "pmid", "pmc": "pmc", "pmcid": "pmc"}
_NAMES = ("name", "string-name", "collab", "institution", "on-behalf-of")


def read_tree(root: Element, doc_id: str, source: str) -> Document:
    """Read an article, a book or a chapter: title, abstracts, text, notes, appendices, responses and captions.

    Reference lists are counted.
    """
    whole = root.find("{*}book-part") if local_name(root) == "book-part-wrapper" else root
    whole, blocks = root if whole is None else whole, Blocks()
    meta = next((one for path in _METAS for one in whole.iterfind(path)), etree.Element("article-meta"))
    markup.lift(meta, frozenset(["fn"]), frozenset(["article-title", "subtitle"]))
    shown = next((one for path in _TITLES for one in meta.iterfind(path) if words(one)), None)
    group = None if shown is None else shown.getparent()
    number = "" if group is None else f"{words(group.find('{*}label'))} "  # of a chapter
    title = markup.NOTE_MARK.sub("", rendered(shown, _GRAMMAR)).removeprefix(number)
    journal = root.find(".//{*}journal-meta//{*}journal-title")
    text = markup.all_text(root)
    blocks.expect(text)
    markup.write_formulas(root, text, blocks)
    markup.join_numbers([label for note in root.iter("{*}fn") for label in note.iterfind("{*}label")])
    markup.lift(root, _FLOATS, frozenset(["p", "title"]))
    blocks.add(title)
    other_titles = ("{*}subtitle", "{*}trans-title", "{*}trans-subtitle", "{*}fn")
    others = [] if group is None else [*group.iter(*other_titles)]
    for other in others:
        blocks.add(rendered(other, _GRAMMAR))
    abstracts = [*meta.iterfind("{*}abstract"), *meta.iterfind("{*}trans-abstract")]
    for abstract in abstracts:
        if abstract.find("{*}title") is None:
            blocks.add_heading("Abstract", 1)
        write(abstract, _GRAMMAR, blocks)
    _write_parts(whole, blocks)
    notes = [*meta.iterfind("{*}author-notes"), *meta.iterfind("{*}funding-group")]
    for note in notes:
        blocks.resume("", 1)
        write(note, _GRAMMAR, blocks)
    statements = [one for one in meta.iter("{*}custom-meta") if _STATEMENT.search(words(one.find("{*}meta-name")))]
    for statement in statements:  # of PLOS and eLife
        blocks.add_heading(words(statement.find("{*}meta-name")), 1)
        write(statement.find("{*}meta-value"), _GRAMMAR, blocks)
    _write_sub_articles(root, blocks)
    written = [shown, *others, *abstracts, *notes, *statements]
    fronts = root.iterchildren("{*}front", "{*}book-meta", "{*}collection-meta")
    for front in (*fronts, *whole.iterfind("{*}book-part-meta")):
        markup.leave_outside(front, written, reasons.FRONT_MATTER, blocks, [journal, *_described(meta)])
    return blocks.document(doc_id, source, title, _metadata(whole, meta, journal) | _kinds(root))


def _write_parts(article: Element, blocks: Blocks) -> None:
    """Write the body and what follows it; its opening is no part of the abstract."""
    for tag in _PARTS:
        for part in article.iterfind(f"{{*}}{tag}"):
            blocks.resume("", 1)
            write(part, _GRAMMAR, blocks)


def _write_sub_articles(whole: Element, blocks: Blocks) -> None:
    """Write letters, responses and translations that are parts of an article, under their own titles."""
    for article in (*whole.iterfind("{*}sub-article"), *whole.iterfind("{*}response")):
        title = article.find(".//{*}title-group/{*}article-title")
        blocks.add_heading(rendered(title, _GRAMMAR) or "Response", 1)
        for stub in article.iterchildren("{*}front-stub", "{*}front"):
            abstracts = list(stub.iter("{*}abstract"))
            for abstract in abstracts:
                write(abstract, _GRAMMAR, blocks)
            markup.leave_outside(stub, [title, *abstracts], reasons.FRONT_MATTER, blocks)
        _write_parts(article, blocks)
        _write_sub_articles(article, blocks)


def _kinds(root: Element) -> dict[str, MetadataValue]:
    """Headings by the `sec-type` of their sections, under fields such as "kind.methods"."""
    found: dict[str, list[Scalar]] = {}
    for section in root.iter("{*}sec"):
        title = words(section.find("{*}title"))
        for kind in (section.get("sec-type") or "").split("|"):
            if title and kind.strip():
                found.setdefault(f"{KIND}{one_line(kind)}", []).append(title)
    return dict(found)


def _left_out(element: Element, tag: str) -> str | None:
    parent = element.getparent()
    above = "" if parent is None else local_name(parent)
    if above == "alternatives":
        return None if element is _preferred(parent) else ""
    if tag in ("ref-list", "ref"):
        return None if any(words(prose) for prose in element.iter(*_PROSE[tag])) else reasons.REFERENCES
    if above == "ref" and tag != "note":
        return "" if tag == "label" else reasons.REFERENCES
    if tag == "tex-math" and parent is not None and next(parent.iter("{*}math"), None) is not None:
        return ""
    if tag == "label" and parent is not None and _headed(parent) is not None and parent.find("{*}title") is not None:
        return ""
    if above == "book-part-meta" and tag not in ("title-group", "abstract"):
        return reasons.FRONT_MATTER
    return None if tag == "media" and element.find("{*}caption") is not None else _REASONS.get(tag)


def _preferred(alternatives: Element) -> Element:
    """The notation of a formula or a table that is read; the others say the same."""
    children = list(alternatives.iterchildren("*"))
    by_tag = {local_name(child): child for child in reversed(children)}
    with_text = next((child for child in children if markup.n_words(child)), children[0])
    known = next((by_tag[tag] for tag in _NOTATIONS if tag in by_tag), None)
    return with_text if known is None else known


def _is_raised(element: Element, tag: str) -> bool:
    if tag == "sup":
        return True
    is_mark = tag == "xref" and element.get("ref-type") in ("bibr", "fn", "table-fn", "aff", "corresp", "author-notes")
    is_mark = is_mark and re.match(r"\W*(?:\d|[a-z]{1,2}\W*$)", words(element)) is not None
    return is_mark and element.find("{*}sup") is None and local_name(element.getparent()) != "sup"


def _heading(element: Element, tag: str) -> HeadingMark | None:
    """The title of a section; the titles of figures and lists are text."""
    if tag != "title":
        return None
    parent = element.getparent()
    if parent is None or _headed(parent) is None:
        return None
    level = sum(local_name(above) in _HEADED for above in element.iterancestors())
    return HeadingMark(level, words(parent.find("{*}label")))


def _headed(parent: Element) -> Element | None:
    """The section that a title below `parent` is the heading of; None for titles of figures and lists."""
    if local_name(parent) == "title-group" and parent.getparent() is not None:  # of a part of a book
        parent = parent.getparent().getparent()
    return parent if parent is not None and local_name(parent) in _HEADED else None


_FLOATS = frozenset(["fn", "fig", "table-wrap", "boxed-text", "fig-group", "supplementary-material", "media"])
_BLOCKS = frozenset([
    "abstract", "ack", "app", "back", "body", "book-part", "boxed-text", "caption", "def-item", "disp-formula",
    "named-book-part-body", "title-group",
    "disp-formula-group", "disp-quote", "fig", "floats-group", "fn", "label", "list", "notes", "p", "sec", "speech",
    "statement", "supplementary-material", "table", "table-wrap", "table-wrap-foot", "tbody", "thead", "title",
    "alt-text", "array", "attrib", "author-notes", "award-group", "def-head", "long-desc", "term-head", "tgroup",
    "bio", "corresp", "fn-group", "front-stub", "funding-statement", "glossary", "speaker",
    "term", "verse-group",
])  # fmt: skip
_WORDS = frozenset([
    "article-title", "award-id", "collab", "comment", "conf-name", "day", "fpage", "funding-source", "given-names",
    "institution", "institution-id", "issue", "lpage", "month", "name",
    "person-group", "pub-id", "publisher-loc", "publisher-name", "source", "string-name", "surname", "title", "uri",
    "volume", "year",
])  # fmt: skip
_GRAMMAR = Grammar(
    blocks=_BLOCKS,
    items=frozenset(["list-item"]),
    rows=frozenset(["tr", "row"]),
    cells=frozenset(["td", "th", "entry"]),
    breaks=frozenset(["break", "hr", "verse-line"]),
    verbatim=frozenset(["preformat", "code"]),
    heading=_heading,
    left_out=_left_out,
    is_raised=_is_raised,
    sections=_HEADED,
    words=_WORDS,
    ordered=lambda element: form_of(kind := element.get("list-type") or "") or ("1." if kind == "order" else ""),
    tex=lambda element, tag: tex_text(element.text or "") if tag == "tex-math" else "",
)


def _described(meta: Element) -> list[Element]:
    """Elements of the article's own metadata that become fields."""
    people = [f"{{*}}contrib-group//{{*}}{tag}" for tag in _NAMES]
    tags = (f"{{*}}{tag}" for tag in ("article-id", "pub-date", "kwd-group"))
    return [element for path in (*people, *tags) for element in meta.iterfind(path)]


def _metadata(whole: Element, meta: Element, journal: Element | None) -> dict[str, MetadataValue]:
    """The fields of the article that are not empty, under the names that TEI and LaTeX also use."""
    chapters = whole.iterfind(".//{*}book-part-meta/{*}contrib-group")
    authors = _authors(meta.iterfind("{*}contrib-group")) or dict.fromkeys(_authors(chapters))
    fields: dict[str, MetadataValue] = {"authors": [*authors], "journal": words(journal)}
    for identifier in meta.iterfind("{*}article-id"):
        if (kind := _IDS.get(identifier.get("pub-id-type"))) is not None:
            fields[kind] = words(identifier)
    found = meta.iterfind("{*}pub-date")
    dates = [markup.date_of(one) or iso_date(one.get("iso-8601-date") or words(one)) for one in found]
    first = min(filter(None, dates), key=lambda date: (date[:4], -len(date), date), default="")
    fields |= {"date": first if len(first) > 4 else "", "year": int(first[:4]) if first else None}
    fields["keywords"] = [words(word) for word in meta.iterfind("{*}kwd-group//{*}kwd")]
    return {field: value for field, value in fields.items() if value}


def _authors(groups: Iterable[Element]) -> list[str]:
    people = [
        person
        for group in groups
        for person in group.iter("{*}contrib")
        if person.get("contrib-type", group.get("content-type") or "author").lower().startswith("author")
        if next(person.iterancestors("{*}contrib", "{*}collab"), None) is None
    ]
    return [name for name in map(person_name, people) if name]


def person_name(person: Element) -> str:
    """The name of a person or a group, whatever the spelling of the standard."""
    for tag in _NAMES:
        name = person.find(f"{{*}}{tag}")
        if name is None:
            others = person.findall(f"{{*}}name-alternatives/{{*}}{tag}")
            name = next((one for one in others if one.get("name-style") == "western"), others[0] if others else None)
        if name is None:
            continue
        texts = (name.text, *(part.tail for part in name))
        if tag == "string-name" and any(re.search(r"[^\W\d_]", text or "") for text in texts):
            return words(name)
        given, surname = words(name.find("{*}given-names")), words(name.find("{*}surname"))
        if surname or given:
            parts = (surname, given) if name.get("name-style") == "eastern" else (given, surname)
            return one_line(" ".join((*parts, words(name.find("{*}suffix")))))
        whole = words(name)
        for member in filter(words, name.iterchildren("{*}contrib-group", "{*}xref", "{*}fn")):
            whole = whole.replace(words(member), "")
        return one_line(whole)
    return "Anonymous" if person.find("{*}anonymous") is not None else ""
