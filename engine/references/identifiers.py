"""References as values, and those by numbers: to patents, papers, series of documents, standards and reports."""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import unquote

from engine.text.cleaning import regex
from engine.text.segmentation import Span


class Kind(StrEnum):
    """What is referred to."""

    CASE = "case"
    STATUTE = "statute"  # also constitutions, and rules of courts
    REGULATION = "regulation"
    PATENT = "patent"
    PAPER = "paper"  # by DOI, arXiv id, PMID or PMCID
    SERIES = "series"  # RFCs and proposals: BCP, STD, PEP, EIP and ERC, BIP
    STANDARD = "standard"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class Mention:
    """One mention of a work."""

    kind: Kind
    name: str  # equal for all spellings: "347 U.S. 483", "42 U.S.C. § 1983", "US5123456", "RFC 2119"
    span: Span  # in the text; several sections behind one sign have spans of their own
    parallel: str = ""  # name of the citation before it, if both are places of one case


@dataclass(frozen=True, slots=True)
class _Form:
    """A way to write a reference."""

    kind: Kind
    needles: tuple[str, ...]  # one of them is in every text that has such a reference
    pattern: re.Pattern[str]
    names: Callable[[re.Match[str]], list[str]]  # none if it is no reference after all
    begin: str = ""  # of all names in a series


def numbered(text: str, kinds: frozenset[Kind], works: Collection[str] | None = None) -> Iterator[Mention]:
    """The references of some kinds, form by form; of series, only those that name one of some works."""
    begins = {"", *(name[:4] for name in works)} if works is not None else {"", *_SERIES.values()}
    for form in _FORMS:
        if form.kind in kinds and form.begin in begins and any(map(text.__contains__, form.needles)):
            for match in form.pattern.finditer(text):
                for name in form.names(match):
                    yield Mention(form.kind, name, Span(match.start(), match.start() + len(trimmed(match[0].rstrip()))))


_SERIES = {"RFC": "RFC ", "BCP": "BCP ", "STD": "STD ", "PEP": "PEP ", "EIP": "EIP-", "ERC": "EIP-", "BIP": "BIP-"}
_IN_SERIES = (
    r"(?<!\w...)s?[\s_-]{0,2}(?:[Nn]o\.?\s)?#?(?P<number>\d{1,5})(?!\w|[.,]\d)"
    r"(?P<more>(?:(?:,\s{1,2}(?:and\s|or\s)?|\s(?:and|or|&)\s)\d{1,5}(?!\w|[.,]\d)){0,12})"
)


def _series(match: re.Match[str]) -> list[str]:
    series = match[0][:3].upper()
    is_military = match.string[match.start() - 1 : match.start()] == "-"  # or federal: "MIL-STD-498"
    if series == "STD" and (match[0][3:4] not in (" ", "-") or is_military):
        return []
    if series == "PEP" and match[0][3:4].isdigit() and int(match["number"]) < 8:  # parts of a network
        return []
    is_many = match[0][3:4] == "s"
    numbers = [match["number"]]
    if is_many:
        numbers += re.findall(r"\d{1,5}", match["more"])
    return [f"{_SERIES[series]}{int(number)}" for number in numbers]


_DOI = regex(r"10\.(?<![\d.]...)\d{4,9}(?:\.\d{1,5})?/[^\s\"<>{}|\\^`]{1,200}")
_BEHIND_DOI = regex(r",[a-z]|[.;](?:url|(?:doi|arxiv|pmid)\b)|\[(?:doi|arxiv|$)")  # without a blank


def _doi(match: re.Match[str]) -> list[str]:
    doi = trimmed(_BEHIND_DOI.split(unquote(match[0]).lower())[0])
    if (arxiv := re.fullmatch(r"10\.48550/arxiv\.(.+?)(?:v\d+)?", doi)) is not None:
        return [f"arXiv:{arxiv[1]}"]
    return [f"doi:{doi}"] if doi.partition("/")[2] else []


def trimmed(address: str) -> str:
    """An address without the punctuation of the sentence behind it; brackets that it opens stay."""
    while address:
        last = address[-1]
        opening = {")": "(", "]": "[", ">": "<"}.get(last)
        if last in ".,;:'’”*" or (opening is not None and address.count(last) > address.count(opening)):
            address = address[:-1]
        else:
            break
    return address


