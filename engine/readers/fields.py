"""Fields of records, files and court papers: names, values that filters can compare, people, parties and dockets."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from engine.errors import DocumentError
from engine.text.cleaning import one_line, regex
from engine.text.document import MetadataValue
from engine.text.headings import names_court


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a record that hold text, title and id; None is the usual name."""

    text: str | None = None
    title: str | None = None
    id: str | None = None

    def named(self, record: dict[str, Any]) -> dict[str, Any]:
        """The record with these fields under the usual names."""
        names = {"text": self.text, "title": self.title, "id": self.id}
        for usual, name in names.items():
            if name is None:
                continue
            if name not in record:
                found = ", ".join(map(str, [*record][:20])) or "none"
                raise DocumentError(f'it has no field "{name}"; its fields are {found}')
            others = ("sections",) if usual == "text" else ("_id",) if usual == "id" else ()
            record = {key: value for key, value in record.items() if key not in (name, *others)} | {usual: record[name]}
        return record


USUAL = Fields()


_BORDER = regex(r"(?<!\s)\s++(?:and|AND|und|et|y|&)\s+|(?:(?<!\s)\s*+)?,\s*+(?:and|AND|&)\s+")
_MAIL = regex(r"\s?<[^<>\s@]{1,80}@[^<>\s]{1,80}>|(?:,|(?<!\s)\s)\s?et\.? al\b\.?")
_YEARS_OF_LIFE = regex(r",? \(?(?:\d{4}\??\s?[-\u2013]\s?(?:\d{4}\??)?|[bd]\. \d{4})\)?\.?(?=;|$)")
_COMMA = regex(r"(?:(?<!\s)\s*+)?,\s*")
_SUFFIX = regex(r"(?:jr|sr|ii|iii|iv|ph\.?\s?d|m\.?d|esq|dr|prof|inc|ltd|llc|gmbh|corp)\.?$", re.IGNORECASE)
_ORGANISATION = regex(
    r"\b(?:of|the|for|agency|alliance|association|authority|bank|board|bureau|cent(?:er|re)|collaboration|college"
    r"|commission|committee|company|consortium|cooperative|corp|corporation|council|court|department|federation"
    r"|foundation|gmbh|group|hospital|inc|institute|institut|laborator(?:y|ies)|labs?|llc|ltd|ministry|network|office"
    r"|organi[sz]ation|press|project|service|society|team|trust|union|universit(?:y|ät|é))\b",
    re.IGNORECASE,
)


def typed_scalar(raw: str) -> str | int | float | bool:
    """`12` becomes an int, `1.5` a float, `true` a bool, anything else or anything in quotes a string.

    An integer with leading zeros (`007`) or over 16 digits stays a string.
    """
    if len(raw) > 1 and raw[0] == raw[-1] and raw[0] in "\"'":
        return re.sub(r"\\([\"\\])", r"\1", raw[1:-1]) if raw[0] == '"' else raw[1:-1].replace("''", "'")
    if re.fullmatch(r"-?(0|[1-9]\d{0,15})", raw):
        return int(raw)
    if re.fullmatch(r"-?\d{1,15}\.\d{1,15}", raw):
        return float(raw)
    return {"true": True, "false": False}.get(raw.lower(), raw)


def split_names(text: str) -> list[str]:
    """The names in a line; "Vane, Ann" is one name, and so is an organisation with "and" in its name."""
    text = _YEARS_OF_LIFE.sub("", " ".join(_MAIL.sub("", text).split(" ")).strip(" ,;"))
    if ";" in text or "\n" in text:
        return _distinct(re.split(r"(?:(?<!\s)\s*)?[;\n]\s*", text))
    parts = [part for border in _BORDER.split(text) for part in _commas(border)]
    if len(parts) > 1 and _ORGANISATION.search(text) and not all(" " in part for part in parts):
        return [text]
    return _distinct(parts)


