"""XML: JATS, TEI and patents by the root element, and by its own structure any other: statutes, judgments, RFCs.

No entity is expanded and no DTD loaded. Tags that hold the parts of other elements are blocks; those inside of
sentences are not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from itertools import chain, pairwise, product

from lxml import etree

from engine.errors import DocumentError
from engine.readers import jats, markup, patents, tei
from engine.readers import left_out as reasons
from engine.readers.blocks import Blocks, several
from engine.readers.fields import dated, iso_date, names_of
from engine.readers.markup import Element, Grammar, HeadingMark, all_text, local_name, parse_safely, words, write
from engine.readers.records import of_bioc
from engine.text.cleaning import MAX_DOCUMENT_BYTES, joined_words, one_line, too_large
from engine.text.document import LEFT_OUT, Document, MetadataValue, Unreadable

_KNOWN = frozenset(["akomaNtoso", "rfc", "bill", "resolution", "PubmedArticle", "PubmedBookArticle"])  # roots
# Names of elements in small letters, as `_read_any` writes them.
_HEADINGS = frozenset([
    "heading", "header", "title", "name", "head", "subheading", "section-title", "titre", "titel", "articletitle",
    "ti.art", "hd", "hed", "crossheading",
])  # fmt: skip
_NUMBERS = frozenset([
    "num", "enum", "no", "number", "pnumber", "no.parag", "no.p", "label", "enbez", "nr",
    "lidnr", "li.nr", "itemtitle",
])  # fmt: skip
_BLOCKS = frozenset([
    "p", "t", "para", "paragraph", "content", "section", "subsection", "article", "clause", "chapter", "part", "block",
    "blocklist", "list", "table", "dl", "ul", "ol", "dt", "dd", "note", "authorialnote", "footnote", "level", "text",
    "np", "no.p", "chapeau", "continuation", "proviso", "abstract", "heading", "abstracttext", "blockquote",
    "figure", "aside",
])  # fmt: skip
_DIVISIONS = frozenset(["level", "section", "subsection", "part", "chapter", "article", "division", "hcontainer"])
_LOOKS = frozenset([
    "a", "b", "i", "u", "em", "strong", "bold", "italic", "sup", "sub", "span", "emphasis", "inline", "tt", "code",
    "ins", "del", "quotedtext",
])  # fmt: skip
_INLINE = _LOOKS | frozenset([
    "ref", "xref", "eref", "rref", "bcp14", "term", "def", "date", "quote", "cref", "iref", "external-xref",
    "doctitle", "docnumber", "docdate", "party", "judge", "person", "organization", "neutralcitation", "courttype",
    "shorttitle", "quoted", "remark", "entity", "location", "citation", "link", "mod", "affecteddocument",
])  # fmt: skip
_CAPTIONED = frozenset([
    "author", "person", "address", "table", "figure", "fig", "example", "equation", "procedure", "tip", "warning",
    "caution", "important", "note", "tbl",
])  # fmt: skip
_WITHOUT_LEVEL = _CAPTIONED | {"title-group", "info"}
_BREAKS = frozenset(["br", "eol", "eop", "lb", "line-break", "vspace"])
_VERBATIM = frozenset(
    ["artwork", "sourcecode", "programlisting", "pre", "screen", "literallayout", "codeblock", "lines"]
)
_ROWS = frozenset(["tr", "row", "boxhd", "sthead", "strow"])
_CELLS = frozenset(["td", "th", "entry", "cell", "ent", "ched", "stentry"])
_NOTES = frozenset(["authorialnote", "footnote", "fn", "sidenote"])
_PARAGRAPHS = frozenset(["p", "t", "para", "text", "alinea", "txt"])
_REASONS = {
    **markup.MARKED,
    **dict.fromkeys(
        ["meta", "metadata", "head", "form-metadata", "bib.instance", "coredata", "docno"], reasons.FRONT_MATTER
    ),
    **dict.fromkeys(["references", "bibliography", "ref-list", "referencelist"], reasons.REFERENCES),
    **dict.fromkeys(["toc", "tableofcontents", "table-of-contents", "index", "indexterm"], reasons.CONTENTS),
    **dict.fromkeys(["img", "graphic", "image", "svg", "imagedata"], reasons.FIGURES),
    **dict.fromkeys(["script", "style", "presentation"], ""),
    **dict.fromkeys(["page-number", "leftrunninghead", "rightrunninghead"], reasons.RUNNING_HEADS),
    "binary": reasons.OBJECTS,
}
_FRONTS = frozenset(["front", "info", "prolog"])
_OF_THE_FRONT = frozenset([
    "author", "authorgroup", "keyword", "keywordset", "area", "workgroup", "seriesinfo", "date", "pubdate", "critdates",
    "metadata", "prodinfo",
])  # fmt: skip
_LISTS = {"symbols": "ul", "numbers": "ol", "letters": "ol"}
_ATOM = {
    "description": "summary", "abstract": "summary", "encoded": "content", "creator": "author", "pubDate": "published",
    "created": "published", "date": "published", "identifier": "id", "guid": "id",
}  # fmt: skip
_OF_ROWS = {"Id": "id", "Title": "title", "Body": "description", "CreationDate": "created"}
_WHOLE = ("personname", "name", "collectivename", "orgname", "organization")
_OF_AUTHORS = _FRONTS | {
    "authors", "authorgroup", "author-group", "authorlist", "article", "entry", "articleinfo", "bookinfo",
}  # fmt: skip
_TITLES = (
    "lawtitle", "official-title", "longtitle", "doctitle", "shorttitle", "articletitle", "dc-title", "langue",
    "subject",
)  # fmt: skip
_TITLE = re.compile(  # of any other name
    "(?!sub|section|secondary|tertiary|short|alt|run|journal|series|part|chapter|j_)[a-z_]+[-_]?title$|tit(?:ulo|olo|re|el)$"
)
_PLACES_OF_TITLES = (
    "titleinfo/{*}title", "titlestmt/{*}title", "title-wrap/{*}full", "titles/{*}title", "fm/{*}bibl/{*}title",
    "datafield[@tag='245']",
)  # fmt: skip
_PAGE = re.compile(r"(?:\d+ )?(?:[A-Z][\w.]* ){0,3}\d+$")  # of print, such as "128 STAT. 12"
_DATE = re.compile("(?!access|modif|revis|expir|build|valid|end|start).*(?:dates?|dated|created|issued|published)$")
_SUP = re.compile("sup", re.IGNORECASE)
_CITING, _CITED = re.compile(r"ref$|cit|link|^a$"), re.compile(r"\W*\d{1,3}(?:\W\s?\d{1,3})*\W*")
_MARKUP = re.compile(r"</(?:p|b|i|em|strong|div|span|h[1-6]|li|su[bp]|a)>|<(?:br|p)\s*/?>", re.IGNORECASE)
_HTML = etree.HTMLParser(encoding="utf-8")
_SET = "(?:e?s|[-_]?(?:set|list|collection))"  # behind the name of what it holds
_ISSUES = ("FEDREG", "frDoc")  # of the Federal Register, which are documents
_OF_ISSUE = ("RULE", "PRORULE", "NOTICE", "PRESDOCU", "rule", "proposedRule", "notice", "presidentialDocument")
_ROOTS_WITHOUT_TEXT = frozenset(["svg", "plist", "project", "rss", "xbrl", "urlset", "manifest", "math", "stylesheet"])
_NO_BLANKS = re.compile(r"[\u0e00-\u0eff\u3040-\u9fff]")
_WORD = re.compile(r"[\u0e00-\u0eff\u3040-\u9fff]|[^\s\u0e00-\u0eff\u3040-\u9fff]+")  # a letter where no blanks are
_LEAST_WORDS = 3  # of an element with text of its own
_SHARE_OF_SENTENCES = 0.3  # of all words are in such elements
_OF_BMC = {
    "art": "art", "au": "author", "aug": "authorgroup", "snm": "surname", "fnm": "forename", "st": "heading",
    "tblbdy": "table", "r": "tr", "c": "td", "refgrp": "references", "it": "italic",
}  # fmt: skip
_READERS: dict[str, Callable[[Element, str, str], Document]] = {
    "article": jats.read_tree,
    "TEI": tei.read_tree,
    "TEI.2": tei.read_tree,
    **dict.fromkeys(patents.ROOTS, patents.read_tree),
    **dict.fromkeys(_KNOWN, lambda *arguments: _read_any(*arguments)),
    **dict.fromkeys(["alto", "PcGts"], lambda *arguments: _read_print(*arguments)),
}
_FLAT = {"opendocument": "odt", "xmlPackage": "docx"}  # modules of office documents in one file, by their namespaces
_DECLARATION = re.compile(rb"<\?xml\s")
_LISTING = "it is a sequence listing or a redirect, which is no document"  # of weekly files of patents, and of wikis
_OWN_IDS = ("number", "doi", "pmc", "pmid", "id")  # metadata that names a document of a file of several


def read(data: bytes, doc_id: str, source: str) -> Document | Iterator[Document | Unreadable]:
    """Read JATS, TEI, patents, or any XML of sentences; a file can hold several, as weekly files of patents do.

    Named characters of the formats' DTDs are read as in HTML; other entities are not
    expanded and stay in the text as names, so a file whose entities grow without end stays small.
    """
    data = patents.with_deletions(data)
    try:
        root = parse_safely(data)
    except DocumentError as error:
        starts = [match.start() for match in _DECLARATION.finditer(data)]
        if len(starts) > 1:
            pieces = (data[start:stop] for start, stop in pairwise([*starts, len(data)]))
            return _several(pieces, doc_id, source)
        if not re.search("Extra content|declaration allowed", str(error)):
            raise
        # Roots one after the other, without declarations.
        bare = re.sub(rb"<\?xml[^<>]*\?>|<!DOCTYPE[^<>\[]*+(?:\[[^\]]{0,9999}+\])?[^<>]*+>", b"", data)
        return _several(parse_safely(b"<several>" + bare + b"</several>").iterchildren("*"), doc_id, source)
    if len(data) > MAX_DOCUMENT_BYTES:
        raise too_large("file", f"{len(data):,}", MAX_DOCUMENT_BYTES)
    return read_root(root, doc_id, source)


def read_root(root: Element, doc_id: str, source: str) -> Document | Iterator[Document | Unreadable]:
    """Read the document, or the documents, of a tree."""
    if local_name(root) == "article" and next(root.iterchildren("{*}front", "{*}body", "{*}back"), None) is None:
        return _read_any(root, doc_id, source)  # of DocBook
    if local_name(root).startswith("book") and next(root.iter("{*}book-meta", "{*}book-part-meta"), None) is not None:
        return jats.read_tree(root, doc_id, source)
    if _is_known(root):
        return _READERS[local_name(root)](root, doc_id, source)
    if parts := _entries(root) or _members(root):
        read = _read_any if parts[0].find("passage") is None else _read_bioc
        readers = (partial(read, part, doc_id, source) for part in parts)
        return several(readers, doc_id, source, _OWN_IDS) if len(parts) > 1 else next(readers)()
    if found := [one for one in (root, *root.iterchildren(etree.Element)) if patents.has_bibliography(one)]:
        readers = (partial(patents.read_tree, part, doc_id, source) for part in found)
        return several(readers, doc_id, source, _OWN_IDS) if len(found) > 1 else next(readers)()
    if flat := next((module for mark, module in _FLAT.items() if mark in root.tag), ""):
        document: Document = import_module(f"engine.readers.{flat}").read_tree(root, doc_id, source)
        return document
    if local_name(root) in ("teiCorpus", "TEI"):
        _move_headers(root)
    inside = [*root.iterchildren("{*}page")] if local_name(root) == "mediawiki" else _known_inside(root)
    if not inside:
        return _read_any(root, doc_id, source)
    if len(inside) > 1:
        return _several(inside, doc_id, source)
    return _read_one(inside[0], doc_id, source)


def _known_inside(root: Element) -> list[Element]:
    known = markup.named(root, _READERS.__contains__)
    return [node for node in known if _is_known(node) and not any(map(_is_known, node.iterancestors()))]


def _entries(root: Element) -> list[Element]:
    """The documents in a collection of BioC, an answer of OAI-PMH, or a feed."""
    if local_name(root) == "collection":
        return [one for one in root.iterfind("document") if one.find("passage") is not None]
    listed = [one for one in root.iterfind("{*}*/{*}record/{*}metadata/*") if not _is_known(one)]
    rows = [one for one in root.iterchildren("row") if one.get("Body")]  # of Stack Exchange
    for row, (field, name) in product(rows, _OF_ROWS.items()):
        etree.SubElement(row, name).text = row.get(field)
    listed = listed if local_name(root) == "OAI-PMH" else rows or root.findall("channel/item")
    for one in listed:
        _name_as_atom(one)
        root.append(one)
    return listed or [
        one for one in root.iterfind("{*}entry") if next(one.iterchildren("{*}summary", "{*}content"), None) is not None
    ]


def _members(root: Element) -> list[Element]:
    """The documents in an element that is named after them: "modsCollection", "MedlineCitationSet", "items"."""
    members = list(root.iterchildren(etree.Element))
    if len(members) == 1 and local_name(root) == "xml":  # of EndNote
        return _members(members[0])
    names = {local_name(one) for one in members}
    name = names.pop().lower() if len(names) == 1 and len(members) > 1 else ""
    is_set = name and re.fullmatch(rf"{re.escape(name)}{_SET}|collection", local_name(root), re.IGNORECASE)
    if is_set:
        is_part = name in _BLOCKS | _DIVISIONS or local_name(root) in _REASONS
        return [] if is_part or not _has_sentences(root) else members
    issued = markup.named(root, _OF_ISSUE.__contains__) if local_name(root) in _ISSUES else []
    parts = issued or _with_abstracts(root)
    if len(parts) > 1:  # what stands beside them is counted in the first
        etree.SubElement(parts[0], "metadata").text = markup.text_outside(root, parts)
    return parts if len(parts) > 1 else []


def _with_abstracts(root: Element) -> list[Element]:
    """Elements of one name, each with a title and an abstract of its own, as in lists of search results."""
    abstracts = root.iter("{*}abstract", "{*}abstractText", "{*}abstracttext")
    parents = [one.getparent() for one in abstracts if one.getprevious() is not None]
    found = [one for one in parents if next(one.iterchildren("{*}title"), None) is not None]
    names = {local_name(one) for one in found}
    is_list = len(names) == 1 and names.isdisjoint(_FRONTS | _DIVISIONS - {"article"})
    return [*dict.fromkeys(found)] if is_list else []


def _name_as_atom(record: Element) -> None:
    """Name the fields of a record of Dublin Core, arXiv or RSS as Atom does."""
    record.tag = "entry"
    for field in record.iterchildren("*"):
        field.tag = _ATOM.get(local_name(field), local_name(field))
        if field.tag in ("summary", "content") and "<" in (field.text or ""):
            field.set("type", "html")
    for author in [*record.iter("author", "{*}author")]:
        name = " ".join(words(author.find(f"{{*}}{part}")) for part in ("forenames", "keyname")).strip()
        name = name or words(author)
        author.tag, author[:], author.text = "author", [], ""
        etree.SubElement(author, "name").text = name
        record.append(author)


def _move_headers(corpus: Element) -> None:
    """Move the headers of a corpus into its first text, whose reader counts their words."""
    first = next(corpus.iterdescendants("{*}TEI", "{*}TEI.2"), None)
    for header in corpus.iterfind(".//{*}teiHeader"):
        if first is not None and (header.getparent() is corpus or local_name(header.getparent()) == "teiCorpus"):
            etree.SubElement(first, "note").text = all_text(header)


def _read_bioc(document: Element, doc_id: str, source: str) -> Document:
    """Read a document of BioC by what its passages are, as its JSON is read."""

    def infons(element: Element) -> dict[str, str]:
        return {one.get("key") or "": words(one) for one in element.iterfind("infon")}

    passages = [
        {"infons": infons(one), "text": words(one.find("text")) or " ".join(map(words, one.iterfind("sentence/text")))}
        for one in document.iterfind("passage")
    ]
    record, blocks = of_bioc({"passages": passages}), Blocks()
    title = record.pop("title", "")
    blocks.add(title)
    for section in record.pop("sections"):
        blocks.add_heading(section["heading"], section["level"])
        blocks.add(section["text"])
    blocks.left_out[reasons.REFERENCES] += len(record.pop("references", ()))
    return blocks.document(doc_id, source, title, {"id": words(document.find("id")), **record})


def _read_print(root: Element, doc_id: str, source: str) -> Document:
    """Read what a program recognised on pages, in ALTO or PAGE: blocks in their order, with words that lines cut."""
    blocks = Blocks()
    for page in root.iter("{*}Page"):
        blocks.start_page()
        order = page.find("{*}ReadingOrder")
        places = {link: place for place, link in enumerate([] if order is None else _links(order))}
        parts = sorted(
            page.iter("{*}TextBlock", "{*}TextRegion"), key=lambda one: places.get(one.get("id") or one.get("ID"), 9999)
        )
        for part in parts:
            text = "\n".join(map(_line_of_print, part.iterfind("{*}TextLine")))
            text = joined_words(text or ("" if len(part.findall("{*}TextRegion")) else _unicode(part)), was_set=True)
            is_furniture = next(part.iterancestors("{*}TopMargin", "{*}BottomMargin"), None) is not None
            if is_furniture or part.get("type") in ("header", "footer", "page-number"):
                blocks.left_out[reasons.RUNNING_HEADS] += 1
            elif part.get("type") == "heading":
                blocks.add_heading(text, 1)
            else:
                blocks.add(text)
    return blocks.document(doc_id, source, next((one.title for one in blocks.headings), ""), {})


def _links(group: Element) -> Iterator[str]:
    """The regions of a group of PAGE in their order, those with an index by the index."""
    for part in sorted(group.iterchildren("*"), key=lambda one: markup.number_or(one.get("index"), 0)):
        yield from filter(None, [part.get("regionRef") or part.get("REF")])
        yield from _links(part)


def _line_of_print(line: Element) -> str:
    """A line; a word that ALTO gives whole stands where it begins."""
    shown, kind = list[str](), ""
    for part in line.iterchildren("{*}String", "{*}HYP", "{*}Word"):
        if local_name(part) == "HYP":
            shown[-1:] = [f"{word}-" if kind != "HypPart1" else word for word in shown[-1:]]
            continue
        whole = part.get("SUBS_CONTENT")
        kind = part.get("SUBS_TYPE") if whole else ""
        if kind == "HypPart1":
            shown.append(whole)
        elif kind != "HypPart2":
            shown.append(part.get("CONTENT") or _unicode(part))
    return _unicode(line) or " ".join(shown)


def _unicode(part: Element) -> str:
    """The text of a part of PAGE, of which the reading with the lowest index is the best."""
    readings = sorted(part.iterfind("{*}TextEquiv"), key=lambda one: (one.get("index") or "").zfill(9))
    return next((one.text or "" for reading in readings for one in reading.iterfind("{*}Unicode")), "")


def _is_known(node: Element) -> bool:
    if local_name(node) not in _READERS:
        return False
    return "elsevier" not in node.tag and node.find("{*}TEI") is None  # whose articles are not JATS; a corpus


def _several(roots: Iterable[Element], doc_id: str, source: str) -> Iterator[Document | Unreadable]:
    """The documents of a file; parts that are none count as left out of the document before, or of the first."""
    held, n_parts = None, 0
    found = several((partial(_read_one, root, doc_id, source) for root in roots), doc_id, source, _OWN_IDS)
    for one in chain(found, [None]):
        if isinstance(one, Unreadable) and one.reason == _LISTING:
            n_parts += 1
            continue
        if isinstance(held, Document) and n_parts:
            held = replace(held, metadata={**held.metadata, f"{LEFT_OUT}{reasons.DOCUMENTS}": n_parts})
            n_parts = 0
        if held is not None:
            yield held
        held = one
    if n_parts:
        raise DocumentError(f"{n_parts:,} of its parts are sequence listings or redirects, which are no documents")


def _read_one(root: Element | bytes, doc_id: str, source: str) -> Document:
    root = parse_safely(root) if isinstance(root, bytes) else root
    if local_name(root) == "sequence-cwu" or root.find("{*}redirect") is not None:
        raise DocumentError(_LISTING)
    read = _read_wiki if local_name(root) == "page" else _READERS.get(local_name(root), _read_any)
    return read(root, doc_id, source)


def _read_wiki(page: Element, doc_id: str, source: str) -> Document:
    """Read the last revision of a page of MediaWiki."""
    from engine.readers.html import add_wiki  # most XML holds no wiki

    *older, revision = page.findall("{*}revision") or [page]
    title, text, blocks = words(page.find("{*}title")), revision.find("{*}text"), Blocks()
    blocks.add(title)
    categories = add_wiki("" if text is None else text.text or "", blocks)
    blocks.left_out[reasons.VARIANTS] += sum(map(markup.n_words, older))
    used = [page.find("{*}title"), page.find("{*}id"), revision.find("{*}timestamp"), text, *older]
    markup.leave_outside(page, used, reasons.FRONT_MATTER, blocks)
    fields: dict[str, MetadataValue] = {"id": words(page.find("{*}id")), "keywords": [*categories]}
    changed = dated(words(revision.find("{*}timestamp"))[:10])
    return blocks.document(doc_id, source, title, {key: value for key, value in fields.items() if value} | changed)


def _read_any(root: Element, doc_id: str, source: str) -> Document:
    """Read a tree without a grammar of its own."""
    name = local_name(root)
    if name in _ROOTS_WITHOUT_TEXT or not (name in _KNOWN or _has_sentences(root)):
        raise DocumentError(
            f"it is XML with root <{name}> and holds no sentences; known are JATS, TEI, patents, Akoma "
            "Ntoso, USLM and RFC; convert it to one of these, to HTML or to JSON lines"
        )
    _make_uniform(root)
    held = [*root.iter()]  # lxml would make the objects again for each use
    title, used = _title(root)
    blocks = Blocks()
    blocks.expect(all_text(root))
    metadata = _metadata(root)
    _write_attributes(root)
    _mend_numbers(root)
    for element in root.iter("{*}content", "{*}chapeau", "{*}continuation", "{*}note"):
        if local_name(element) == "note" and element.get("type") in ("footnote", "endnote"):  # of USLM
            element.tag = "footnote"
        elif local_name(element) != "note" and (element.text or "").strip():
            element.tag = "text"
    notes = markup.named(root, _NOTES.__contains__)
    worded = set(filter(_has_words, root.iter(etree.Element) if notes else ()))
    mixed = {local_name(one) for note in notes for one in [*filter(worded.__contains__, note.iterancestors())][-1:]}
    markup.lift(root, _NOTES, _PARAGRAPHS | (mixed - _CELLS))
    markup.join_numbers(markup.named(root, _NUMBERS.__contains__), _HEADINGS)
    is_listed = name in ("PubmedArticle", "PubmedBookArticle", "MedlineCitation", "entry", "art") or (
        name == "record" and root.find("{*}titles") is not None  # of EndNote
    )
    if used is None or local_name(used).startswith("frbr") or is_listed:
        blocks.add(title)
    parts = [root]
    if is_listed:
        tags = ("abstract", "otherabstract", "summary", "content", "abs", "bdy", "bm")
        parts = [*root.iter(*(f"{{*}}{tag}" for tag in tags))]
        markup.leave_outside(root, [used, *parts], reasons.FRONT_MATTER, blocks)
    for part in parts:
        write(part, _grammar(part, used), blocks)
    del held
    return blocks.document(doc_id, source, title, metadata)


def _make_uniform(root: Element) -> None:
    """Write names in small letters, whose case differs between formats, and text with tags as elements."""
    is_of_bmc = local_name(root) == "art" and root.find("fm") is not None
    for middle in root.iterfind("fm//fnm/../mnm") if is_of_bmc else ():
        markup.join_blocks(middle.getparent().find("fnm"), middle)
    for element in [*root.iter(etree.Element)]:
        name = local_name(element)
        small = _OF_BMC.get(name, name) if is_of_bmc else "footnote" if name == "NOTE" else name.lower()  # of Formex
        if small != name:
            element.tag = element.tag[: -len(name)] + small
        text = element.text or ""
        is_html = _MARKUP.search(text) or (element.get("type") == "html" and text.strip())
        page = etree.HTML(text.encode(), _HTML) if is_html and not len(element) and name not in _VERBATIM else None
        if page is not None and (body := page.find("body")) is not None:
            for heading in body.iter("h1", "h2", "h3", "h4", "h5", "h6"):
                heading.tag = "heading"
            element.text, element[:] = body.text, body[:]


def _has_words(element: Element) -> bool:
    """Whether an element has text of its own, beside that of its parts."""
    if (text := element.text) and not text.isspace():
        return True
    return any([True for child in element if (text := child.tail) and not text.isspace()])


def _has_sentences(root: Element) -> bool:
    n_in_sentences, todo = 0, [root]
    while todo:
        element = todo.pop()
        if not _has_words(element):
            todo.extend(element.iterchildren(etree.Element))
        elif (n_of_element := _n_words(element)) >= _LEAST_WORDS:
            n_in_sentences += n_of_element
    return n_in_sentences >= _SHARE_OF_SENTENCES * _n_words(root) > 0


def _n_words(element: Element) -> int:
    text = all_text(element)
    return len(_WORD.findall(text)) if _NO_BLANKS.search(text) else len(text.split())


def _title(root: Element) -> tuple[str, Element | None]:
    """The title, and the element that holds it."""
    for name in root.iter("{*}frbralias"):
        if "title" in (name.get("name") or "").lower() and name.get("value"):
            return name.get("value"), name
    first = next(root.iterchildren(etree.Element), None)
    places = [place for place in (root.find("{*}front"), root, first) if place is not None]
    candidates = chain(
        root.iterfind("{*}preface/{*}subject"),  # of a rule, whose own title is that of its journal
        root.iterfind(".//{http://purl.org/dc/elements/1.1/}title"),
        (place.find(f"{{*}}{tag}") for place in places for tag in ("title", "head", "headline")),
        (element for tag in _TITLES for element in root.iter(f"{{*}}{tag}")),
        (one for path in _PLACES_OF_TITLES for one in root.iterfind(f".//{{*}}{path}")),
        (one for one in markup.named(root, _TITLE.match) if not _is_numbered(one)),
    )
    for element in candidates:
        if element is not None and words(element) and (local_name(element) != "head" or _has_words(element)):
            lines = [*map(words, element.iter("{*}p"))]  # of Formex
            return " ".join(lines) or words(element), element
    for name in root.iter("{*}frbrname", "{*}frbralias"):
        if name.get("value"):
            return name.get("value"), name
    return "", None


def _is_numbered(element: Element) -> bool:
    """Whether a number stands beside an element, as beside the title of a section."""
    beside = (element.getprevious(), element.getnext())
    return any(one is not None and isinstance(one.tag, str) and local_name(one) in _NUMBERS for one in beside)


def _metadata(root: Element) -> dict[str, MetadataValue]:
    """Fields that many formats name."""
    elements = markup.named(root, _DATE.match) or [*root.iter("{*}updated")]
    values = ({**one.attrib, "": markup.date_of(one) or words(one)} for one in elements)
    dates = [iso_date(one.get("date") or one.get("Date") or one.get("ISO") or one[""]) for one in values]
    date = next(filter(None, dates), "")
    authors = [
        one
        for one in root.iter("{*}author", "{*}creator")
        if (parent := one.getparent()) is not None and (parent is root or local_name(parent) in _OF_AUTHORS)
        if not any(_REASONS.get(local_name(above)) == reasons.REFERENCES for above in one.iterancestors())
    ]
    authors = authors or [*root.iterfind(".//{http://purl.org/dc/elements/1.1/}creator")]
    numbers = root.iter("{*}cite", "{*}docnumber", "{*}legis-num")
    fields: dict[str, MetadataValue] = {
        "authors": [*filter(None, map(_person, authors))],
        "number": root.get("number") or next(map(words, numbers), "") or root.get("docName"),
        "court": next((words(one) for one in root.iter("{*}court", "{*}courttype") if words(one)), ""),
        "id": words(root.find("{*}id" if local_name(root) == "entry" else "{*}docno")),
        "pmid": words(next(root.iter("{*}pmid"), None)),
        "journal": words(root.find(".//{*}journal/{*}title")),
        **dated(date),
    }
    return {field: value for field, value in fields.items() if value}


def _person(author: Element) -> str:
    """The name of an author, without the address."""
    parts = {local_name(one): words(one) for one in reversed([*author.iter(etree.Element)]) if not len(one)}
    names = names_of({**parts, **author.attrib})
    whole = filter(None, (words(author.find(f"{{*}}{tag}")) for tag in _WHOLE))
    return author.get("fullname") or next(chain(names, whole), "") or one_line(all_text(author))


def _write_attributes(root: Element) -> None:
    """Titles that RFCs of version 2 have as attributes become elements, and so do the texts of references."""
    headed = ("section", "figure", "texttable", "note", "abstract")
    for element in list(root.iter(*(f"{{*}}{tag}" for tag in headed))):
        has_labels = element.find("*[@Label]") is not None  # of its parts, in PubMed
        is_whole = local_name(element) == "abstract" and not has_labels
        title = element.get("title") or ("Abstract" if is_whole else "")
        if title and not any(local_name(child) in _HEADINGS for child in element.iterchildren(etree.Element)):
            element.insert(0, heading := _heading_of(title))
            heading.tail, element.text = element.text, ""
    for element in root.iter("{*}abstracttext"):  # of PubMed
        if element.get("Label"):
            element.addprevious(_heading_of(element.get("Label")))
    for paragraph in root.iter("{*}t"):
        if paragraph.get("hangText"):
            paragraph.text = f"{paragraph.get('hangText')} {(paragraph.text or '').lstrip()}"
    for speech in root.iter("{*}speech"):  # of parliaments
        if speech.get("speakername") and len(speech):
            speech[0].text = f"{speech.get('speakername')}: {(speech[0].text or '').lstrip()}"
    _mark_lists(root)
    references = [*root.iter("{*}xref", "{*}relref", "{*}contact", "{*}eref")]
    titled = {
        one.get("anchor") or markup.attributes(one).get("id"): one.find("{*}title")
        for one in (root.iter("{*}*") if references else ())
    }
    for reference in references:
        target, shown = reference.get("target") or reference.get("linkend"), reference.get("derivedContent")
        is_whole = shown and (reference.get("format") == "counter" or " " in shown)
        shown = (
            reference.get("fullname")
            or words(titled.get(target))
            or (shown if is_whole else f"[{shown or target or ''}]")
        )
        reference.text = reference.text if words(reference) or shown == "[]" else shown


def _mark_lists(root: Element) -> None:
    """Name the lists and tables of RFCs of version 2, and the notes of CAP, as later ones do."""
    for items in root.iter("{*}list"):
        kind = _LISTS.get(style := items.get("style") or "", "ol" if style.startswith("format") else "")
        for item in items.iterchildren("{*}t") if kind else ():
            item.tag = "li"
        items.tag = kind or items.tag
        items.set("type", style[6:].strip() if style.startswith("format") else "a" if style == "letters" else "1")
    for table in root.iter("{*}texttable"):
        cells = [*table.iterchildren("{*}ttcol", "{*}c")]
        n_columns = sum(local_name(cell) == "ttcol" for cell in cells)
        for start in range(0, len(cells), n_columns or 1):
            row = etree.Element("tr")
            cells[start].addprevious(row)
            for cell in cells[start : start + (n_columns or 1)]:
                cell.tag = "td"
                row.append(cell)
    for note in root.iter("{*}footnote"):
        if note.get("label") and len(note):
            note[0].text = f"{note.get('label')} {note[0].text or ''}"


def _mend_numbers(root: Element) -> None:
    """Give numbers of legislation.gov.uk their parentheses, headings what they head, articles of Formex subtitles."""
    for number in root.iter("{*}pnumber"):
        if local_name(number.getparent()) != "p1" and words(number).isalnum():
            number.text = f"({words(number)})"
    for heading in markup.named(root, _HEADINGS.__contains__):
        part, children = heading.getparent(), [] if heading.getparent() is None else [*heading.getparent()]
        others = [one for one in children if one is not heading]
        if part is None or part.getparent() is None or part.getnext() is None or local_name(part) not in _DIVISIONS:
            continue
        if all(local_name(one) in _NUMBERS for one in others):  # alone in its part, it heads what follows
            heading.text = " ".join(filter(None, (*map(words, others), heading.text)))
            heading.tail = part.tail
            part.getparent().replace(part, heading)
    for subtitle in [*root.iter("{*}sti.art")]:
        before = subtitle.getprevious()
        if before is not None and local_name(before) == "ti.art":
            markup.join_blocks(before, subtitle)


def _heading_of(title: str) -> Element:
    heading = etree.Element("heading")
    heading.text = title
    return heading


def _tags(root: Element) -> tuple[frozenset[str], frozenset[str]]:
    """The tags of blocks, by where they stand, and those of which one ends where the next begins, as words do."""
    inside, alone, apart = Counter[str](), Counter[str](), set[str]()
    todo = [(root, False)]
    while todo:
        element, is_inside = todo.pop()
        children = list(element.iterchildren(etree.Element))
        is_bare = not _has_words(element)
        is_inside |= not is_bare
        names = [*map(local_name, children)]
        (inside if is_inside else alone).update(names)
        if len(names) > 1 and is_bare:
            apart.update(names)
        elif len(names) > 1:
            pairs = zip(names, names[1:], children, strict=False)
            apart.update(a for a, b, child in pairs if a == b and not child.tail)
        parts = zip(children, names, strict=True)
        todo += [(child, is_inside and name not in _BLOCKS) for child, name in parts if len(child)]
    blocks = {tag for tag, n_alone in alone.items() if tag not in _INLINE and n_alone > 4 * inside[tag]} | _BLOCKS
    return frozenset(blocks), frozenset(apart - _LOOKS)


def _grammar(root: Element, title: Element | None) -> Grammar:
    """The meaning of the tags of a tree, by where they stand."""
    blocks, apart = _tags(root)
    sections = {
        local_name(heading.getparent())
        for heading in markup.named(root, _HEADINGS.__contains__)
        if heading.getparent() is not None and heading.getparent() is not root
    } - _WITHOUT_LEVEL

    @cache
    def heading(element: Element, tag: str) -> HeadingMark | None:
        if tag not in _HEADINGS or (parent := element.getparent()) is None:
            return None
        if element is title or (tag == "header" and element.find("{*}p") is not None):  # of a judgment
            return None
        is_of_text = local_name(parent) == "title-group" or any(
            local_name(other) not in _HEADINGS and local_name(other) not in _NUMBERS
            for other in parent.iterchildren(etree.Element)
            if other is not element and markup.n_words(other) > 0
        )
        is_caption = local_name(parent) in _CAPTIONED and local_name(parent.getparent()) not in _FRONTS
        if not is_of_text or markup.n_words(element) > 40 or is_caption:
            return None
        number = next((words(one) for one in parent.iterchildren(etree.Element) if local_name(one) in _NUMBERS), "")
        depth = markup.number_or((element.get("SOURCE") or "").removeprefix("HD"), 0)  # of the Federal Register
        level = sum(local_name(above) in sections for above in element.iterancestors())
        return HeadingMark(max(1, level) + depth, number)

    return Grammar(
        blocks=frozenset(blocks - {"li", "item"} - _ROWS - _CELLS - _VERBATIM),
        items=frozenset(["li", "item", "listitem"]),
        rows=_ROWS,
        cells=_CELLS,
        breaks=_BREAKS,
        verbatim=_VERBATIM,
        heading=heading,
        left_out=lambda element, tag: None if element is title else _left_out(element, tag, heading),
        is_raised=_is_raised,
        sections=frozenset(sections),
        words=apart | _NUMBERS | {"cref"},
        ordered=_ordered,
        tex=lambda element, tag: markup.tex_text(element.text or "") if tag == "tex-math" else "",
    )


def _left_out(element: Element, tag: str, heading: Callable[[Element, str], HeadingMark | None]) -> str | None:
    parent = element.getparent()
    following = element.getnext() if tag in _NUMBERS else None
    if following is not None and heading(following, local_name(following)) is not None:
        return ""
    if parent is not None and tag in _OF_THE_FRONT and local_name(parent) in _FRONTS:
        return reasons.FRONT_MATTER
    if element.get("conref") and not words(element):  # of DITA: what another file says
        return reasons.FILES
    if parent is not None and tag == "head" and markup.n_words(parent) > markup.n_words(element):
        return None
    if tag == "page" and not len(element) and (_PAGE.match(element.text or "") or (element.tail or "").strip()):
        return reasons.RUNNING_HEADS
    reason = _REASONS.get(tag)
    is_text = (reason == reasons.FIGURES and words(element)) or (tag == "style" and element.get("face"))  # of EndNote
    return None if is_text else reason


def _is_raised(element: Element, tag: str) -> bool:
    return (
        tag in ("sup", "superscript", "su", "superior", "footnotemark")
        or element.get("class") == "footnoteRef"
        or (element.get("style") or "").endswith("uslm-sgm:SU")
        or (_CITING.search(tag) is not None and _CITED.fullmatch(words(element)) is not None)
        or _SUP.match(element.get("TYPE") or element.get("rend") or "") is not None
        or (tag == "e" and element.get("T") == "51")  # of the Federal Register
    )


def _ordered(element: Element) -> str:
    """The form of the numbers of a list, of which RFCs have "%d" and "%c"."""
    if local_name(element) not in ("ol", "orderedlist"):
        return ""
    if kind := markup.form_of(element.get("numeration") or ""):  # of DocBook
        return kind
    form = re.sub(
        "%([dciCI])", lambda match: {"d": "1", "c": "a", "C": "A"}.get(match[1], match[1]), element.get("type") or "1"
    )
    return form if re.search(r"[^\w ]", form) else f"{form}."