_ARXIV = regex(
    r"[aA][rR][xX][iI][vV](?<!\w.....)(?:\.org/(?:abs|pdf|html)/|\s{0,2}[:.]?\s{0,2}|\s(?:preprint|e-?print)\s(?:arXiv:)?)"
    r"(?P<id>\d{4}\s?\.\s?\d{4,5}|[a-z]{2,8}(?:\s?-\s?[a-z]{2,3})?(?:\.[A-Z]{2})?/\s?\d{7})(?!\d)"
)
_OLD_ARXIV = regex(
    r"(?:hep-(?:th|ph|ex|lat)|astro-ph|cond-mat|quant-ph|gr-qc|math-ph|nucl-(?:th|ex)|cs\.[A-Z]{2}|math\.[A-Z]{2})/[09]\d{6}(?!\d)"
)
_PUBMED = regex(
    r"(?:PMID|PubMed(?:\sID)?)(?:\s?[:#]?\s{0,2})(?P<id>\d{5,8})(?!\d)|pubmed(?:\.ncbi\.nlm\.nih\.gov)?/(?P<address>\d{5,8})"
)
_PMC = regex(r"PMC(?<!\w...)(?:ID)?(?:\s?:\s?)?(?:PMC)?\s?(?P<id>\d{5,8})(?!\d)")

_US_PATENT = regex(
    r"(?:U\.?\s?S\.?(?<!\w..)|United\sStates(?=\s[Pp]at))(?:P\.?(?=[\s-]))?[\s-]{0,2}(?:[AB]\d?[\s-])?"
    r"(?:(?P<word>[Pp]at(?:ent)?s?\.?\s{1,2})?(?:[Aa]ppl(?:ication)?\.?\s{1,2})?"
    r"(?P<published>[Pp]ub(?:lication|\.|l\.)?\s{1,2}|[Pp]re-?[Gg]rant\s)?(?:[Nn]o(?P<many>s)?\.?:?\s{0,2})?)"
    r"(?P<number>20\d\d(?:[/\s-]?\d{7}|/?\d{6})|\d{1,2}(?:(?:[,.]\s?|\s)\d{3}){2}|(?:D|RE|PP|H)?\s?\d{1,3}(?:,\d{3}){1,2}(?!,\s?\d{3}(?!\d|,\d{3}))"
    r"|(?:D|RE|PP)?\d{5,8})(?P<code>[\s-]?[ABSEPH]\d?(?!\w))?(?!\w|,\d{2})"
    r"(?P<more>(?:(?:,\s{0,2}(?:and\s)?|\s?;\s|\sand\s)(?:RE|D)?\d{1,2},\s?\d{3},\s?\d{3}(?!\d)){0,12})"
)


def _us_patent(match: re.Match[str]) -> list[str]:
    plain = re.sub(r"[,.\s/-]", "", match["number"])
    if len(plain) == 10 and plain.isdigit():  # published, with six digits after its year; not "PCT/US2005/012345"
        plain = "" if match.string.endswith("PCT/", 0, match.start()) else f"{plain[:4]}0{plain[4:]}"
    if not (match["word"] or match["published"] or match["code"] or match["many"]):
        digits = plain.lstrip("DREPH")
        written = match["number"]
        if ("," in written and len(digits) < 7) or ("/" not in written and "," not in written and len(digits) < 7):
            return []
    names = [f"US{plain}"] if plain else []
    for number in re.findall(r"(?:RE|D)?\d{1,2},\s?\d{3},\s?\d{3}", match["more"]):
        names.append("US" + re.sub(r"[,\s]", "", number))
    return names


_EP_PATENT = regex(
    r"EP(?<!\w..)O?[\s-]{0,2}(?:[Pp]at(?:ent)?\.?\s{1,2})?(?:[Nn]o\.?\s{0,2})?(?:[AB]\d?[\s-]{1,2})?(?P<number>\d[\s.,]{0,2}\d{3}[\s.,]?\d{3}|\d{2,3}[\s.,]\d{3}|\d{6,7})"
    r"(?:[\s-]?[AB]\d?(?!\w))?(?!\w)|European\s{1,2}[Pp]atent\s{1,2}(?:(?:[Aa]pplication|[Pp]ubl(?:ication|\.))\s{1,2})?(?:[Nn]o\.?\s{0,2})?"
    r"(?:EP\s?)?(?P<spelled>\d[\s.,]?\d{3}[\s.,]?\d{3}|\d{2,3}[\s.,]\d{3}|\d{7})(?:[AB]\d)?(?!\w)"
)
_WO_PATENT = regex(
    r"W[O0](?<!\w..)[\s/-]{0,2}(?:[Pp]at(?:ent)?\.?\s{1,2})?(?:[Nn]o\.?\s{0,2})?(?:A\d?[\s-]{1,2})?"
    r"(?:(?P<year>(?:19|20)\d\d)[/\s-]?(?P<number>\d{5,6})|(?P<short>\d\d)[/\s-](?P<old>\d{2,3}\s?\d{3})|(?P<closed>[890]\d)(?P<digits>\d{5,6}))(?!\d)"
)
_PCT = regex(r"PCT/(?P<office>[A-Z]{2})\s?(?P<year>\d{4}|\d{2})/(?P<number>\d{5,6})(?!\d)")


