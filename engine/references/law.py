"""Finds cases, statutes, regulations, rules of courts and constitutions in running text.

Sections are named without their subdivisions: "15 U.S.C. § 78j(b)" is "15 U.S.C. § 78j". Short forms count as mentions
of what they stand for: "347 U.S. at 495" after "347 U.S. 483", "Id. § 1985", and "§ 1983" alone where the text cites
that section of one code.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from engine.references.identifiers import Kind, Mention
from engine.text.cleaning import regex
from engine.text.headings import numeral
from engine.text.segmentation import Span

_REPORTERS = """
U.S.|S. Ct.|L. Ed.|L. Ed. 2d|F.|F.2d|F.3d|F.4th|F. App'x|F. Supp.|F. Supp. 2d|F. Supp. 3d|F. Cas.|F.R.D.|B.R.|Fed. Cl.
Ct. Cl.|Cl. Ct.|T.C.|T.C.M.|B.T.A.|C.C.P.A.|Ct. Int'l Trade|Vet. App.|M.J.|C.M.R.|I. & N. Dec.|N.L.R.B.|F.C.C.|F.T.C.
U.S.P.Q.|U.S.P.Q.2d|U.S.L.W.|U.S. App. D.C.|App. D.C.|A.L.R.|A.L.R.2d|A.L.R.3d|A.L.R.4th|A.L.R. Fed.|F.C.C. Rcd.
A.|A.2d|A.3d|N.E.|N.E.2d|N.E.3d|N.W.|N.W.2d|N.W.3d|P.|P.2d|P.3d|S.E.|S.E.2d|S.W.|S.W.2d|S.W.3d|So.|So. 2d|So. 3d
N.Y.|N.Y.2d|N.Y.3d|N.Y.S.|N.Y.S.2d|N.Y.S.3d|A.D.|A.D.2d|A.D.3d|Misc.|Misc. 2d|Misc. 3d|Barb.|Johns.|Wend.|Paige
Cal.|Cal. 2d|Cal. 3d|Cal. 4th|Cal. 5th|Cal. App.|Cal. App. 2d|Cal. App. 3d|Cal. App. 4th|Cal. App. 5th
Cal. Rptr.|Cal. Rptr. 2d|Cal. Rptr. 3d|Ill.|Ill. 2d|Ill. App.|Ill. App. 2d|Ill. App. 3d|Ill. Dec.|Mass.|Mass. App. Ct.
Pick.|Cush.|Gray|Allen|Pa.|Pa. Super.|Pa. Commw.|N.J.|N.J. Super.|N.J.L.|N.J. Eq.|Ohio St.|Ohio St. 2d|Ohio St. 3d
Ohio App.|Ohio App. 2d|Ohio App. 3d|Mich.|Mich. App.|Wis.|Wis. 2d|Minn.|Va.|Va. App.|W. Va.|N.C.|N.C. App.|S.C.|Ga.
Ga. App.|Md.|Md. App.|Conn.|Conn. App.|Conn. Supp.|Wash.|Wash. 2d|Wash. App.|Wash. App. 2d|Or.|Or. App.|Colo.|Ariz.
Ariz. App.|Kan.|Kan. App.|Kan. App. 2d|Neb.|Neb. App.|Iowa|Mo.|Mo. App.|Ind.|Ind. App.|Ky.|Tenn.|Tenn. App.|Ala.
Ala. App.|Ark.|Ark. App.|La.|La. Ann.|Miss.|Fla.|Tex.|Tex. Crim.|Tex. Civ. App.|Okla.|Okla. Crim.|N.M.|N.M. App.|Nev.
Utah|Utah 2d|Idaho|Mont.|Haw.|Hawai'i|Haw. App.|N.D.|S.D.|Vt.|N.H.|Me.|R.I.|Del.|Del. Ch.|D.C.|P.R.|Guam
Dall.|Cranch|Wheat.|Pet.|How.|Black|Wall.|Stat.|Fed. Reg.
"""
_SPELLINGS = {"fedappx": "F. App'x", "fappx": "F. App'x", "supct": "S. Ct.", "fr": "Fed. Reg.", "wn2d": "Wash. 2d"}
_EARLY = {  # reporters of the Supreme Court that were numbered again: volumes, and the number before their first
    "Dall.": (4, 0),
    "Cranch": (9, 4),
    "Wheat.": (12, 13),
    "Pet.": (16, 25),
    "How.": (24, 41),
    "Black": (2, 65),
    "Wall.": (23, 67),
}
_STATES = """
Ala. Alabama|Alaska|Ariz. Arizona|Ark. Arkansas|Cal. Calif. California|Colo. Colorado|Conn. Connecticut|Del. Delaware
D.C.|Fla. Florida|Ga. Georgia|Haw. Hawaii|Idaho|Ill. Illinois|Ind. Indiana|Iowa|Kan. Kansas|Ky. Kentucky|La. Louisiana
Me. Maine|Md. Maryland|Mass. Massachusetts|Mich. Michigan|Minn. Minnesota|Miss. Mississippi|Mo. Missouri|Mont. Montana
Neb. Nebraska|Nev. Nevada|N.H. NewHampshire|N.J. NewJersey|N.M. NewMexico|N.Y. NewYork|N.C. NorthCarolina
N.D. NorthDakota|Ohio|Okla. Oklahoma|Or. Oregon|Pa. Pennsylvania|R.I. RhodeIsland|S.C. SouthCarolina|S.D. SouthDakota
Tenn. Tennessee|Tex. Texas|Utah|Vt. Vermont|Va. Virginia|Wash. Washington|W.Va. WestVirginia|Wis. Wisconsin|Wyo. Wyoming
"""
_CODES = """
RCW Wash. Rev. Code|NRS Nev. Rev. Stat.|ORS Or. Rev. Stat.|MCL Mich. Comp. Laws|MCLA Mich. Comp. Laws
ARS Ariz. Rev. Stat.|OCGA Ga. Code|KSA Kan. Stat.|NJSA N.J. Stat.|TCA Tenn. Code|KRS Ky. Rev. Stat.|RSMo Mo. Rev. Stat.
HRS Haw. Rev. Stat.|CRS Colo. Rev. Stat.|NMSA N.M. Stat.|ILCS Ill. Comp. Stat.|MGL Mass. Gen. Laws|GL Mass. Gen. Laws
CPLR N.Y. C.P.L.R.|CPL N.Y. Crim. Proc. Law|UCC U.C.C.|USSG U.S.S.G.|IRC 26 U.S.C.|PaCS Pa. Cons. Stat.|PS Pa. Stat.
TreasReg 26 C.F.R.|RSA N.H. Rev. Stat.|SDCL S.D. Codified Laws|NDCC N.D. Cent. Code|MCA Mont. Code|LaRS La. Rev. Stat.
"""
_WORDS = """
Ann. Annotated West Wests Vernons McKinneys Deering the of=|Stat. Stats Statutes Statute|Rev. Revised|Gen. General
Cons. Consol. Consolidated CS|Comp. Compiled|Civ. Civil|Crim. Criminal|Proc. Pro. Procedure|Evid. Evidence|Bus. Business
Prof. Professions|Gov't Govt Gov. Government|Fam. Family|Veh. Vehicle|Corp. Corporations|Lab. Labor|Educ. Education
Welf. Welfare|Inst. Institutions|Prob. Probate|Ins. Insurance|Prop. Property|Com. Commerce|Rem. Remedies|Prac. Practice
Transp. Transportation|Dom. Domestic|Rel. Relations|Gen. General|Oblig. Obligations|Exec. Executive|Jud. Judicial
Cts. Courts|Nat. Natural|Res. Resources|Pub. Public|Util. Utilities|Safety|Health|Penal|Code|Law|Laws|Acts|Codified
Cent. Century|Tax|Real|Estates|Admin. Administrative|Env't Envtl. Environmental|Conserv. Conservation
Water|Elec. Election|Art.
"""
CODE_WORDS = frozenset({"Code", "Law", "Laws", "Stat."})


def normal(abbreviation: str) -> str:
    """The letters and digits of an abbreviation, in lower case."""
    return re.sub(r"[^a-z0-9&]", "", abbreviation.lower()).replace("2nd", "2d").replace("3rd", "3d")


def _table(entries: str) -> list[str]:
    return [entry for line in entries.split("\n") for entry in line.split("|") if entry]


REPORTERS = {normal(name): name for name in _table(_REPORTERS)} | _SPELLINGS
STATES = {normal(name): names.split()[0] for names in _table(_STATES) for name in names.split()}
CODES = {normal(short): name for short, name in (entry.split(" ", 1) for entry in _table(_CODES))}
WORDS = {
    normal(word): "" if names.endswith("=") else names.split()[0]
    for names in _table(_WORDS)
    for word in names.rstrip("=").split()
}


def place_in_reporter(volume: int, reporter: str, page: str) -> str:
    """A place such as "347 U.S. 483", in the numbering of today."""
    if reporter in _EARLY and volume <= _EARLY[reporter][0]:
        volume, reporter = volume + _EARLY[reporter][1], "U.S."
    return f"{volume} {reporter} {page}"


# Patterns begin with a character that is rare, and look behind it afterwards: a search passes over others fast.
_CASE = regex(
    r"\d(?<![\w.§$][\d])\d{0,3}\s{1,3}"
    r"(?=(?P<reporter>[A-Z][A-Za-z.'’&]{0,12}(?:[23](?:d|nd|rd)|[4-9]th)?(?:\s{1,2}(?:[A-Z&][A-Za-z.'’]{0,9}(?:[23]d|[4-9]th)?|[23](?:d|nd|rd)|[4-9]th)){0,4}?)"
    r"(?P<gap>,?\s{1,2}(?:\(\d{1,2}\s[A-Z][a-z]{2,6}\.?\)\s)?)(?P<at>at\s{1,2})?(?P<page>[1-9]\d{0,2},\d{3}|[1-9]\d{0,4})(?!\w))"
)
_PARTIES = regex(
    r"(?:\bv\.?\s{1,2}[A-Z][^;()\[\]]{0,70}|\b(?:In re|Ex parte|Matter of)\s[^;()\[\]]{1,70}"
    r"|\bCases?|\b(?:Act|Law|Treaty)\b[^;\[\]]{0,40}|\bPub\.\s?L\.[^;()\[\]]{1,20}|\bch\.\s\d{1,4})(?:,|\(|\(\d{4}\)|,?\")\s{0,2}$"
)
_YEAR = regex(r"(?:,\s{1,2}[^,;()\[\]]{1,25}){0,4}\s{0,2}[(\[](?:[^()\[\]]{0,40}\s)?(?:1[6-9]|20)\d\d[)\]]")
_SIGNAL = regex(
    r"\b(?:[Ss]ee(?:,? also|,? e\.g\.,)?|[Cc]f\.|[Aa]ccord|[Cc]iting|[Qq]uoting|[Cc]ompare|[Cc]ontra)\s{1,2}$"
)
_PIN = regex(r",\s{1,2}\d{1,5}(?!\w|[.,]?\d)")
_FEDERAL_CODE = regex(
    r"\d(?<![\w.§$]\d)\d?\s{0,2}"
    r"(?:(?P<statute>U\.?\s?S\.?\s?C\.?(?:\s?[AS]\.?)?(?![a-z])|United States Code(?: Annotated)?)"
    r"|(?P<regulation>C\.?\s?F\.?\s?R\.?(?!\w)|Code of Federal Regulations))(?:\s?Ann\.)?,?\s{0,2}"
)
_SIGN = regex(r"§")
_SHORT_CODE = regex(
    r"(?=[A-Z])(?:(?:RCW|NRS|ORS|MCLA?|KRS|RSMo|HRS|SDCL)(?=\s{1,2}\d{1,3}[A-Za-z]?[-–.:/]\d)|CPLR|ILCS|R\.C\.W\.|N\.R\.S\.|M\.C\.L\.|N\.J\.S\.A\.|K\.S\.A\.|A\.R\.S\."
    r"|C\.R\.S\.|O\.C\.G\.A\.|O\.R\.S\.|C\.P\.L\.R\.|U\.S\.S\.G\.|USSG|[A-Z][a-z]{1,4}\.\s?Stat\.)\s{1,2}(?=\d)"
)
_OF_TITLE = regex(r"\s{1,2}of\s{1,2}[Tt]itle\s{1,2}(?P<title>\d{1,2})(?P<regulation>[^.;]{0,9}Code of Federal Reg)?")
_TITLE = regex(r"itle\s{1,2}\d")
_SPELLED = regex(r"[Ss]ections?\s{1,2}(?=\d)")
_ANY_SECTION = regex(r"(?:[Ss]ections?\s{1,2}|§{1,2}\s{0,2})(?=\d)")
_UNIT = regex(
    r"(?P<sign>§§|§|[Ss]ections?(?=\s)|[Ss]ec\.|[Ss]ecs\.|(?P<part>[Pp]arts?|[Pp]t\.|[Pp]ts\.)(?=\s))?\s{0,3}"
)
_NUMBER = regex(
    r"(?P<section>\d{1,6}(?:[A-Za-z]{1,4}\d{0,3})?(?:[-–‑.:/]\d{1,6}(?:[A-Za-z]{1,3}\d{0,3})?){0,5})"
    r"(?P<inner>(?:\([A-Za-z0-9]{1,3}\))+[-–]\d{1,3}[A-Z]?)?"
    r"(?:\s?\([A-Za-z0-9]{1,4}\)(?:\s?[-–]\s?\([A-Za-z0-9]{1,4}\))?){0,8}"
)
_MORE = regex(
    r"(?:\s{0,2},?\s{0,2}\([A-Za-z0-9]{1,4}\)){0,6}"
    r"\s{0,2}(?P<joint>,\s{0,2}(?:and\s|or\s|&\s)?|;\s{0,2}(?:and\s)?|and\s|or\s|&\s|through\s|to\s|[-–—]\s?)\s{0,2}"
    r"(?P<sign>§{1,2}\s{0,2})?"
)
_RANGES = ("through", "to", "-", "–", "—")
_OTHER_CODE = regex(r"\s{1,2}(?:[A-Z][\w.'’]*\.|USC|CFR|US)|[,.]?\d|\s{1,2}percent")
_MOST_VOLUMES = 1_500  # of a reporter; a larger number is a year
_BEFORE = 90  # characters before a sign in which the name of its code stands
_NAME_WORD = regex(r"[A-Z][A-Za-z'’]*\.?|&|of(?=\s)")
_CHAPTER = regex(
    r"(?P<before>^.*?)(?P<chapter>(?:tit\.|title|ch\.|c\.|chapter|art\.)\s{0,2}\d{1,4}(?:-?[A-Za-z]{1,2})?),?\s*$",
    re.DOTALL,
)
_CODE_NAME = regex(r"(?:(?:[A-Z][A-Za-z'’]*+\.?+|&|of)[\s,]{0,3}+){1,9}+$")
_ID = regex(r"\b(?:[Ii]d\.|[Ii]bid\.),?\s{0,2}(?:at\s{1,2})?$")
_CONSTITUTION = regex(
    r"(?:U\.?\s?S\.?\s{0,2}|United States )Const(?:itution|\.),?\s{1,2}(?:(?P<amendment>(?:Amend|amend)(?:ment|\.))"
    r"|[Aa]rt(?:icle|\.))\s{1,2}(?P<number>[IVXL]{1,7}|\d{1,2})(?:,\s{1,2}(?:§|[Ss]ection|sec\.)\s{0,2}(?P<section>\d{1,2}))?"
)
_RULE = regex(
    r"(?:Fed\.?\s?R(?:ules?|\.)?|Federal Rules?)(?:\s?of)?\s?(?P<field>Civ|Crim|App|Bankr|Evid)[a-z]{0,8}\.?"
    r"\s?(?:P(?:roc(?:edure)?)?\.?)?,?\s{0,2}(?:[Rr]ules?\s)?(?P<number>\d{1,4}(?:\.\d)?)(?!\d)"
)
_PUBLIC_LAW = regex(
    r"P(?:ub(?:lic|\.)?|\.)\s?L(?:aw|\.)?,?\s{0,2}(?:Nos?\.?\s{0,2})?(?P<number>\d{2,3}[-–‑]\d{1,3})(?!\w)"
)
_EUROPEAN = regex(
    r"(?P<act>Regulation|Directive|Decision)\s{1,2}(?:\((?P<body>EU|EC|EEC)\)\s{1,2})?(?:No\.?\s{1,2})?"
    r"(?P<number>\d{2,4}/\d{1,4})(?:/(?:EU|EC|EEC))?(?!\w)"
)
_BY_YEAR = regex(
    r"[\[(](?P<year>(?:18|19|20)\d\d)[\])]\s{1,2}(?P<volume>\d{1,3}\s{1,2})?(?P<reporter>[A-Z][A-Za-z.]{1,7}"
    r"(?:\s(?:Civ|Crim|Cr|[A-Z]{1,4}))?)\s{1,2}(?P<page>\d{1,5})(?!\w)"
)
_AIR = regex(
    r"A\.?\s?I\.?\s?R\.?\s{1,2}\(?(?P<year>(?:18|19|20)\d\d)\)?\s{1,2}(?P<court>[A-Z][A-Za-z.]{1,9})\s{1,2}(?P<page>\d{1,5})(?!\w)"
)
_NEUTRAL = frozenset(
    "uksc ukhl ukpc ewcaciv ewcacrim ewhc ac wlr aller qb kb ch cr scr scc "
    "hca clr fca nzsc onca bcca suppscr insc csoh csih iesc ecr".split()
)


@dataclass(frozen=True, slots=True)
class _Code:
    """A code of law, and where the text after its name begins."""

    kind: Kind
    name: str
    start: int
    stop: int
    is_short: bool = False  # written without a sign


def cases(text: str) -> Iterator[Mention]:
    """Places of cases in reporters, in the order of the text."""
    places = [
        (match, name)
        for match in _CASE.finditer(text)
        if (name := REPORTERS.get(normal(match["reporter"]))) is not None and 0 < int(match[0]) <= _MOST_VOLUMES
    ]
    is_of_law = any(_is_clear(match, name) for match, name in places)
    full: dict[tuple[str, str], set[str]] = {}
    before = None
    for match, name in places:
        page, span = match["page"].replace(",", ""), Span(match.start(), match.end("page"))
        kind = Kind.STATUTE if name == "Stat." else Kind.REGULATION if name == "Fed. Reg." else Kind.CASE
        known = full.setdefault((match[0].strip(), name), set())
        if match["at"]:
            if len(known) == 1:
                yield Mention(kind, next(iter(known)), span)
            continue
        if match["gap"].startswith(","):
            continue
        place = place_in_reporter(int(match[0]), name, page)
        beside = before if before is not None and _is_parallel(text[before.span.stop : span.start]) else None
        if not (_is_clear(match, name) or place in known or beside or _has_context(match, name, is_of_law)):
            continue
        known.add(place)
        is_parallel = beside is not None and beside.kind is kind is Kind.CASE
        before = Mention(kind, place, span, beside.name if beside is not None and is_parallel else "")
        yield before
    yield from _by_year(text)


def _is_clear(place: re.Match[str], name: str) -> bool:
    """Whether a place can be nothing else; "2 OR 3", "14 VA 1" and "1 P. 48" stand in tables and formulas too."""
    written = place["reporter"]
    if written in ("US", "FR"):
        return len(place["page"]) > 2
    has_series = re.search(r"\d", written) is not None
    return (has_series or written.count(".") > 1) and name != "A.D."


def _has_context(place: re.Match[str], name: str, is_of_law: bool) -> bool:
    """Whether parties, an act or a signal stand before a place, or a year or a page behind it."""
    before = place.string[max(0, place.start() - _BEFORE) : place.start()]
    if _PARTIES.search(before) or _YEAR.match(place.string, place.end("page")):
        return True
    is_usual = "." in name and re.sub(r"\s", "", place["reporter"]) == name.replace(" ", "")
    return is_usual and (
        is_of_law or _SIGNAL.search(before) is not None or bool(_PIN.match(place.string, place.end("page")))
    )


def _is_parallel(between: str) -> bool:
    """Whether only pages stand between two places."""
    return (
        len(between) < 40
        and re.fullmatch(r"(?:,\s{1,2}\d{1,5}(?:[-–]\d{1,5})?(?:\s?n\.\s?\d+)?){0,3},\s{1,2}", between) is not None
    )


def _by_year(text: str) -> Iterator[Mention]:
    for match in _BY_YEAR.finditer(text):
        reporter = match["reporter"].replace(".", "")
        if normal(reporter) in _NEUTRAL:
            volume = f"{match['volume'].strip()} " if match["volume"] else ""
            yield Mention(Kind.CASE, f"[{match['year']}] {volume}{reporter} {match['page']}", Span(*match.span()))
    for match in _AIR.finditer(text):
        court = match["court"].replace(".", "").upper().replace("SUPREME", "SC")
        yield Mention(Kind.CASE, f"AIR {match['year']} {court} {match['page']}", Span(*match.span()))


def statutes(text: str) -> Iterator[Mention]:
    """Sections of statutes and regulations, rules of courts, and constitutions."""
    found = sorted(_sections(text), key=lambda reference: reference.span.start)
    yield from found
    names: dict[str, set[tuple[Kind, str]]] = {}
    for reference in found:
        names.setdefault(reference.name.rpartition(" ")[2], set()).add((reference.kind, reference.name))
    taken = {at for reference in found for at in range(reference.span.start, reference.span.stop)}
    for sign in _SIGN.finditer(text):
        number = _NUMBER.match(text, sign.end() + (text[sign.end() : sign.end() + 1].isspace()))
        if number is None or number.start() in taken:
            continue
        if len(known := names.get(_plain(number["section"]), set())) == 1:
            ((kind, name),) = known
            yield Mention(kind, name, Span(sign.start(), number.end("section")))
    yield from _named(text)


def _sections(text: str) -> Iterator[Mention]:
    """Sections behind the name of their code, or behind "Id."."""
    last: _Code | None = None
    done = 0
    for code in sorted(_codes(text), key=lambda code: code.stop):
        if code.stop < done:
            continue
        if code.name == "id":
            if last is None:
                continue
            code = _Code(last.kind, last.name, code.start, code.stop)
        last = code
        for reference in _list(text, code):
            done = reference.span.stop
            yield reference
    yield from _of_titles(text)


def _codes(text: str) -> Iterator[_Code]:
    """The names of codes before their sections; the name "id" stands for the one before."""
    for match in _FEDERAL_CODE.finditer(text):
        title = re.match(r"\d{1,2}", match[0])
        assert title is not None
        if match["statute"]:
            yield _Code(Kind.STATUTE, f"{title[0]} U.S.C.", match.start(), match.end(), is_short=True)
        else:
            yield _Code(Kind.REGULATION, f"{title[0]} C.F.R.", match.start(), match.end(), is_short=True)
    for match in _SHORT_CODE.finditer(text):
        if (name := _code_name(text[max(0, match.start() - _BEFORE) : match.end()])) is not None:
            yield _Code(Kind.STATUTE, name, match.start(), match.end(), is_short=True)
    yield from _codes_before_sections(text)


def _codes_before_sections(text: str) -> Iterator[_Code]:
    for match in _SPELLED.finditer(text):
        if (name := _code_name(text[max(0, match.start() - _BEFORE) : match.start()])) is not None:
            yield _Code(_kind_of(name), name, match.start(), match.start())
    for match in _SIGN.finditer(text):
        if text[match.start() - 1 : match.start()] == "§":
            continue
        before = text[max(0, match.start() - _BEFORE) : match.start()]
        if _ID.search(before):
            yield _Code(Kind.STATUTE, "id", match.start(), match.start())
        elif (name := _code_name(before)) is not None:
            yield _Code(_kind_of(name), name, match.start(), match.start())


def _kind_of(code: str) -> Kind:
    return Kind.REGULATION if code.endswith("C.F.R.") else Kind.STATUTE


def _code_name(before: str) -> str | None:
    """The usual name of the code that a text ends with; None if it ends with none."""
    chapter = ""
    if (match := _CHAPTER.match(before)) is not None:
        before = match["before"].rstrip(" ,\n")
        kind, number = re.split(r"\s+|(?<=\.)(?=\d)", match["chapter"], maxsplit=1)
        kind = {"c": "ch.", "chapter": "ch.", "title": "tit."}.get(kind.rstrip("."), kind)
        chapter = f" {kind} {number},"
    if (run := _CODE_NAME.search(before)) is None:
        return None
    words = _NAME_WORD.findall(run[0])
    for first in reversed(range(len(words))):
        for stop in range(min(len(words), first + 7), first, -1):
            joined = normal("".join(words[first:stop]))
            if first and normal(words[first - 1]) + joined in STATES:  # "W. Va."
                joined = normal(words[first - 1]) + joined
            name = CODES.get(joined) if stop == len(words) else None
            if name is None and (state := STATES.get(joined)) is not None and (rest := _of_state(words[stop:])):
                name = f"{state} {rest}"
            if name is not None:
                is_titled = name.startswith(("Pa. ", "Ill. "))
                title = re.search(r"(?<!\d)\d{1,3}\s{1,2}$", before[: run.start()]) if is_titled else None
                return f"{title[0].strip()} {name}{chapter}" if title else f"{name}{chapter}"
    return None


def _of_state(words: list[str]) -> str:
    """The name of a code without its state, in the usual abbreviations; "" if it is none."""
    names = [WORDS.get(normal(word), word) if word != "&" else "&" for word in words]
    names = [name for name in names if name]
    return " ".join(names) if CODE_WORDS.intersection(names) and len(names) < 7 else ""


def _of_titles(text: str) -> Iterator[Mention]:
    """Sections as in "sections 1331 and 1343 of title 28"."""
    if _TITLE.search(text) is None:
        return
    for match in _ANY_SECTION.finditer(text):
        code = _Code(Kind.STATUTE, "", match.start(), match.start())
        references = list(_list(text, code))
        if references and (title := _OF_TITLE.match(text, _past_subdivisions(text, references[-1].span.stop))):
            name = f"{title['title']} C.F.R." if title["regulation"] else f"{title['title']} U.S.C."
            kind = Kind.REGULATION if title["regulation"] else Kind.STATUTE
            for reference in references:
                yield Mention(kind, name + reference.name, reference.span)


def _past_subdivisions(text: str, at: int) -> int:
    match = re.compile(r"(?:\([A-Za-z0-9]{1,4}\)){0,6}").match(text, at)
    return at if match is None else match.end()


def _list(text: str, code: _Code) -> Iterator[Mention]:
    """The sections behind a code: one, or several behind a double sign."""
    unit = _UNIT.match(text, code.stop)
    if unit is None or not (unit["sign"] or code.is_short):
        return
    is_many = (unit["sign"] or "") in ("§§", "secs.", "Secs.", "pts.", "Pts.") or (unit["sign"] or "").endswith(
        "ections"
    )
    is_many |= (unit["part"] or "").endswith(("ts", "ts."))
    sign = "pt." if unit["part"] else "§"
    before = ""
    at, start = unit.end(), code.start
    is_range = False
    while (number := _NUMBER.match(text, at)) is not None:
        if before and _OTHER_CODE.match(text, number.end("section")):
            return
        section = _plain(number["section"]) + (number["inner"] or "" if code.name.startswith("26 C") else "")
        names = (_expanded(before, section)[1:] or [section]) if is_range else [section]
        if is_many and not is_range and len(pair := re.split(r"[-–]", section)) == 2 and (whole := _hyphenated(*pair)):
            names = whole
        for name in names:
            yield Mention(code.kind, f"{code.name} {sign} {name}", Span(start, number.end("section")))
        before = names[-1]
        more = _MORE.match(text, number.end())
        if more is None or not (is_many or more["sign"]):
            return
        is_range = more["joint"].strip() in _RANGES
        at = start = more.end()


def _plain(section: str) -> str:
    return section.replace("–", "-").replace("‑", "-").rstrip(".:/")


def _hyphenated(first: str, last: str) -> list[str]:
    """The sections of a range that is written with a hyphen, as in "§§ 1981-1988" or "§§ 3601-19"; else none."""
    if "." in first and "." in last:
        return sections if len(sections := _expanded(first, last)) > 1 else []
    if not (first.isdigit() and last.isdigit()):
        return []
    if len(last) < len(first):
        last = first[: len(first) - len(last)] + last
    return _expanded(first, last) if int(first) < int(last) else []


_MOST = 100  # sections of a range that are named one by one


def _expanded(first: str, last: str) -> list[str]:
    """The sections after the first of a range, or with it if they are numbers alone; only the last if unknown."""
    stem = re.match(r"(?:.*\D)?", first)
    own = first[stem.end() :] if stem is not None else ""
    if stem is None or not own or not last.startswith(stem[0]) or not (end := last[stem.end() :]).isdigit():
        return [last]
    if 0 < int(end) - int(own) <= _MOST:
        return [f"{stem[0]}{number}" for number in range(int(own), int(end) + 1)]
    return [last]


def _named(text: str) -> Iterator[Mention]:
    """Constitutions, rules of courts, public laws and European acts."""
    if "Const" in text:
        for match in _CONSTITUTION.finditer(text):
            part = "amend." if match["amendment"] else "art."
            section = f", § {match['section']}" if match["section"] and part == "art." else ""
            number = numeral(int(match["number"]), "I") if match["number"].isdigit() else match["number"]
            yield Mention(Kind.STATUTE, f"U.S. Const. {part} {number}{section}", Span(*match.span()))
    if "Fed" in text:
        for match in _RULE.finditer(text):
            field = {"Evid": "Evid."}.get(match["field"], f"{match['field']}. P.")
            yield Mention(Kind.STATUTE, f"Fed. R. {field} {match['number']}", Span(*match.span()))
    for match in _PUBLIC_LAW.finditer(text):
        yield Mention(Kind.STATUTE, f"Pub. L. {_plain(match['number'])}", Span(*match.span()))
    for match in _EUROPEAN.finditer(text):
        kind = Kind.STATUTE if match["act"] == "Directive" else Kind.REGULATION
        yield Mention(kind, f"{match['act']} {match['number']}", Span(*match.span()))
