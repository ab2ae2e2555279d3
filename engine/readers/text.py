"""Plain text: the lines of the file, without what the pages that it once was had around and inside its words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.readers import left_out as reasons
from engine.readers.aps import is_aps, read_text
from engine.readers.encoding import decode
from engine.readers.running_text import running_text
from engine.readers.scalars import split_names, typed_scalar
from engine.text.cleaning import without_encoded, without_readings
from engine.text.document import Document, MetadataValue, Unreadable, assemble
from engine.text.headings import find_headings, names_part
from engine.text.numbering import could_be_title

_FIELD = re.compile(r"([A-Z][A-Za-z-]{1,30}):[ \t]+(\S.*)")
_COLUMNS = re.compile(r"\S(?: {3,}|\t)\S")

_VERSUS = re.compile(r"\b(?:v|vs|V|VS)\.(?=\s)[^\n]{0,200}")
_BETWEEN_PARTIES = re.compile(
    r"(?<=\n)[ \t]*[-\u2013][ \t]*(?:against|and|v)[ \t]*[-\u2013][ \t]*(?: {3}[^\n]*)?(?=\n)"
)
_BORDER_OF_CAPTION = re.compile(r"(?:(?<=\n)[ \t]{0,80}|[ \t]{2,80})[)\u00a7:|](?:[ \t]{2,}+[^\n]*)?(?=\n)")
_COURT = re.compile(r"\b(?:court|tribunal|cite as|syllabus|opinion of|docket|case no|no\. \d\d)", re.IGNORECASE)
_ROLE = re.compile(
    r",?\s*\b(?:plaintiffs?|petitioners?|appellants?|defendants?|respondents?|appellees?|claimants?|applicants?"
    r"|et al\.?)\b[^\n]*",
    re.IGNORECASE,
)
_SOLE_PARTY = re.compile(
    r"^[ \t]*(?:IN RE|In re|IN THE MATTER OF|In the [Mm]atter of|EX PARTE|Ex parte)\b:?[ \t\n]{1,4}[^\n]{3,100}"
    r"(?:\n[A-Z ,.'&-]{8,80}$)?",
    re.MULTILINE,
)
_NOT_A_NAME = re.compile(
    r"\b(?:see|cf|e\.g|id|in|at|the case of|under)\.?\s*$|^\s*(?:see|cf|e\.g)\b|\d{2,} [A-Z]\w*\.", re.IGNORECASE
)
_ABBREVIATED = re.compile(
    r"(?:\b(?:Inc|Co|Corp|Ltd|Cos|Bros|Jr|Sr|Assn|Assoc|Dept|Comm|Comr)|\b\w|\W\w)\.$", re.IGNORECASE
)
_AUTHORS = ("author", "authors")
_HEAD_CHARS = 4_000  # of a text that can be the first page
_MAX_PARTY_CHARS, _MAX_LINE_CHARS = 100, 200


def read(data: bytes, doc_id: str, source: str) -> Document | Iterator[Document | Unreadable]:
    """Read plain text; a form feed ends a page.

    Running heads and page numbers are left out, and words that a line break cuts are
    joined. A first block of `Name: value` lines, as PEPs and mails have, is metadata under
    names in lower case, and stays in the text. The title is its Title or Subject, or
    the parties of a court paper, or the first block of one or two short lines without the
    marks of a sentence, else the file's name.
    """
    decoded, n_encoded = without_encoded(decode(data))
    if is_aps(decoded):
        return read_text(decoded, doc_id, source)
    return read_plain(decoded, n_encoded, doc_id, source)


def read_plain(decoded: str, n_encoded: int, doc_id: str, source: str) -> Document:
    """Read a text that is in no form of its own."""
    decoded, n_readings = without_readings(decoded)
    running = running_text(decoded)
    text = running.text
    fields = header_fields(text)
    metadata: dict[str, MetadataValue] = {
        name: typed_scalar(value) for name, value in fields.items() if name not in ("title", "subject", *_AUTHORS)
    }
    if names := [name for field in _AUTHORS for name in split_names(fields.get(field, ""))]:
        metadata["authors"] = [*names]
    case = case_name(text)
    title = fields.get("title") or fields.get("subject") or case or _title(text)
    if case:
        metadata = case_fields(text) | metadata
    return assemble(
        text,
        find_headings(text),
        doc_id=doc_id,
        source=source,
        title=title,
        metadata=metadata,
        pages=running.pages,
        left_out={
            reasons.RUNNING_HEADS: running.n_heads,
            reasons.LINE_NUMBERS: running.n_numbers,
            reasons.ENCODED: n_encoded,
            reasons.READINGS: n_readings,
        },
    )


def header_fields(text: str) -> dict[str, str]:
    """The fields of a first block in which every line is `Name: value` or continues the line before.

    Names are in lower case; empty where the text has no such block of two fields or more.
    """
    fields: dict[str, str] = {}
    name = ""
    for line in re.split(r"\n[ \t]*\n", text[:4000].lstrip("\n"), maxsplit=1)[0].split("\n"):
        if match := _FIELD.fullmatch(line):
            name = match[1].lower()
            fields[name] = match[2].strip()
        elif name and line.startswith((" ", "\t")):
            fields[name] += " " + line.strip()
        else:
            return {}
    return fields if len(fields) > 1 else {}


def _title(text: str) -> str:
    """The first block that could be a title; only blocks of columns can be above it, as in RFCs."""
    for block in re.split(r"\n[ \t]*\n\s*", text[:4000].strip("\n\f "))[:3]:
        lines = [line for line in block.split("\n") if re.search(r"\w", line)]
        if len(lines) in (1, 2) and not _COLUMNS.search(block.strip()):
            title = " ".join(line.strip(" \t#*=") for line in lines)
            if names_part(title):
                continue
            return title if could_be_title(title) else ""
        if not all(_COLUMNS.search(line.strip()) for line in lines[:1]):
            return ""
    return ""


def case_name(text: str) -> str:
    """The name of a case ("Alpha v. Beta"), if a text starts like an opinion; "" for another text."""
    head = _BORDER_OF_CAPTION.sub("", _BETWEEN_PARTIES.sub(" v. ", text[:_HEAD_CHARS]))
    if re.search(r"\b(?:[vV]|vs)\.\s", head) is None:
        sole = _SOLE_PARTY.search(head)
        return " ".join(sole.group().split()).rstrip(" ,;)") if sole and _COURT.search(head[:1_500]) else ""
    is_opinion = _COURT.search(head[:1_500]) is not None
    for match in _VERSUS.finditer(head):
        start = head.rfind("\n", 0, match.start()) + 1
        first, second = head[start : match.start()], match.group().partition(".")[2]
        if len(first) > _MAX_LINE_CHARS:
            continue
        beside = [first, second]
        lines = [_line_before(head, start), head[match.end() :].lstrip().partition("\n")[0]]
        first, second = (
            _party(text if _ROLE.sub("", text).strip(" ,;:()") else line)
            for text, line in zip(beside, lines, strict=True)
        )
        if first and second and (is_opinion or match.start() < 200):
            return f"{first} v. {second}"
    return ""


def case_fields(text: str) -> dict[str, MetadataValue]:
    """Docket number, court and date of an opinion, from its first page."""
    head = text[:_HEAD_CHARS]
    docket = _DOCKET.search(head)
    court = next((match for match in _COURT_LINE.finditer(head) if _party(match.group())), None)
    date = _DECIDED.search(head) or _DATE.search(head) or _DAY_FIRST.search(head)
    fields: dict[str, MetadataValue] = {}
    if docket is not None:
        fields["docket"] = docket[1].strip(".,")
    if court is not None:
        fields["court"] = " ".join(court.group().split())
    if date is not None:
        month = _MONTHS.index(date["month"].lower()) + 1
        fields |= {"date": f"{date['year']}-{month:02}-{int(date['day']):02}", "year": int(date["year"])}
    return fields


_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
           "november", "december")  # fmt: skip
_DATE = re.compile(rf"\b(?P<month>{'|'.join(_MONTHS)})\s+(?P<day>\d{{1,2}}),?\s+(?P<year>[12]\d{{3}})\b", re.IGNORECASE)
_DAY_FIRST = re.compile(
    rf"\b(?P<day>\d{{1,2}})\s+(?P<month>{'|'.join(_MONTHS)})\s+(?P<year>[12]\d{{3}})\b", re.IGNORECASE
)
_DECIDED = re.compile(rf"\b(?:decided|filed|dated|entered|issued|opinion)\W{{1,5}}{_DATE.pattern}", re.IGNORECASE)
_DOCKET = re.compile(
    r"\b(?:case|docket|civil|cause|criminal|action|index)?[ \t]*(?:action[ \t]*)?nos?\.?:?[ \t]*"
    r"([A-Z0-9]{0,5}[:-]?\d[\w:./\u2010-\u2013-]{1,30})",
    re.IGNORECASE,
)
_COURT_LINE = re.compile(
    r"^[ \t]*(?:(?:in )?the )?(?!opinion|order|syllabus|certiorari|appeal|on )[A-Z][^\n\d.,;]{0,60}\bcourt"
    r"\b[^\n\d.;]{0,60}"
    r"(?:\n\s*(?:for the|(?:\w+ )?district of)[^\n.]{3,40})?$",
    re.IGNORECASE | re.MULTILINE,
)


def _party(text: str) -> str:
    """The name of a party, without its role; "" where it is a sentence or a citation."""
    name = " ".join(_ROLE.sub("", text).split()).strip(" ,;:()*\u2020")
    name = name if _ABBREVIATED.search(name) else name.rstrip(".")
    if not name or len(name) > _MAX_PARTY_CHARS or not name[0].isupper() or _NOT_A_NAME.search(text):
        return ""
    words = [word for word in name.split() if word[0].isalpha()]
    n_small = sum(
        word[0].islower() and word not in ("of", "the", "and", "for", "de", "von", "in", "ex", "rel.") for word in words
    )
    return name if words and n_small * 4 <= len(words) and not name.endswith(('."', "?")) else ""


def _line_before(text: str, place: int) -> str:
    lines = [line for line in text[:place].split("\n") if _ROLE.sub("", line).strip(" ,")]
    return lines[-1] if lines else ""