def _ep_patent(match: re.Match[str]) -> list[str]:
    return [f"EP{int(re.sub(r'[^0-9]', '', match['number'] or match['spelled'])):07}"]


def _wo_patent(match: re.Match[str]) -> list[str]:
    year = match["year"] or _long_year(match["short"] or match["closed"])
    digits = match["number"] or match["old"] or match["digits"]
    return [f"WO{year}{int(re.sub(r'[^0-9]', '', digits)):06}"]


def _pct(match: re.Match[str]) -> list[str]:
    year = match["year"] if len(match["year"]) == 4 else _long_year(match["year"])
    return [f"PCT/{match['office']}{year}/{int(match['number']):06}"]


def _long_year(year: str) -> str:
    return f"19{year}" if int(year) > 70 else f"20{year}"


_ISO = regex(
    r"(?P<body>ISO|IEC)(?<!\w...)(?:/(?P<others>(?:IEC|IEEE|ASTM|CIE|HL7|SAE)(?:/IEEE)?))?[\s/-]{0,2}"
    r"(?P<type>(?:DIS|FDIS|TR|TS|PAS|IS|CD)[\s-])?(?:[Ss]tandard\s)?(?P<number>\d{1,6}(?:[-–‑]\d{1,3}(?!\d))*)(?::(?:19|20)\d\d)?(?!\w|\.\d)"
)
_IEEE = regex(
    r"IEEE(?<!\w....)(?:\s(?P<std>Std\.?|Standard|P))?\s{0,2}(?:No\.?\s)?(?P<number>\d{2,5}(?:\.\d{1,2}[a-z]{0,2}(?![a-z]))*[a-z]{0,2})"
    r"(?:[-–‑:](?:19|20)\d\d)?(?!\w|\.\d)"
)
_ANSI = regex(
    r"ANSI(?<!\w....)(?:/(?P<others>[A-Z]{2,6}))?\s{1,2}(?:Std\.?\s|Standard\s)?(?P<number>[A-Z]{0,2}\d{1,4}(?:\.\d{1,4}){0,3})(?:[-–‑:](?:19|20)?\d\d)?(?!\w)"
)
_ETSI = regex(
    r"ETSI(?<!\w....)\s{1,2}(?P<type>EN|TS|TR|ES|ETR|ETS|GS)\s{0,2}(?P<number>\d{3}\s?\d{3}(?:[-–‑]\d{1,2})?)(?!\d)"
)
_3GPP = regex(r"3GPP\s{1,2}(?P<type>TS|TR)\s{0,2}(?P<number>\d\d\.\d{3}(?:-\d)?)(?!\d)")
_ITU = regex(r"(?:ITU-T|CCITT)\s{1,2}(?:Rec(?:ommendation|\.)?\s{1,2})?(?P<number>[A-Z]\.\d{1,4}(?:\.\d{1,2})?)(?!\d)")
_FIPS = regex(r"FIPS(?<!\w....)[\s-]{1,2}(?:PUB(?:lication|S)?\.?\s?)?(?P<number>\d{1,3})(?:[-–‑]\d{1,2})?(?!\w)")
_NIST = regex(
    r"NIST(?<!\w....)\s?(?P<type>SP|IR|Special Publication|Interagency Report)[\s-]{1,2}"
    r"(?P<number>\d{3,4}(?:-\d{1,3}[A-Z]?)?)(?!\w)"
)
_LABORATORY = regex(
    r"(?:NASA[\s/-](?P<nasa>TM|TN|CR|TP|SP|RP)[\s–‑-]{1,2}(?P<n>(?:\d{4}[-–‑])?\d{3,6})|(?P<gao>GAO)[-–‑/](?P<g>(?:[A-Z]{3,5}-)?\d{2}-\d{1,4})"
    r"|SAND\s?(?P<sand>\d{2,4}[-–‑]\d{4})|(?P<la>LA-(?:UR|\d)[-–‑]?\d{0,2}-?\d{4,5})|(?P<ornl>ORNL/[A-Z]{2,4}[-–‑]\d{1,4}(?:/\d{1,4})?)"
    r"|(?P<fermi>FERMILAB-[A-Z]{3,6}-\d{2,4}[-/]\d{2,4}|CERN-[A-Z]{2,4}[-/]\d{2,4}[-/]\d{2,4}|SLAC-PUB-\d{3,6}))(?![\w])"
)
_SENSITIVITIES = {f"ISO {number}" for number in (50, 100, 200, 400, 800, 1600, 3200, 6400)}  # of films
_DASHES = str.maketrans("–‑", "--")


