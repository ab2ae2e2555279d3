"""Patents: XML of the USPTO (since 2001), the EPO and its OPS, ST.36 (MAREC, CLEF-IP), ST.96; text of 1976 to 2001.

That text of the USPTO (APS) has a field a line, under a code of four characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial

from lxml import etree

from engine.readers import left_out as reasons
from engine.readers import markup
from engine.readers.blocks import Blocks, several
from engine.readers.fields import dated, iso_date
from engine.readers.markup import Element, Grammar, HeadingMark, local_name, words, write
from engine.text.cleaning import one_line, raised
from engine.text.document import Document, MetadataValue, Unreadable

_START = re.compile(r"^PATN[ \t]*$", re.MULTILINE)
_LINE = re.compile(r"([A-Z][A-Z0-9]{2,3})(?:[ \t]+(.*))?$")
_APS_PARTS = {
    "ABST": "Abstract", "GOVT": "Government interest", "PARN": "Related applications", "BSUM": "Description",
    "DRWD": "Drawings", "DETD": "Detailed description", "CLMS": "Claims", "DCLM": "Claims",
}  # fmt: skip
_APS_TEXT = re.compile(r"PA[A-Z0-9]?$|PAR$|PAL$|PAC$|NUM$|STM$|TBL$|EQU$|FN[A-Z]?$")
_VERBATIM = ("TBL",)
_CITED = frozenset(["UREF", "FREF", "OREF"])
_APS_USED = {("PATN", "WKU"), ("PATN", "TTL"), ("PATN", "ISD"), ("INVT", "NAM"), ("ASSG", "NAM"), ("CLAS", "ICL")}
_APS_USED |= {("PATN", "APD"), *((group, code) for group in ("PRIR", "RLAP") for code in ("CNT", "APN", "APD"))}
_Field = tuple[str, str, str]  # group, code, value


def read_aps(text: str, doc_id: str, source: str) -> Document | Iterator[Document | Unreadable]:
    """Read the patent of a text, or the patents of a weekly file, each named by its number."""
    starts = [match.start() for match in _START.finditer(text)]
    pieces = [text[start:stop] for start, stop in zip(starts, [*starts[1:], len(text)], strict=True)]
    readers = (partial(_patent, piece, doc_id, source) for piece in pieces)
    return _patent(pieces[0], doc_id, source) if len(pieces) == 1 else several(readers, doc_id, source, ("number",))


def _patent(text: str, doc_id: str, source: str) -> Document:
    fields = list(_fields(text))
    values = {(group, code): value for group, code, value in reversed(fields)}
    title = one_line(values.get(("PATN", "TTL"), ""))
    blocks = Blocks()
    blocks.add(title)
    part, number = "", ""
    for group, code, value in fields:
        if group in _APS_PARTS and _APS_TEXT.match(code):
            if _APS_PARTS[group] != part:
                part = _APS_PARTS[group]
                blocks.add_heading(part, 1)
            if code == "PAC":
                blocks.add_heading(one_line(value), 2)
            elif code == "NUM":
                number = value.strip()
            elif code != "STM":
                value = _SCRIPT.sub(_script, _LETTER.sub(_letter, value))
                blocks.add(value if code in _VERBATIM else one_line(_numbered(number, value)))
                number = ""
        elif group in _CITED:
            blocks.left_out[reasons.REFERENCES] += code in ("PNO", "PAL")
        elif (group, code) not in _APS_USED:
            blocks.left_out[reasons.FRONT_MATTER] += len(value.split())
    return blocks.document(doc_id, source, title, _metadata(fields, values))


_SCRIPT = re.compile(
    r"(?P<before>\S?)\.su(?P<kind>[pb])\.(?P<text>[-+]?[\w,+-]{1,12}\b[+-]?)"
    r"(?P<blank> (?=[A-Z][a-z]?(?![a-z])|[(]|--))?"
)
_LETTER = re.compile(r"\.(?P<name>[A-Za-z]{2,8}|\+-)\.")
_SIGNS = {
    "degree": "°", "times": "×", "+-": "±", "about": "~", "ltoreq": "≤", "gtoreq": "≥", "noteq": "≠", "fwdarw": "→",
    "apprxeq": "≈", "infin": "∞", "intg": "∫", "dbd": "=", "tbd": "≡", "sctn": "§",
}  # fmt: skip


def _letter(match: re.Match[str]) -> str:
    """A Greek letter or a sign by its name between points, as typed text has them."""
    case = "SMALL" if match["name"].islower() else "CAPITAL"
    greek = f"GREEK {case} LETTER {match['name'].upper().replace('LAMBDA', 'LAMDA')}"
    with suppress(KeyError):
        return _SIGNS.get(match["name"]) or unicodedata.lookup(greek)
    return match.group()


def _script(match: re.Match[str]) -> str:
    """A script, of which ".sup." or ".sub." is the mark; a lower one ends with a blank inside of a formula."""
    is_upper = match["kind"] == "p"
    shown = raised(match["before"], match["text"]) if is_upper else match["text"]
    return f"{match['before']}{shown}{(match['blank'] or '') if is_upper else ''}"


def _numbered(number: str, text: str) -> str:
    """The text of a claim with its number, which the text itself mostly repeats."""
    return text if not number or text.lstrip().startswith(number.rstrip(".")) else f"{number} {text}"


def _fields(text: str) -> Iterator[_Field]:
    """The fields with their groups; a line that starts with blanks continues the field before."""
    group, code, lines = "", "", list[str]()
    for line in [*text.split("\n"), "END"]:
        match = _LINE.match(line.rstrip())
        if match is None:
            lines.append(line[5:] if line.startswith("     ") else line.strip())
            continue
        if code:
            yield group, code, "\n".join(lines)
        is_group = len(match[1]) == 4 and not (match[2] or "").strip()
        group, code, lines = (match[1], "", []) if is_group else (group, match[1], [match[2] or ""])


def _metadata(fields: Iterable[_Field], values: dict[tuple[str, str], str]) -> dict[str, MetadataValue]:
    number = re.match(r"([A-Z]*)0*+(\d+?)\d?$", values.get(("PATN", "WKU"), "").strip())
    date, filed = (iso_date(values.get(("PATN", code), "")) for code in ("ISD", "APD"))

    def all_of(group: str, code: str) -> list[str | int | float | bool | None]:
        return [one_line(value) for at, name, value in fields if (at, name) == (group, code)]

    offices = zip(all_of("PRIR", "CNT"), all_of("PRIR", "APN"), strict=False)
    foreign = [f"{str(country)[:2]}{application}" for country, application in offices]
    claimed = [iso_date(str(day)) for group in ("PRIR", "RLAP") for day in all_of(group, "APD")]
    found: dict[str, MetadataValue] = {
        "number": f"US{number[1]}{number[2]}" if number else "",
        **dated(date),
        "filed": filed,
        "priority": [*foreign, *(f"US{number}" for number in all_of("RLAP", "APN"))],
        "priority_date": min(filter(None, (filed, *claimed)), default=""),
        "inventors": [" ".join(reversed(str(name).split("; "))) for name in all_of("INVT", "NAM")],
        "assignees": all_of("ASSG", "NAM"),
        "ipc": all_of("CLAS", "ICL"),
    }
    return {field: value for field, value in found.items() if value}


_REASONS = {
    **markup.MARKED,
    **dict.fromkeys(["chemistry", "chem", "img"], reasons.FIGURES),
    **dict.fromkeys(["CHEMICAL-US", "EMI", "image", "chemistry-us"], reasons.FIGURES),
    **dict.fromkeys(["us-claim-statement", "claim-statement", "cross-reference-to-claim-image", "claim-number"], ""),
}
_TEXT = {  # heading of a part, and its tag in each format
    "Abstract": ("abstract", "SDOAB", "subdoc-abstract"),
    "Description": ("description", "SDODE", "subdoc-description"),
    "Claims": ("claims", "SDOCL", "subdoc-claims"),
    "Amended claims": ("amended-claims", "amended-claims-statement"),
}
_CLAIM_NUMBER = re.compile(r"\s*(?:claim\s+)?\d{1,3}\s*(?:[-\u2013]\s*\d{1,3}\s*)?[.):、．：]", re.IGNORECASE)
_CAPITAL = re.compile("(?<=[a-z])(?=[A-Z])")
_CLAIMS = frozenset([*_TEXT["Claims"], *_TEXT["Amended claims"]])
_NOTES = frozenset(["footnote", "fn"])
_HEADED = ("H", "heading", "CLM-heading")
_OF_ST96 = {  # names that are others in ST.36
    "patent-publication-identification": "document-id", "ip-office-code": "country", "publication-number": "doc-number",
    "patent-document-kind-code": "kind", "publication-date": "date",
}  # fmt: skip
ROOTS = (
    "us-patent-grant", "us-patent-application", "ep-patent-document",
    "patent-document", "wo-patent-document", "exchange-document", "fulltext-document",  # ST.36, OPS
    "PATDOC", "patent-application-publication",  # USPTO, 2001 to 2004
)  # fmt: skip
_DATA = re.compile(r"us-bibliographic-data|SDOBI$|(?:[a-z]{2}-)?bibliographic-data$|subdoc-bibliographic-information$")
_USED = (
    "invention-title", "publication-reference", "inventors", "assignees", "classifications-ipcr", "classifications-cpc",
    "applicants", "us-applicants", "B540", "B140", "B721", "B731", "B711", "B190", "B110", "B130", "B511", "B512",
    "title-of-invention", "assignee", "classification-ipc",
)  # fmt: skip
_CLAIMED = (  # earlier applications, in each format
    "priority-claims/{*}priority-claim", "us-provisional-application/{*}document-id", "parent-doc/{*}document-id",
    "foreign-priority-data", "parent/{*}document-id", "non-provisional-of-provisional/{*}document-id",
    "B680US/{*}DOC", "PDOC/{*}DOC",
)  # fmt: skip
_FILED = ("application-reference//{*}date", "domestic-filing-data/{*}filing-date", "B220//{*}date", "B220//{*}DATE")
_NUMBERS, _DATES = ("doc-number", "DNUM"), ("date", "DATE", "document-date", "filing-date")
_COUNTRIES = ("country", "CTRY", "country-code")
_IPC = ("classification-ipcr", "classification-ipc", "classification-ipc-primary", "classification-ipc-secondary",
        "main-classification", "B511", "B512")  # fmt: skip
_PERSONS = (("first-name", "last-name"), ("given-name", "family-name"), ("FNM", "SNM"))
_WHOLE_NAMES = ("name", "snm", "orgname", "organization-name", "ONM")
_PARTS = ("section", "class", "subclass", "main-group", "subgroup")


_DELETED = re.compile(rb"<\?delete-start\b[^<>]*>((?:[^<]|<(?!\?delete-))*+)<\?delete-end\b[^<>]*>")


def with_deletions(data: bytes) -> bytes:
    """XML in which the words that a reissue deletes, between two instructions, are in elements."""

    def marked(match: re.Match[bytes]) -> bytes:
        return re.sub(rb"(<[^<>]*>)|[^<>]*[^<>\s][^<>]*", lambda part: part[1] or b"<del>%b</del>" % part[0], match[1])

    return _DELETED.sub(marked, data) if b"<?delete-start" in data else data


def has_bibliography(root: Element) -> bool:
    """Whether a tree has bibliographic data and a text as patents of ST.36 have, whatever the name of its root."""
    if "ST96" in root.tag:  # of the WIPO, whose names are those of ST.36 without hyphens
        for element in root.iter(etree.Element):
            tag = _CAPITAL.sub("-", local_name(element).replace("IPO", "IpO")).lower()
            element.tag = _OF_ST96.get(tag, tag)
            element.set("num", markup.attributes(element).get("pNumber", ""))
    for body in root.findall("{*}application-body"):  # of the WIPO, around the text
        root.extend([*body])
    tags = {local_name(child) for child in root.iterchildren(etree.Element)}
    return any(map(_DATA.match, tags)) and not tags.isdisjoint(tag for names in _TEXT.values() for tag in names)


def read_tree(root: Element, doc_id: str, source: str) -> Document:
    """Read a patent: title, abstract, description with its headings, claims.

    Of a European patent with claims in several languages, those in the language of the
    patent are read. Metadata: `number` with country and kind, `date` (ISO) and `year` of
    publication, `filed`, the numbers of the applications whose `priority` is claimed, `priority_date` (the earliest
    of their dates and `filed`), `family`, `inventors`, `assignees`, and the classes `ipc` and `cpc`.
    """
    bibliography = _Bibliography(root)
    title = bibliography.title()
    blocks = Blocks()
    blocks.expect(markup.all_text(root))
    blocks.add(title)
    markup.lift(root, _NOTES, frozenset(["p", "claim-text"]))
    for reference in root.iter("{*}dependent-claim-reference"):
        etree.strip_tags(reference, "{*}claim-text")  # as "claim 1", in the middle of a sentence
    for amended in root.iterfind("{*}claims[@claim-type]"):
        if "amended" in amended.get("claim-type"):
            amended.tag = "amended-claims"
    for heading, tags in _TEXT.items():
        parts = {tag: root.findall(f"{{*}}{tag}") for tag in tags}
        read = [part for of_tag in parts.values() if words(part := _in_language(of_tag, root.get("lang")))]
        for other in (part for of_tag in parts.values() for part in of_tag if part not in read):
            markup.leave_outside(other, [], reasons.TRANSLATIONS, blocks)
        if read:
            blocks.add_heading(heading, 1)
        for part in read:
            _number_claims(part)
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


def _number_claims(part: Element) -> None:
    """Write the number of a claim before its text where only an attribute, or its place among the others, has it."""
    for claim in part.iter("{*}claim"):
        number = re.sub(r"\b0+(?=\d)", "", claim.get("num") or words(claim.find("{*}claim-number")))
        if not re.fullmatch(r"\d+(?:\s?[-\u2013]\s?\d+)?", number):  # "xx" in some collections
            number = str(1 + sum(1 for _ in claim.itersiblings(claim.tag, preceding=True)))
        first = claim.find("{*}claim-text")
        first = claim if first is None else first
        if not _CLAIM_NUMBER.match(words(first)):
            first.text = f"{number}. {(first.text or '').lstrip()}"


def _in_language(parts: list[Element], language: str | None) -> Element | None:
    """The part in a language, else the first part."""
    wanted = [(language or "").lower(), "en", "eng"]
    languages = [markup.attributes(part).get("lang", "").lower() for part in parts]
    found = next((languages.index(one) for one in wanted if one in languages), 0)
    return parts[found] if parts else None


def _left_out(element: Element, tag: str) -> str | None:
    if tag in _HEADED and any(local_name(above) in _CLAIMS for above in element.iterancestors()):
        return ""  # "What is claimed is:"
    return _REASONS.get(tag)


def _heading(element: Element, tag: str) -> HeadingMark | None:
    """A heading of the description, at a level below "Description"."""
    if tag not in _HEADED:
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
    "abstract", "amended-claims", "amended-claims-statement", "claim", "claims", "claim-text",
   "footnote", "fn", "dd", "description", "description-of-drawings", "dl", "doc-page",
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
    is_raised=lambda _, tag: tag in ("sup", "SP", "superscript"),
    pin=_pin,
    words=frozenset(["doc-number", "country", "kind", "date", "name"]),
)


class _Bibliography:
    """The bibliographic data of a patent, under the tags of any of the formats."""

    def __init__(self, root: Element) -> None:
        self.root = root
        self._data = next((one for one in root.iter(etree.Element) if _DATA.match(local_name(one))), root)

    def used(self) -> list[Element]:
        """Elements that are metadata."""
        claimed = [*self._claims(), *self._all("B310", "B320", "B330")]
        return [*self._all(*_USED), *self._data.iterchildren("{*}document-id"), *self._below(_FILED), *claimed]

    def _all(self, *tags: str) -> list[Element]:
        return list(self._data.iter(*(f"{{*}}{tag}" for tag in tags)))

    def _below(self, paths: Iterable[str]) -> list[Element]:
        return [element for path in paths for element in self._data.iterfind(f".//{{*}}{path}")]

    def title(self) -> str:
        """The title in the language of the document; each B542 follows the code of its language."""
        language = self.root.get("lang")
        if titles := self._all("invention-title", "title-of-invention"):
            return words(_in_language(titles, language))
        names, codes = self._all("B542"), [words(code).lower() for code in self._all("B541")]
        own = (name for code, name in zip(codes, names, strict=False) if code == language)
        return words(next(own, names[0])) if names else words(next(iter(self._all("B540")), None))

    def number(self) -> str:
        """The country, the number and the kind."""
        if self.root.get("doc-number"):
            return "".join(self.root.get(part) or "" for part in ("country", "doc-number", "kind"))
        published = next(self._data.iterfind("{*}publication-reference//{*}document-id"), None)
        own = self._data.find("{*}document-id")
        printed = "".join(words(next(iter(self._all(tag)), None)) for tag in ("B190", "B110", "B130"))
        number = _joined(published, ("country", "doc-number", "kind")) or printed
        country = "" if number or own is None else _joined(own, ("country",)) or "US"
        return number or f"{country}{_joined(own, ('doc-number', 'kind', 'kind-code'))}"

    def date(self) -> str:
        own = self.root.get("date-publ") or self.root.get("date")
        dates = (date for element in self._all("B140") for date in element.iter("{*}date", "{*}DATE"))
        paths = ("publication-reference//{*}date", "document-id/{*}document-date", "document-id/{*}date")
        of_id = next(filter(None, (words(one) for path in paths for one in self._data.iterfind(f"{{*}}{path}"))), "")
        return own or of_id or words(next(dates, None))

    def filed(self) -> str:
        return next(filter(None, map(words, self._below(_FILED))), "")

    def _claims(self) -> list[Element]:
        claims = self._below(_CLAIMED)
        return [one for one in claims if one.get("data-format") == claims[0].get("data-format")]

    def priorities(self) -> list[tuple[str, str]]:
        """The number and the date of each earlier application."""
        default = "US" if local_name(self.root) in ("PATDOC", "patent-application-publication") else ""
        found = [(*(_words_of(one, tags) for tags in (_COUNTRIES, _NUMBERS, _DATES)),) for one in self._claims()]
        tags = ("B330", "B310", "B320")
        found += zip(*([words(one) for one in self._all(tag)] for tag in tags), strict=False)
        known = ((country or default, "".join(number.split()), date) for country, number, date in found if number)
        return [(n if n.startswith(("PCT", country)) else f"{country}{n}", date) for country, n, date in known]

    def inventors(self) -> list[str]:
        """The inventors; until 2012 the USPTO listed them as applicants."""
        people = self._all("first-named-inventor", "inventor", "B721") or self._below(["inventors/{*}name"])
        applicants = (one for one in self._all("applicant") if one.get("app-type") == "applicant-inventor")
        return _names(people or applicants)

    def assignees(self) -> list[str]:
        """The owners of a patent, or the applicants of an application."""
        is_american = local_name(self.root).startswith("us-")
        applicants = self._all("us-applicant") if is_american else self._all("applicant", "B711")
        others = [one for one in applicants if not is_american or next(one.iter("{*}orgname"), None) is not None]
        return _names(self._all("assignee", "B731") or others)

    def ipc(self) -> list[str]:
        items = [one for one in self._all(*_IPC) if local_name(one.getparent()) != "classification-national"]
        return [symbol for item in items if re.match(r"[A-H]\s*\d\d", symbol := _symbol(item))]

    def cpc(self) -> list[str]:
        items = self._all("classification-cpc", "patent-classification")
        return [_symbol(item) for item in items if item.get("scheme") in (None, "CPC") and words(item)]


def _names(parties: Iterable[Element]) -> list[str]:
    """The names of persons and organisations, once each, though a file can have them in several spellings."""
    people = [(one.get("data-format") or one.get("format"), _name_of(one)) for one in parties]
    return [name for spelling, name in people if spelling == people[0][0]]


def _name_of(party: Element) -> str:
    def part(tag: str) -> str:
        return words(next(party.iter(f"{{*}}{tag}"), None))

    names = [f"{part(given)} {part(family)}" for given, family in _PERSONS] + [part(tag) for tag in _WHOLE_NAMES]
    return re.sub(r" \[[A-Z]{2}\]$", "", next(filter(None, map(one_line, names)), "")).rstrip(" ,")


def _present(data: _Bibliography) -> dict[str, MetadataValue]:
    date, filed, priorities = iso_date(data.date()), iso_date(data.filed()), data.priorities()
    fields: dict[str, MetadataValue] = {
        "number": data.number(),
        **dated(date),
        "filed": filed,
        "priority": _distinct(number for number, _ in priorities),
        "priority_date": min(filter(None, (filed, *(iso_date(day) for _, day in priorities))), default=""),
        "family": data.root.get("family-id") or "",  # of DOCDB: patents that claim the same applications
        "inventors": _distinct(data.inventors()),
        "assignees": _distinct(data.assignees()),
        "ipc": _distinct(data.ipc()),
        "cpc": _distinct(data.cpc()),
    }
    return {field: value for field, value in fields.items() if value}


def _words_of(parent: Element, tags: Iterable[str]) -> str:
    return words(next(parent.iter(*(f"{{*}}{tag}" for tag in tags)), None))


def _distinct(values: Iterable[str]) -> list[str | int | float | bool | None]:
    return [value for value in dict.fromkeys(values) if value]


def _joined(parent: Element | None, tags: Iterable[str]) -> str:
    return "" if parent is None else "".join(words(parent.find(f"{{*}}{tag}")) for tag in tags)


def _symbol(item: Element) -> str:
    """The symbol "F04B 17/03" of a classification in parts, or in a line as "F04B  17/03        20060101AFI"."""
    if item.find("{*}section") is not None:
        section, kind, subclass, group, subgroup = (words(item.find(f"{{*}}{part}")) for part in _PARTS)
        return one_line(f"{section}{kind}{subclass} {group}/{subgroup}") if group else f"{section}{kind}{subclass}"
    line = item.find("{*}text")
    text = words(item if line is None else line)
    match = re.match(r"([A-H]\d\d[A-Z])\s*0*(\d+\s*/\s*\d+)?", text)
    return text if match is None else f"{match.group(1)} {(match.group(2) or '').replace(' ', '')}".strip()
