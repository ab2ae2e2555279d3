"""Patents: the XML of the USPTO (since 2001) and of the EPO, ST.36 (MAREC, CLEF-IP) and the EPO's OPS."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from engine.readers import left_out as reasons
from engine.readers import markup
from engine.readers.blocks import Blocks
from engine.readers.markup import Element, Grammar, HeadingMark, local_name, words, write
from engine.text.cleaning import one_line
from engine.text.document import Document, MetadataValue

_REASONS = {
    **dict.fromkeys(["chemistry", "chem", "img"], reasons.FIGURES),
    **dict.fromkeys(["CHEMICAL-US", "EMI", "image", "chemistry-us"], reasons.FIGURES),
    **dict.fromkeys(["us-claim-statement", "claim-statement", "cross-reference-to-claim-image"], ""),
}
_TEXT = {  # heading of a part, and its tag in each format
    "Abstract": ("abstract", "SDOAB", "subdoc-abstract"),
    "Description": ("description", "SDODE", "subdoc-description"),
    "Claims": ("claims", "SDOCL", "subdoc-claims"),
}
_HEADED = ("H", "heading", "CLM-heading")
_DATE = re.compile(r"(\d{4})(\d\d)(\d\d)$")
_PARTS = ("section", "class", "subclass", "main-group", "subgroup")


def read_tree(root: Element, doc_id: str, source: str) -> Document:
    """Read a patent: title, abstract, description with its headings, claims.

    Of a European patent with claims in several languages, those in the language of the
    patent are read. Metadata: `number` with country and kind, `date` (ISO) and `year` of
    publication, `inventors`, `assignees`, and the classes `ipc` and `cpc`.
    """
    bibliography = _BIBLIOGRAPHIES.get(local_name(root), _American)(root)
    title = bibliography.title()
    blocks = Blocks()
    blocks.expect(markup.all_text(root))
    blocks.add(title)
    _number_claims(root)
    for heading, tags in _TEXT.items():
        parts = [part for tag in tags for part in root.findall(f"{{*}}{tag}")]
        part = _in_language(parts, root.get("lang"))
        for other in parts:
            if other is not part:
                markup.leave_outside(other, [], reasons.TRANSLATIONS, blocks)
        if part is None or not words(part):
            continue
        blocks.add_heading(heading, 1)
        write(part, _GRAMMAR, blocks)
    _count_bibliography(root, bibliography.used(), blocks)
    return blocks.document(doc_id, source, title, _present(bibliography))


def _count_bibliography(root: Element, used: Iterable[Element], blocks: Blocks) -> None:
    """Count what is neither text nor metadata: cited documents, drawings, and the words of all other fields."""
    cited = [one for one in root.iter("{*}us-citation", "{*}citation", "{*}B561", "{*}B562", "{*}patcit", "{*}nplcit")]
    inside = ("us-citation", "citation", *(tag for tags in _TEXT.values() for tag in tags))
    cited = [one for one in cited if not any(local_name(above) in inside for above in one.iterancestors())]
    blocks.left_out[reasons.REFERENCES] += len(cited)
    drawings = [one for tag in ("drawings", "SDODR", "subdoc-drawings") for one in root.iterfind(f"{{*}}{tag}")]
    blocks.left_out[reasons.FIGURES] += sum(1 for part in drawings for _ in part.iter("{*}img"))
    text = [child for tags in _TEXT.values() for tag in tags for child in root.iterfind(f"{{*}}{tag}")]
    statements = root.iter("{*}us-claim-statement", "{*}claim-statement")
    other = [*statements, *cited, *drawings]
    for element in other:
        blocks.skip(markup.all_text(element))
    markup.leave_outside(root, [*other, *text], reasons.FRONT_MATTER, blocks, used)


def _number_claims(root: Element) -> None:
    """Write the number of a claim before its text where only an attribute has it."""
    for claim in root.iter("{*}claim"):
        number = (claim.get("num") or "").lstrip("0")
        first = claim.find("{*}claim-text")
        first = claim if first is None else first
        if number.isdecimal() and not re.match(r"\s*(?:claim\s+)?\d{1,3}\s*[.):]", words(claim), re.IGNORECASE):
            first.text = f"{number}. {(first.text or '').lstrip()}"


def _in_language(parts: list[Element], language: str | None) -> Element | None:
    """The part in a language, else the first part."""
    wanted = [(language or "").lower(), "en", "eng"]
    ranked = sorted(parts, key=lambda part: next((at for at, one in enumerate(wanted) if _language(part) == one), 9))
    return ranked[0] if ranked else None


def _language(part: Element) -> str:
    return next((value.lower() for name, value in markup.attributes(part) if name == "lang"), "")


def _left_out(element: Element) -> str | None:
    tag = local_name(element)
    if tag in _HEADED and any(local_name(above) in _TEXT["Claims"] for above in element.iterancestors()):
        return ""  # "What is claimed is:"
    return _REASONS.get(tag)


def _is_raised(element: Element) -> bool:
    return local_name(element) in ("sup", "SP", "superscript")


def _heading(element: Element) -> HeadingMark | None:
    """A heading of the description, at a level below "Description"."""
    if local_name(element) not in _HEADED:
        return None
    level = element.get("level") or element.get("lvl") or element.get("LVL") or ""
    return HeadingMark(1 + (int(level) if level.isascii() and level.isdecimal() and level != "0" else 1))


def _pin(element: Element) -> str:
    """The number of a paragraph of the description. Printed grants of the USPTO have columns and lines instead."""
    number = element.get("num") or ""
    above = [local_name(one) for one in element.iterancestors()] if local_name(element) == "p" else []
    is_printed = "description" in above and "us-patent-grant" not in above and number.isascii() and number.isdecimal()
    return f"[{int(number):04d}]" if is_printed and len(number) < 7 else ""


_BLOCKS = frozenset([
    "abstract", "claim", "claims", "claim-text", "dd", "description", "description-of-drawings", "dl", "doc-page",
    "dt", "heading", "maths", "ol", "p", "pre",
    "program-listing", "sequence-list", "table", "table-external-doc", "tables", "tbody", "tgroup", "thead",
    "title", "ul", "PARA", "CLM", "CL", "CLMSTEP", "H", "BTEXT", "paragraph", "section", "tbl", "TABLE-US", "LST",
])  # fmt: skip
_GRAMMAR = Grammar(
    blocks=_BLOCKS,
    items=frozenset(["li", "LI"]),
    rows=frozenset(["row", "ROW"]),
    cells=frozenset(["entry", "ENTRY", "cell"]),
    breaks=frozenset(["br"]),
    verbatim=frozenset(),
    heading=_heading,
    left_out=_left_out,
    is_raised=_is_raised,
    pin=_pin,
    words=frozenset(["doc-number", "country", "kind", "date", "name"]),
)


class _American:
    """The bibliographic data of a USPTO document."""

    def __init__(self, root: Element) -> None:
        self._data = next((child for child in root if local_name(child).startswith("us-bibliographic-data")), root)

    def used(self) -> list[Element]:
        """Elements that are metadata."""
        paths = ("invention-title", "publication-reference", "inventors", "assignees", "classifications-ipcr",
                 "classifications-cpc", "applicants", "us-applicants")  # fmt: skip
        return [element for path in paths for element in self._data.iter(f"{{*}}{path}")]

    def title(self) -> str:
        return words(self._data.find("{*}invention-title"))

    def number(self) -> str:
        return _joined(self._data.find("{*}publication-reference/{*}document-id"), ("country", "doc-number", "kind"))

    def date(self) -> str:
        return words(self._data.find("{*}publication-reference/{*}document-id/{*}date"))

    def inventors(self) -> list[str]:
        """The inventors; until 2012 they were listed as applicants."""
        people = self._data.findall(".//{*}inventors/{*}inventor/{*}addressbook")
        applicants = self._data.iterfind(".//{*}applicants/{*}applicant")
        people = people or [
            book
            for person in applicants
            if person.get("app-type") == "applicant-inventor" and (book := person.find("{*}addressbook")) is not None
        ]
        return [_person(book) for book in people]

    def assignees(self) -> list[str]:
        holders = self._data.findall("{*}assignees/{*}assignee")
        books = [book if (book := holder.find("{*}addressbook")) is not None else holder for holder in holders]
        return [words(book.find("{*}orgname")) or _person(book) for book in books]

    def ipc(self) -> list[str]:
        return [_class(item) for item in self._data.iterfind("{*}classifications-ipcr/{*}classification-ipcr")]

    def cpc(self) -> list[str]:
        return [_class(item) for item in self._data.iterfind("{*}classifications-cpc//{*}classification-cpc")]


class _European:
    """The bibliographic data of an EPO document, under the numbers of INID codes."""

    def __init__(self, root: Element) -> None:
        self._root = root
        data = root.find("{*}SDOBI")
        self._data = root if data is None else data

    def used(self) -> list[Element]:
        """Elements that are metadata."""
        return [
            element for tag in ("B540", "B140", "B721", "B731", "B711") for element in self._data.iter(f"{{*}}{tag}")
        ]

    def title(self) -> str:
        """The title in the language of the document; each B542 follows the code of its language."""
        names = self._data.findall(".//{*}B540/{*}B542")
        languages = [words(code).lower() for code in self._data.iterfind(".//{*}B540/{*}B541")]
        own = (name for code, name in zip(languages, names, strict=False) if code == self._root.get("lang"))
        return words(next(own, names[0] if names else None))

    def number(self) -> str:
        return "".join(self._root.get(part) or "" for part in ("country", "doc-number", "kind"))

    def date(self) -> str:
        return self._root.get("date-publ") or words(self._data.find(".//{*}B140/{*}date"))

    def inventors(self) -> list[str]:
        return [words(name) for name in self._data.iterfind(".//{*}B720/{*}B721/{*}snm")]

    def assignees(self) -> list[str]:
        """The proprietors of a patent, or the applicants of an application."""
        owners = self._data.findall(".//{*}B730/{*}B731/{*}snm") or self._data.findall(".//{*}B710/{*}B711/{*}snm")
        return [words(name) for name in owners]

    def ipc(self) -> list[str]:
        return [_symbol(words(item)) for item in self._data.iterfind(".//{*}classification-ipcr/{*}text")]

    def cpc(self) -> list[str]:
        return [_symbol(words(item)) for item in self._data.iterfind(".//{*}classification-cpc/{*}text")]


class _Standard(_American):
    """The bibliographic data of ST.36 (MAREC, CLEF-IP) and of OPS."""

    def __init__(self, root: Element) -> None:
        data = root.find(".//{*}bibliographic-data")
        self._data = root if data is None else data
        self._root = root

    def title(self) -> str:
        return words(_in_language(list(self._data.iter("{*}invention-title")), self._root.get("lang")))

    def number(self) -> str:
        own = "".join(self._root.get(part) or "" for part in ("country", "doc-number", "kind"))
        return own or _joined(self._publication(), ("country", "doc-number", "kind"))

    def date(self) -> str:
        return self._root.get("date") or words(
            next(iter(self._data.iterfind("{*}publication-reference//{*}date")), None)
        )

    def _publication(self) -> Element | None:
        return next(iter(self._data.iterfind("{*}publication-reference//{*}document-id")), None)

    def inventors(self) -> list[str]:
        return self._names("inventor")

    def assignees(self) -> list[str]:
        return self._names("assignee") or self._names("applicant")

    def _names(self, tag: str) -> list[str]:
        """The names of persons, once each, though a file can have them in several spellings."""
        people = list(self._data.iter(f"{{*}}{tag}"))
        first_format = next((one.get("data-format") or one.get("format") for one in people), None)
        people = [one for one in people if (one.get("data-format") or one.get("format")) == first_format]
        books = (next(one.iter("{*}name", "{*}last-name", "{*}orgname"), None) for one in people)
        return [
            _person(book.getparent()) if local_name(book) == "last-name" else re.sub(r" \[[A-Z]{2}\]$", "", words(book))
            for book in books
            if book is not None
        ]

    def ipc(self) -> list[str]:
        texts = self._data.iter("{*}classification-ipcr", "{*}classification-ipc", "{*}main-classification")
        return [_symbol(words(text)) for text in texts if re.match(r"\s*[A-H]\s*\d\d", words(text))]

    def cpc(self) -> list[str]:
        return [
            _symbol(words(item)) if words(item)[:3].isalnum() and item.find("{*}section") is None else _class(item)
            for item in self._data.iter("{*}classification-cpc", "{*}patent-classification")
            if item.get("scheme") in (None, "CPC") and words(item)
        ]


class _Grant2001(_European):
    """The bibliographic data of a grant of the USPTO from 2001 to 2004, under INID codes as those of the EPO."""

    def title(self) -> str:
        return words(self._data.find(".//{*}B540"))

    def number(self) -> str:
        return "".join(words(self._data.find(f".//{{*}}{tag}")) for tag in ("B190", "B110", "B130"))

    def date(self) -> str:
        return words(self._data.find(".//{*}B140"))

    def inventors(self) -> list[str]:
        return [_person_of(one) for one in self._data.iterfind(".//{*}B721")]

    def assignees(self) -> list[str]:
        return [_person_of(one) for one in self._data.iterfind(".//{*}B731")]

    def ipc(self) -> list[str]:
        return [_symbol(words(item)) for item in self._data.iter("{*}B511", "{*}B512")]

    def used(self) -> list[Element]:
        return [
            one for tag in ("B190", "B110", "B130", "B511", "B512") for one in self._data.iter(tag)
        ] + super().used()


def _person_of(party: Element) -> str:
    parts = (words(next(party.iter(f"{{*}}{tag}"), None)) for tag in ("FNM", "SNM", "ONM"))
    return one_line(" ".join(parts))


class _Application2001(_American):
    """The bibliographic data of an application to the USPTO from 2001 to 2004."""

    def __init__(self, root: Element) -> None:
        data = root.find("{*}subdoc-bibliographic-information")
        self._data = root if data is None else data

    def title(self) -> str:
        return words(self._data.find(".//{*}title-of-invention"))

    def number(self) -> str:
        own = self._data.find("{*}document-id")
        return f"US{_joined(own, ('doc-number', 'kind-code'))}" if own is not None else ""

    def date(self) -> str:
        return words(self._data.find("{*}document-id/{*}document-date"))

    def inventors(self) -> list[str]:
        return [
            one_line(f"{words(name.find('{*}given-name'))} {words(name.find('{*}family-name'))}")
            for name in self._data.iterfind(".//{*}inventors//{*}name")
        ]

    def assignees(self) -> list[str]:
        return [words(name) for name in self._data.iterfind(".//{*}assignee/{*}organization-name")]

    def ipc(self) -> list[str]:
        return [
            _symbol(words(item))
            for item in self._data.iter("{*}classification-ipc-primary", "{*}classification-ipc-secondary")
        ]

    def used(self) -> list[Element]:
        paths = ("title-of-invention", "document-id", "inventors", "assignee", "classification-ipc")
        return [element for path in paths for element in self._data.iter(f"{{*}}{path}")]


_BIBLIOGRAPHIES: dict[str, Callable[[Element], _American | _European]] = {
    "ep-patent-document": _European,
    **dict.fromkeys(["patent-document", "wo-patent-document", "exchange-document", "fulltext-document"], _Standard),
    "PATDOC": _Grant2001,
    "patent-application-publication": _Application2001,
}


def _present(data: _American | _European) -> dict[str, MetadataValue]:
    date = _DATE.match(data.date())
    fields: dict[str, MetadataValue] = {
        "number": data.number(),
        "date": "-".join(date.groups()) if date else "",
        "year": int(date.group(1)) if date else None,
        "inventors": _distinct(data.inventors()),
        "assignees": _distinct(data.assignees()),
        "ipc": _distinct(data.ipc()),
        "cpc": _distinct(data.cpc()),
    }
    return {field: value for field, value in fields.items() if value}


def _distinct(values: Iterable[str]) -> list[str | int | float | bool | None]:
    return [value for value in dict.fromkeys(values) if value]


def _person(book: Element) -> str:
    return one_line(f"{words(book.find('{*}first-name'))} {words(book.find('{*}last-name'))}")


def _joined(parent: Element | None, tags: Iterable[str]) -> str:
    return "" if parent is None else "".join(words(parent.find(f"{{*}}{tag}")) for tag in tags)


def _class(item: Element) -> str:
    """The symbol "F04B 17/03" of a classification that is given in parts."""
    section, kind, subclass, group, subgroup = (words(item.find(f"{{*}}{part}")) for part in _PARTS)
    return one_line(f"{section}{kind}{subclass} {group}/{subgroup}") if group else f"{section}{kind}{subclass}"


def _symbol(text: str) -> str:
    """The symbol of a line such as "F04B  17/03        20060101AFI20150112BHEP"."""
    match = re.match(r"([A-H]\d\d[A-Z])\s*0*(\d+\s*/\s*\d+)?", text)
    return text if match is None else f"{match.group(1)} {(match.group(2) or '').replace(' ', '')}".strip()