def _standard(body: str) -> Callable[[re.Match[str]], list[str]]:
    return lambda match: [f"{body} {match['number'].translate(_DASHES)}"]


def _iso(match: re.Match[str]) -> list[str]:
    if match[0] in _SENSITIVITIES:
        return []
    return [f"{match['body']} {match['number'].translate(_DASHES)}"]


def _ieee(match: re.Match[str]) -> list[str]:
    number = match["number"].translate(_DASHES)
    return (
        [f"IEEE {number}"]
        if match["std"] or "." in number or (len(number) in (3, 4) and number[:2] not in ("19", "20"))
        else []
    )


def _etsi(match: re.Match[str]) -> list[str]:
    return [f"ETSI {match['type']} {match['number'].translate(_DASHES).replace(' ', '')}"]


def _nist(match: re.Match[str]) -> list[str]:
    return [f"NIST {'SP' if match['type'][0] == 'S' else 'IR'} {match['number'].translate(_DASHES)}"]


def _laboratory(match: re.Match[str]) -> list[str]:
    if match["nasa"]:
        name = f"NASA {match['nasa']}-{match['n']}"
    elif match["gao"]:
        name = f"GAO-{match['g'].replace('/', '-')}"
    elif match["sand"]:
        name = f"SAND{match['sand']}"
    else:
        name = match["la"] or match["ornl"] or match["fermi"]
    return [name.translate(_DASHES)]


_FORMS = (
    *(  # one by one, as a search passes over a text faster for one name than for one of many
        _Form(Kind.SERIES, (name,), regex(name + _IN_SERIES), _series, _SERIES[name.upper()])
        for name in (*_SERIES, "rfc", "pep", "eip", "erc", "bip")
    ),
    _Form(Kind.PAPER, ("10.",), _DOI, _doi),
    _Form(Kind.PAPER, ("Xiv", "xiv", "XIV"), _ARXIV, lambda match: ["arXiv:" + "".join(match["id"].split())]),
    _Form(Kind.PAPER, ("/9", "/0"), _OLD_ARXIV, lambda match: [f"arXiv:{match[0]}"]),
    _Form(Kind.PAPER, ("PMID", "ubMed", "ubmed"), _PUBMED, lambda match: [f"PMID:{match['id'] or match['address']}"]),
    _Form(Kind.PAPER, ("PMC",), _PMC, lambda match: [f"PMC{match['id']}"]),
    _Form(Kind.PATENT, ("US", "U.S", "U. S", "United States"), _US_PATENT, _us_patent),
    _Form(Kind.PATENT, ("EP", "European"), _EP_PATENT, _ep_patent),
    _Form(Kind.PATENT, ("WO", "W0"), _WO_PATENT, _wo_patent),
    _Form(Kind.PATENT, ("PCT/",), _PCT, _pct),
    _Form(Kind.STANDARD, ("ISO", "IEC"), _ISO, _iso),
    _Form(Kind.STANDARD, ("IEEE",), _IEEE, _ieee),
    _Form(Kind.STANDARD, ("ANSI",), _ANSI, _standard("ANSI")),
    _Form(Kind.STANDARD, ("ETSI",), _ETSI, _etsi),
    _Form(Kind.STANDARD, ("3GPP",), _3GPP, lambda match: [f"3GPP {match['type']} {match['number']}"]),
    _Form(Kind.STANDARD, ("ITU-T", "CCITT"), _ITU, _standard("ITU-T")),
    _Form(Kind.STANDARD, ("FIPS",), _FIPS, _standard("FIPS")),
    _Form(Kind.REPORT, ("NIST",), _NIST, _nist),
    _Form(Kind.REPORT, ("NASA", "GAO", "SAND", "LA-", "ORNL", "FERMILAB", "CERN-", "SLAC-"), _LABORATORY, _laboratory),
)