_MADE_UP_NAME = regex(
    r"[A-Z]*\(0x[0-9a-f]+\)$|\(?(?:unknown|anonymous|author|(?:\w+ ){0,2}user|admin(?:istrator)?|owner|root|hp|dell"
    r"|asus|acer|lenovo|(?:pdf)?(?:la)?tex|(?:adobe|microsoft)(?: \w+)?|acrobat|word|windows|preferred customer"
    r"|python-docx|un-named)\)?$|[a-z]+\d+$",
    re.IGNORECASE,
)


def authors_of(text: str) -> list[str]:
    """The names in the property of a file, without those that a program or a machine puts there."""
    return [name for name in split_names(text) if not _MADE_UP_NAME.match(name)]


_OF_PERSON = regex("^(?:inventor|author|creator)_(?:name_)?")  # before the name of a field
_WHOLE = (
    "name", "preferred", "preferredname", "literal", "displayname", "collab", "collectivename", "author", "creator",
)  # fmt: skip
_GIVEN, _FAMILY = (
    ("given", "givenname", "first", "firstname", "forename", "initials"),
    ("family", "familyname", "last", "lastname", "surname"),
)


def names_of(value: object) -> list[str]:
    """Names of authors as a record has them: a text, a list of names, or objects with the parts of names."""
    if isinstance(value, str):
        return split_names(value)
    if isinstance(value, list):
        return _distinct([name for one in value for name in ([one] if isinstance(one, str) else names_of(one))])
    if not isinstance(value, dict):
        return []
    keys = {_OF_PERSON.sub("", str(key).lower()): one for key, one in value.items()}
    parts = {key.replace("_", "").replace("-", ""): one for key, one in keys.items()}
    whole = next((parts[key] for key in _WHOLE if parts.get(key)), None)
    if whole is not None:
        return [whole] if isinstance(whole, str) else names_of(whole)
    given, middle, family = (
        next((parts[key] for key in keys if parts.get(key)), "") for keys in (_GIVEN, ("middle",), _FAMILY)
    )
    middle = " ".join(map(str, middle)) if isinstance(middle, list) else middle
    name = " ".join(f"{given} {middle} {family} {parts.get('suffix') or ''}".split()) or str(
        parts.get("fullname") or ""
    )
    return [name] if name else [str(key) for key, one in value.items() if len(value) == 1 and isinstance(one, dict)]


def is_organisation(name: str) -> bool:
    """Whether a name is that of an organisation, by its words."""
    return "," not in name and _ORGANISATION.search(name) is not None


def _commas(text: str) -> list[str]:
    """The names between commas; "Vane, Ann" and "Vane, Jr." stay whole."""
    parts = [part for part in _COMMA.split(text) if part]
    merged: list[str] = []
    for part in parts:
        if merged and _SUFFIX.match(part):
            merged[-1] += f", {part}"
        else:
            merged.append(part)
    are_names = all(len(part.split()) > 1 for part in merged)
    return merged if are_names else [text]


def _distinct(names: list[str]) -> list[str]:
    return [name for name in dict.fromkeys(name.strip(" ,") for name in names) if name]


_Element: TypeAlias = Any  # of lxml, which is not typed
_AUTHORS_OF_PAGE = ("author", "citation_author", "citation_authors", "dc.creator", "dcterms.creator", "article:author")
_DATES_OF_PAGE = (
    "citation_date", "citation_publication_date", "dc.date", "dcterms.issued", "article:published_time", "date",
)  # fmt: skip
_META_FIELDS = {
    **dict.fromkeys(_AUTHORS_OF_PAGE, "authors"),
    **dict.fromkeys(_DATES_OF_PAGE, "date"),
    "citation_doi": "doi",
    "citation_journal_title": "journal",
}
_META_OF_THE_SITE = regex(
    r"viewport|robots|googlebot|generator|theme-color|color-scheme|referrer|rating|format-detection"
    r"|octolytics|route-|hostname|apple-|msapplication|twitter:|og:|fb:|csrf|.*verification|.*verify"
)
_VOCABULARY = regex(r"citation_|dc(?:terms)?[.:]|prism\.|eprints\.|bepress_|wkhealth_")
_OF_A_PROGRAM = regex(  # an address, a key or a switch
    r"(?:true|false|(?:en|dis)abled?|none|null)$|(?:https?:)?/|(?=\S*\d)\S{24,}$|\{", re.IGNORECASE
)


