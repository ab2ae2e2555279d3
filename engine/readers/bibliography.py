"""Bibliographies (BibTeX, RIS, PubMed, EndNote, Web of Science): an entry is a document of its abstract and notes.

Fields that are not named here keep their names, and become metadata.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from html import unescape

from engine.errors import DocumentError
from engine.readers.blocks import Blocks, several
from engine.readers.encoding import decode
from engine.readers.fields import date_of_parts, dated, iso_date
from engine.readers.latex import plain
from engine.readers.records import without_tags
from engine.text.cleaning import one_line
from engine.text.document import Document, MetadataValue, Unreadable

_NAMES = {
    **dict.fromkeys(["TI", "T1", "BTI", "%T", "title"], "title"),
    **dict.fromkeys(["AU", "A1", "FAU", "CN", "%A", "author"], "authors"),
    **dict.fromkeys(["AB", "N2", "%X", "abstract"], "abstract"),
    **dict.fromkeys(["DA", "PY", "Y1", "DP", "%D", "%8", "date", "year"], "date"),
    **dict.fromkeys(["DO", "%R", "doi"], "doi"),
    **dict.fromkeys(["KW", "MH", "OT", "%K", "keywords"], "keywords"),
    **dict.fromkeys(["T2", "JO", "JF", "JT", "%J", "%B", "journal", "journaltitle", "booktitle"], "journal"),
    **dict.fromkeys(["N1", "%Z", "note", "annote", "annotation"], "notes"),
    **dict.fromkeys(["A2", "ED", "FED", "%E", "editor"], "editors"),
    "ID": "key", "PMID": "pmid", "TY": "type", "%0": "type", "UR": "url", "PB": "publisher", "LA": "language",
}  # fmt: skip
_LISTS = ("authors", "editors", "keywords", "date")
_TEXTS = {"abstract": "Abstract", "OAB": "Abstract", "notes": "Notes"}  # with their headings
_IDS = ("key", "pmid", "doi")
_PEOPLE = ("AU", "A1", "FAU", "A2", "ED", "FED", "%A", "%E", "author", "editor")
_TAG = re.compile(r"(?:([A-Z][A-Z0-9]{1,3}) {0,2}-|(%\S))(?: +(.*)|$)")  # of RIS and PubMed, and of EndNote
_OF_WOS = {"AF": "FAU", "SO": "JO", "DE": "KW", "ID": "KW", "DI": "DO", "UT": "ID", "PT": "TY"}
_START_OF_WOS = re.compile(r"\ufeff?(?:FN [^\n]*\nVR |PT [A-Z]\n)")
_FIELD_OF_WOS = re.compile(r"^([A-Z][A-Z0-9])(?: |$)([^\n]*(?:\n   [^\n]*)*)", re.MULTILINE)
_BLOCK_TAG = re.compile(r"</?(?:p|h[1-6]|div|span|br|li|[uo]l|jats:[a-z]+)(?:\s[^<>]{0,200})?/?>", re.IGNORECASE)
_ENTRY = re.compile(r"(?:^|(?<=[})]))[ \t]*@(\w+)\s*[{(]", re.MULTILINE)
_KEY = re.compile(r"\s*([^\s,={}\"]*)\s*?(?:,|\n)")
_FIELD = re.compile(r"(?<![^\s,{}\"()])([^\s=,{}\"]{1,60})\s{0,20}=\s*")
_JOINT = re.compile(r"\s*#\s*")
_BARE = re.compile(r"[^\s,#{}\")]+")
_BRACE = re.compile(r"\\.|[{}\"]", re.DOTALL)
_OF_DOI = re.compile(r"^(?:https?://(?:dx\.)?doi\.org/|doi:)\s*", re.IGNORECASE)
_SUFFIX = re.compile(r"(?:jr|sr|i{2,3}|iv)\.?$", re.IGNORECASE)
_COMPANY = re.compile(r"(?:inc|ltd|llc|gmbh|corp|co)\.?$", re.IGNORECASE)
_SPECIAL = re.compile(r"[\\{}$~]|--")


def read(data: bytes, doc_id: str, source: str) -> Iterator[Document | Unreadable]:
    """Read the entries of a file, each named by its key or its number."""
    return read_entries(decode(data), doc_id, source)


def read_entries(text: str, doc_id: str, source: str) -> Iterator[Document | Unreadable]:
    """Read the entries of a text."""
    text = _FIELD_OF_WOS.sub(_as_ris, text) if _START_OF_WOS.match(text) else text
    entries = [*_of_bibtex(text)] or [*_of_tags(text)]
    if not entries:
        raise DocumentError("it has no entry of BibTeX, RIS, PubMed, EndNote or Web of Science")
    return several((partial(_document, entry, doc_id, source) for entry in entries), doc_id, source, _IDS)


def _as_ris(field: re.Match[str]) -> str:
    """A field of Web of Science, whose further names stand on lines of their own and other lines are cut."""
    tag, value = _OF_WOS.get(field[1], field[1]), field[2]
    lines = [value] if tag not in _PEOPLE else value.split("\n   ")
    lines = [] if tag in ("FN", "VR", "EF") else lines if tag != "KW" else value.split("; ")
    return "\n".join(f"{tag}  - {one_line(line)}" for line in lines)


_Field = tuple[str, str]  # tag, value


def _document(fields: list[_Field], doc_id: str, source: str) -> Document:
    """The document of an entry; a further value of a field keeps its tag."""
    found: dict[str, dict[str, None]] = {}
    tags = {tag for tag, _ in fields}
    for tag, value in fields:
        name = _NAMES.get(tag, tag)
        if tag in ("LID", "AID") and value.endswith("[doi]"):
            name, value = "doi", value.removesuffix("[doi]").strip()
        value = _OF_DOI.sub("", value) if name == "doi" else value
        value = _person(value) if tag in _PEOPLE else value if name in _TEXTS else one_line(value)
        values = found.get(name, {})
        if value and value not in values and tag != "ER" and not (tag == "AU" and "FAU" in tags):
            is_first = not values or name in (*_LISTS, *_TEXTS)
            found.setdefault(name if is_first else tag, {})[value] = None
    dates = [iso_date(text) for one in found.pop("date", ()) for text in (one, " ".join(reversed(one.split())))]
    title, blocks = unescape(without_tags("".join(found.pop("title", ())))), Blocks()
    blocks.add(title)
    for name, heading in _TEXTS.items():
        texts = found.pop(name, {})
        blocks.add_heading(heading if texts else "", 1)
        for text in texts:
            blocks.add(unescape(without_tags(_BLOCK_TAG.sub(" ", text))).strip())
    lists: dict[str, MetadataValue] = {name: [*values] for name, values in found.items() if name in _LISTS}
    metadata = lists | {name: "; ".join(values) for name, values in found.items() if name not in lists}
    return blocks.document(doc_id, source, title, dated(max(dates, key=len, default="")) | metadata)


def _person(name: str) -> str:
    """A name in the order in which it is spoken."""
    parts = [one_line(part) for part in name.split(",") if part.strip()]
    if named := dict(part.split("=", 1) for part in parts if "=" in part):  # of biblatex
        spoken = (named.get(key, "").strip('" ') for key in ("given", "prefix", "family", "suffix"))
        return " ".join(filter(None, spoken))
    if len(parts) < 2 or _COMPANY.match(parts[-1]):
        return ", ".join(parts)
    suffixes = [part for part in parts[1:] if _SUFFIX.match(part)]
    return " ".join([*(part for part in parts[1:] if part not in suffixes), parts[0], *suffixes])


def _of_tags(text: str) -> Iterator[list[_Field]]:
    """The entries of RIS, PubMed or EndNote, each of which begins with the tag that the first has."""
    fields: list[tuple[str, list[str]]] = []
    for line in (*text.splitlines(), None):
        match = _TAG.match(line) if line is not None else None
        if fields and (line is None or (match is not None and (match[1] or match[2]) == fields[0][0])):
            yield [(tag, "".join(lines).strip()) for tag, lines in fields]
            fields = []
        if match is not None:
            fields.append((match[1] or match[2], [match[3] or ""]))
        elif fields and line is not None:  # PubMed cuts lines, and sets them in
            fields[-1][1].append(f"{' ' if line.startswith('      ') else chr(10)}{line.strip()}")


def _of_bibtex(text: str) -> Iterator[list[_Field]]:
    strings: dict[str, str] = {}
    starts = [*_ENTRY.finditer(text)]
    for match, end in zip(starts, [*(start.start() for start in starts[1:]), len(text)], strict=False):
        kind, entry = match[1].lower(), text[match.end() : end]
        if kind == "string":
            strings |= {name.lower(): value for name, value in _values(entry, strings)}
        elif kind not in ("comment", "preamble"):
            key = _KEY.match(entry)
            values = [*_values(entry[key.end() if key else 0 :], strings)]
            yield [("ID", key[1] if key else ""), ("TY", kind), *_fields(values)]


def _fields(values: list[_Field]) -> Iterator[_Field]:
    """The fields of an entry, with names and keywords one by one, and the parts of its date together."""
    parts = [dict(values).get(name, "") for name in ("year", "month", "day")]
    if all(parts[:2]):
        yield "date", date_of_parts(*parts)
    for name, value in values:
        if name in ("author", "editor"):
            for person in _people(value):
                is_whole = person.startswith("{") and _closing(person, 1) == len(person) - 1
                if person != "others":
                    yield ("CN" if is_whole and name == "author" else name), _shown(person)
        elif name in ("keywords", "keyword"):
            yield from (("keywords", _shown(keyword.strip())) for keyword in re.split("[,;]", value))
        else:
            yield name, _shown(value)


def _shown(value: str) -> str:
    return plain(value) if _SPECIAL.search(value) else value


def _people(names: str) -> list[str]:
    """The names between words "and" that stand outside of braces."""
    found, depth = [[""]], 0
    for word in names.split():
        if word.lower() == "and" and depth == 0:
            found.append([])
        else:
            found[-1].append(word)
            depth += word.count("{") - word.count("}")
    return [" ".join(words).strip() for words in found]


def _values(entry: str, strings: Mapping[str, str]) -> Iterator[_Field]:
    """Names and values, in braces or quotes, bare, or several of these joined by "#"; and what stands between them."""
    place = 0
    while match := _FIELD.search(entry, place):
        yield "note", entry[place : match.start()].strip(" ,{}()\n")
        place, parts = match.end(), list[str]()
        while place < len(entry):
            if entry[place] in '{"':
                end = _closing(entry, place + 1, entry[place])
                parts.append(entry[place + 1 : end])
                place = end + 1
            elif bare := _BARE.match(entry, place):
                parts.append(strings.get(bare[0].lower(), bare[0]))
                place = bare.end()
            if (joint := _JOINT.match(entry, place)) is None:
                break
            place = joint.end()
        yield match[1].lower(), "".join(parts)


def _closing(text: str, start: int, opened_by: str = "{") -> int:
    """The place of the brace or the quote that ends a value, or the end of the text."""
    depth = 0
    for match in _BRACE.finditer(text, start):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}" and (depth or opened_by == "{"):
            if depth == 0:
                return match.start()
            depth -= 1
        elif match[0] == '"' and opened_by == '"' and depth == 0:
            return match.start()
    return len(text)