def fields_of_page(root: _Element) -> dict[str, MetadataValue]:
    """The fields that the head of a web page declares, without those of its site."""
    found: dict[str, list[str]] = {}
    for meta in root.iterfind(".//head/meta"):
        name = (meta.get("name") or meta.get("property") or "").lower()
        content = (meta.get("content") or "").strip()
        is_of_page = name in _META_FIELDS or _VOCABULARY.match(name) or not _OF_A_PROGRAM.match(content)
        if name and content and is_of_page and not _META_OF_THE_SITE.match(name):
            found.setdefault(_META_FIELDS.get(name, name), []).append(content)
    metadata: dict[str, MetadataValue] = {}
    metadata |= dated((found.pop("date", None) or [*map(str, declared(root, "datePublished")), ""])[0])
    authors = found.get("authors") or _declared_authors(root)
    authors = split_names(authors[0]) if len(authors) == 1 else authors
    if authors:
        found["authors"] = [*dict.fromkeys(name.strip(" ;,") for name in authors)]
    for field, values in found.items():
        metadata[field] = list(values) if field == "authors" or len(values) > 1 else typed_scalar(values[0])
    if language := root.get("lang"):
        metadata["language"] = language
    return metadata


def declared(root: _Element, field: str) -> list[Any]:
    """The values of a field of the objects that a page declares for search engines, in JSON."""
    found: list[Any] = []
    for script in root.iter("script"):
        if script.get("type") == "application/ld+json":
            with suppress(ValueError, RecursionError):
                value = json.loads(script.text or "")
                items = value.get("@graph", [value]) if isinstance(value, dict) else value
                found += [item[field] for item in items if isinstance(item, dict) and item.get(field)]
    return found


def _declared_authors(root: _Element) -> list[str]:
    if names := [name for author in declared(root, "author") for name in names_of(author)]:
        return [name for name in names if not name.startswith("http")]
    people = (one for one in root.iter("span") if "ltx_personname" in (one.get("class") or ""))  # of LaTeXML
    return [name for one in people for name in islice(filter(None, map(one_line, one.itertext())), 1)]


_VERSUS = regex(r"(?:\b(?:v|vs|V|VS)\.(?=\s)|(?<=[ \n])v(?=[ \n]+[A-Z]))(?P<second>[^\n]{0,200})")
_BETWEEN_PARTIES = regex(
    r"(?<=\n)[ \t]*(?:[-\u2013][ \t]*(?:against|and|v)[ \t]*[-\u2013]|versus|against)[ \t]*(?: {3}[^\n]*)?(?=\n)",
    re.IGNORECASE,
)
_BORDER_OF_CAPTION = regex(
    r"(?:(?<=\n)[ \t]{0,80}[)\]}*\u00a7:|](?:[ \t][^\n]*)?|[ \t]{2,80}[)\]}*\u00a7:|](?:[ \t]{2,}+[^\n]*)?)(?=\n)"
)
_COURT = regex(r"\b(?:court|tribunal|cite as|syllabus|opinion of|docket|case no|no\. \d\d)", re.IGNORECASE)
_ROLE = regex(
    r",\s+an?\s+(?:[a-z]+\s){0,5}(?:corporation|company|individual|partnership|association|trust)\b[^\n]*"
    r"|,?\s*\bin (?:his|her|its|their)\b[^\n]*|;[^\n]*|\s[:)\]}*|](?:\s[^\n]*|$)|\s[(\[]\d{4}\b[^\n]*"
    r"|,\s*nos?\. ?\w{0,5}\d[^\n]*|,?\^\d[^\n]*"
    r"|,?\s*\b(?:plainti(?:ff|\ufb00)s?|petitioners?|appellants?|defendants?|respondents?|appellees?|claimants?|applicants?"
    r"|et al\.?)\b[^\n]*",
    re.IGNORECASE,
)
_SOLE_PARTY = regex(
    r"^[ \t]*(?:IN RE|In re|IN THE (?:MATTER|INTEREST) OF|In the (?:[Mm]atter|[Ii]nterest) of|EX PARTE|Ex parte)\b:?"
    r"[ \t\n]{1,4}[^\n]{3,100}"
    r"(?:\n[A-Z ,.'&-]{8,80}$|\n[A-Z][^\n]{3,80},$)?",
    re.MULTILINE,
)
_NOT_A_NAME = regex(
    r"\b(?:see|cf|e\.g|id|in|at|the case of|under)\.?\s*$|\bnos?\. ?\w{0,3}\d|__|\bWL \d|^\s*(?:see|cf|e\.g)\b"
    r"|\d{2,} [A-Z]\w*\.",
    re.IGNORECASE,
)
_RIGHT_COLUMN = regex(r"(?<=\S) {3,}\S[^\n]*|^ {36,}\S[^\n]*", re.MULTILINE)
_ABBREVIATED = regex(r"(?:\b(?:Inc|Co|Corp|Ltd|Cos|Bros|Jr|Sr|Assn|Assoc|Dept|Comm|Comr)|\b\w|\W\w)\.$", re.IGNORECASE)
_HEAD_CHARS = 4_000  # of a text that can be the first page
_MAX_PARTY_CHARS, _MAX_LINE_CHARS, _LINES_OF_NAME = 100, 200, 3


def case_name(text: str) -> str:
    """The name of a case ("Alpha v. Beta"), if a text starts like an opinion; "" for another text."""
    head = _BORDER_OF_CAPTION.sub("", _BETWEEN_PARTIES.sub(" v. ", text[:_HEAD_CHARS]))
    if _VERSUS.search(head) is None:
        sole = _SOLE_PARTY.search(_RIGHT_COLUMN.sub("", head))
        return " ".join(sole.group().split()).rstrip(" ,;)") if sole and _COURT.search(head[:1_500]) else ""
    is_opinion = _COURT.search(head[:1_500]) is not None
    return _parties(_RIGHT_COLUMN.sub("", head), is_opinion) or _parties(head, is_opinion)


def _parties(head: str, is_opinion: bool) -> str:
    """The first two parties around a "v." between names; "" without such."""
    for match in _VERSUS.finditer(head):
        start = head.rfind("\n", 0, match.start()) + 1
        first, second = head[start : match.start()], match["second"].strip()
        if second[:1] in tuple(")]}*:|\u00a7") or _IS_DOCKET.match(second):  # what is behind the border, or the docket
            second = ""
        above, below = head[:start].split("\n")[:-1], head[match.end() :].lstrip().split("\n")
        first = _party(first if _without_role(first) else _name_above(above))
        second = _party(second if _without_role(second) else _name_below(below))
        is_named = is_opinion or (match.start() < 200 and "." in match.group()[:3])
        if first and second and is_named and not names_court(first):
            return f"{first} v. {second}"
    return ""


def case_fields(text: str) -> dict[str, MetadataValue]:
    """Docket number, court and date of an opinion, from its first page."""
    head = text[:_HEAD_CHARS]
    docket = _DOCKET.search(head) or _BARE_DOCKET.search(head)
    court = next((match for match in _COURT_LINE.finditer(head) if _party(match.group())), None)
    date = _DECIDED.search(head) or _DATE.search(head) or _DAY_FIRST.search(head)
    fields: dict[str, MetadataValue] = {}
    if docket is not None:
        fields["docket"] = docket[1].strip(".,")
    if court is not None:
        fields["court"] = " ".join(court.group().split()).strip(",")
    if date is not None:
        fields |= {"date": iso_date(date.group()), "year": int(date["year"])}
    return fields


def iso_date(text: str) -> str:
    """A date in ISO form, as far as it is given: "2019-07-04", "2019-07" or "2019"; "" without a year."""
    text = _COMPACT.sub(r"\1-\2-\3", text)
    if match := _ISO.search(text):
        return match.group().replace("/", "-")
    match = _DATE.search(text) or _DAY_FIRST.search(text) or _MONTH_ALONE.search(text)
    if match is None:
        year = _YEAR.search(text)
        return year.group() if year else ""
    month = next(number for number, name in enumerate(_MONTHS, 1) if name[:3] == match["month"][:3].lower())
    day = match.groupdict().get("day")
    return f"{match['year']}-{month:02}" + (f"-{int(day):02}" if day else "")


def dated(text: str) -> dict[str, MetadataValue]:
    """The fields "date", in ISO form where it can be read, and "year"; {} for a blank text."""
    date = iso_date(text)
    return {"date": date, "year": int(date[:4])} if date else {"date": text} if text else {}


def issue_date(issued: object) -> str:
    """The date in the field "issued" of Crossref and CSL; "" where it has none."""
    value = issued if isinstance(issued, dict) else {}
    listed = value.get("date-parts")
    parts = listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], list) else []
    return "-".join(str(part).zfill(2) for part in parts if part) or str(value.get("raw") or value.get("literal") or "")


def date_of_parts(year: str, month: str, day: str) -> str:
    """An ISO date, as far as it is given, of a month by its number or its name."""
    if not month.isdecimal():
        return iso_date(f"{day} {month} {year}")
    return iso_date("-".join(part.zfill(2) for part in (year, month, day) if part))


_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
           "november", "december")  # fmt: skip
_MONTH = rf"(?P<month>(?:{'|'.join(_MONTHS)})\b|(?:{'|'.join(name[:3] for name in _MONTHS)}|sept)\b\.?)"
_DATE = regex(rf"\b{_MONTH}\s+(?P<day>\d{{1,2}}),?\s+(?P<year>[12]\d{{3}})\b", re.IGNORECASE)
_DAY_FIRST = regex(rf"\b(?P<day>\d{{1,2}})\.?\s+{_MONTH},?\s+(?P<year>[12]\d{{3}})\b", re.IGNORECASE)
_MONTH_ALONE = regex(rf"\b{_MONTH},?\s+(?P<year>[12]\d{{3}})\b", re.IGNORECASE)
_ISO = regex(r"\b[12]\d{3}[-/][01]\d(?:[-/][0-3]\d)?(?!\d)")
_COMPACT = regex(r"^\s*([12]\d{3})([01]\d)([0-3]\d)\s*$")
_YEAR = regex(r"\b(?:1[5-9]|20)\d\d\b")
_DECIDED = regex(rf"\b(?:decided|filed|dated|entered|issued|opinion)\W{{1,5}}{_DATE.pattern}", re.IGNORECASE)
_BARE_NUMBER = r"(?:\d{1,2}:)?\d{2}-(?:[A-Za-z]{2,4}-\d{2,6}|\d{3,6})(?:-[A-Z]{2,4}){0,3}"
_BARE_DOCKET = regex(rf"(?<![\w:-])(?=[\d-]*[:A-Za-z]|(?<![^\n])|[\d-]+[ \t]*\n)({_BARE_NUMBER})(?![\w-])")
_DOCKET = regex(
    r"\b(?:case|docket|civil|cause|criminal|action|index)?[ \t]*(?:action[ \t]*)?nos?\.?:?[ \t]*"
    r"([A-Z0-9]{0,5}[:-]?\d(?:[\w:./\u2010-\u2013-]|,(?=\d{3}\b)){1,30})",
    re.IGNORECASE,
)
_COURT_LINE = regex(
    r"^[ \t]*(?:(?:in )?the )?(?!opinion|order|syllabus|certiorari|appeal|clerk|by |on )(?=[A-Z])"
    r"[^\n\d.,;]{0,60}\bcourt\b[^\n\d.;]{0,60}"
    r"(?:\n\s*(?:for the|(?:\w+ )?district of)[^\n.]{3,40})?$",
    re.IGNORECASE | re.MULTILINE,
)


def _without_role(text: str) -> str:
    return _ROLE.sub("", text).strip(" ,;:()")


def _party(text: str) -> str:
    """The name of a party, without its role; "" where it is a sentence or a citation."""
    text = _AROUND_PARTY.sub("", _BEFORE_PARTY.sub("", text.strip()))
    name = " ".join(_ROLE.sub("", text).split()).strip(" ,;:()*\u2020")
    name = re.sub(r" (?:and|&)$", "", name if _ABBREVIATED.search(name) else name.rstrip("."))
    if not name or len(name) > _MAX_PARTY_CHARS or not name[0].isupper() or _NOT_A_NAME.search(name):
        return ""
    words = [word for word in name.split() if word[0].isalpha()]
    n_small = sum(word[0].islower() and word not in _SMALL_WORDS for word in words)
    return name if words and n_small * 4 <= len(words) and not name.endswith(('."', "?")) else ""


_SMALL_WORDS = frozenset(["of", "the", "and", "for", "de", "von", "in", "ex", "rel.", "dba", "d/b/a", "a/k/a", "f/k/a"])
_BEFORE_PARTY = regex(
    r"(?:(?:re|subject|short title|case|caption)\s*:\s*)*(?:(?:case )?nos?\. ?[\w:-]*\d[\w:-]*[,:]?\s+)?", re.IGNORECASE
)
_AROUND_PARTY = regex(rf"^{_BARE_NUMBER},?\s+|[,(\s]+(?:[Nn]os?\.? )?{_BARE_NUMBER}\b.*$")
_GOES_ON = regex(r"\b(?:dba|d/b/a|a/k/a|f/k/a|of|and|the|for|ex rel\.)$|&$", re.IGNORECASE)


def _name_above(lines: Sequence[str]) -> str:
    """The last name above "v.", or above what its party is, with the adjacent lines before it that it continues."""
    roles = [place for place, line in enumerate(lines) if line.strip() and not _without_role(line)]
    lines = lines[: roles[-1]] if roles and len(lines) - roles[-1] <= _LINES_OF_NAME + 1 else lines
    block = list[str]()
    for line in reversed([line.strip() for line in lines]):
        if block and not (len(block) < _LINES_OF_NAME and _without_role(line) and _continues(line, block[0])):
            break
        if block or _without_role(line):
            block.insert(0, line)
    return " ".join(block)


def _continues(before: str, line: str) -> bool:
    """Whether a line of a caption goes on in the next one."""
    is_name = not before.endswith((",", ".", ";", ":")) and _BESIDE_NAME.search(before) is None
    if before.endswith(",") and _OFFICE.match(line):
        return True
    return _GOES_ON.search(before) is not None or (is_name and before.isupper() == _without_role(line).isupper())


_IS_DOCKET = regex(r"(?:record )?nos?\. ?\S{0,9}\d", re.IGNORECASE)
_OFFICE = regex(  # behind the name of who holds it
    r"(?:(?:acting|deputy|former) )?(?:warden|secretary|attorney general|commissioner|director|sheriff|superintendent"
    r"|administrator|governor|trustee|execut(?:or|rix)|guardian|u\.? ?s\.? trustee)\b",
    re.IGNORECASE,
)
_BESIDE_NAME = regex(  # courts, dates and kinds of papers
    r"\d|\b(?:court|tribunal|circuit|term|panel|syllabus|opinion|order|notice|filed|present|before|appeals?|in re)\b"
    r"|(?:district|division|county|state) of\b|^\w+ (?:district|division|department|county)$"
    r"|^(?:district|division) \w+$|___|---",
    re.IGNORECASE,
)


def _name_below(lines: Sequence[str]) -> str:
    """The name below "v.", with the next line where that ends it with a comma."""
    name, following = lines[0].strip(), lines[1].strip() if len(lines) > 1 else ""
    is_whole = _ROLE.search(name) is not None or name.endswith((",", ";", ".")) or not following.endswith((",", ";"))
    return name if is_whole or not _without_role(following) else f"{name} {following}"
