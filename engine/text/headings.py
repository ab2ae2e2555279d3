"""Finds the headings of plain text, centred ones too, and the numbers before them. Precision comes first."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, islice, pairwise

from engine.text.cleaning import regex
from engine.text.segmentation import Heading


class LineKind(StrEnum):
    """Numbers of one kind are in one sequence."""

    DECIMAL = "decimal"
    LETTER = "letter"
    ROMAN = "roman"
    NAMED = "named"


@dataclass(frozen=True, slots=True)
class Numbered:
    """A line that looks like a numbered heading."""

    kind: LineKind
    number: tuple[int, ...]  # () where only the word before the number counts
    level: int
    title: str  # without the number; may be "" for `LineKind.NAMED`


_DECIMAL = regex(r"(?P<number>\d{1,2}(?:\.\d{1,3}){0,5})(?P<dot>\.?)[ \t]{1,4}(?P<title>\S.*)$")
_LETTER = regex(r"(?P<number>[A-Z](?:\.\d{1,3}){1,5}|[A-Z](?=\.))(?P<dot>\.?)[ \t]{1,4}(?P<title>\S.*)$")
_ROMAN = regex(r"(?P<number>[IVX]{1,6})\.[ \t]{1,4}(?P<title>\S.*)$")
NAMES = {
    "book": 1, "part": 1, "title": 1, "appendix": 1, "annex": 1, "schedule": 1,
    "chapter": 2, "item": 2, "items": 2, "section": 3, "article": 3, "rule": 3, "clause": 3, "§": 3, "§§": 3,
    **dict.fromkeys("teil buch anhang partie livre titre annexe parte libro título titolo часть раздел".split(), 1),
    **dict.fromkeys("kapitel chapitre capítulo capitolo hoofdstuk rozdział глава".split(), 2),
    **dict.fromkeys("abschnitt artikel sección artículo articolo artigo artykuł статья".split(), 3),
}  # fmt: skip
_NAMED = regex(
    rf"(?P<name>{'|'.join(sorted(NAMES, key=len, reverse=True))})\s{{0,3}}"
    r"(?P<number>(?:\d+[a-z]?(?:\.\d+)*(?: and \d[a-z]?)?|[IVXLC]+|[A-Z]"
    r"|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b)"
    r"(?:\(T\))?(?:[ \t]*(?P<mark>[.:)\u2013\u2014-])?[ \t]*(?P<title>\S.*)?)$",
    re.IGNORECASE,
)
_HAN_NAMED = regex(
    r"第\s?(?:[一二三四五六七八九十百零〇]{1,7}|\d{1,4})\s?(?P<name>[编編部卷篇章节節条條])(?P<title>\s.*)?$"
)
_HAN_LEVELS = {**dict.fromkeys("编編部卷篇", 1), "章": 2, **dict.fromkeys("节節条條", 3)}
_ITEM = regex(r"[ \t]{0,40}items? \d{1,2}[a-z]?\b", re.IGNORECASE)  # of filings, maybe indented and long
_ITEM_TITLE = regex(r"(?:[A-Z(][\w'\u2019)-]*,?|[a-z]{1,7},?)(?: (?:[A-Z(][\w'\u2019)-]*,?|&|[a-z]{1,7},?))*\.?")
_AFTER_ITEM = regex(r"(?<=[.:])\s{2,}(?=\S)")  # of filings: "Item 1A.      Risk Factors"
_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_MAX_TITLE_CHARS, _MAX_TITLE_WORDS = 100, 14
_SMALL_WORDS = frozenset([
    "a", "an", "and", "as", "at", "by", "for", "from", "in", "of", "on", "or", "the", "to", "with",
])  # fmt: skip
_CONTENTS_LINE = regex(r"(?:\.[ \t]?){3}[ \t]*+(?:\d+|[ivxlc]+)?\s*$|(?<!\s)\s{2,}+\d+\s*$|\t\d+\s*$|…\s*\d+\s*$")
_SENTENCE_BORDER = regex(r"[^\W\d_]{3}[.;]\s+[A-Z]\w+ \w|\s\d+[.)]\s")
_WIDE_COLUMNS = regex(r"\S(?:\s{4,}|\t)\S")


def parse(line: str) -> Numbered | None:
    """Parse the number of a line; None where the line alone does not look like a heading."""
    line = line.strip()
    if line[:5].lower() == "item ":
        line = _AFTER_ITEM.sub(" ", line, count=1)
    if not line or len(line) > 2 * _MAX_TITLE_CHARS or is_contents_line(line) or _WIDE_COLUMNS.search(line):
        return None
    return _named(line) or _roman(line) or _decimal(line) or _lettered(line)


def is_contents_line(line: str) -> bool:
    """Whether it is a line of a table of contents: leaders, or a page number at its end."""
    last = line.rstrip()[-1:]
    return (last.isdigit() or last in ".ivxlc") and _CONTENTS_LINE.search(line) is not None


def could_be_title(title: str) -> bool:
    """Whether these words look like a title, not like a sentence or a list item."""
    if len(title) > _MAX_TITLE_CHARS or len(title.split()) > _MAX_TITLE_WORDS:
        return False
    if title[-1] in ".,;:" or not any(char.isalpha() for char in title):
        return False
    return _SENTENCE_BORDER.search(title) is None


def _is_numbered_title(title: str) -> bool:
    """Like `could_be_title`, but a full stop can end a title whose words, small ones aside, are capitalised."""
    if not title.endswith(".") or title.endswith(".."):
        return could_be_title(title)
    words = [word for word in re.findall(r"[^\W\d_]+", title.replace("'s", "")) if word not in _SMALL_WORDS]
    return could_be_title(title[:-1]) and all(word[0].isupper() for word in words)


def _starts_title(title: str) -> bool:
    first = title.lstrip("\"'\u201c\u2018(`*<[")[:1]
    return first.isupper() or (first.isalpha() and not first.islower())


def _decimal(line: str) -> Numbered | None:
    match = _DECIMAL.match(line)
    if match is None:
        return None
    number = tuple(int(part) for part in match["number"].split("."))
    title = match["title"]
    starts = _starts_title(title) or (len(number) > 1 and bool(match["dot"]) and title[0].islower())
    if not starts or not _is_numbered_title(title):
        return None
    return Numbered(LineKind.DECIMAL, number, len(number), title)


def _lettered(line: str) -> Numbered | None:
    match = _LETTER.match(line)
    if match is None or not _starts_title(match["title"]) or not _is_numbered_title(match["title"]):
        return None
    letter, *rest = match["number"].split(".")
    if not rest and len(match["title"]) < 3:
        return None
    number = (ord(letter) - ord("A") + 1, *(int(part) for part in rest))
    return Numbered(LineKind.LETTER, number, len(number), match["title"])


def _roman(line: str) -> Numbered | None:
    match = _ROMAN.match(line)
    if match is None or not _starts_title(match["title"]) or not _is_numbered_title(match["title"]):
        return None
    return Numbered(LineKind.ROMAN, (roman_value(match["number"]),), 1, match["title"])


def roman_value(digits: str) -> int:
    """The value of a roman number up to 399, in letters of any case."""
    values = [_ROMAN_DIGITS[digit] for digit in digits.upper()]
    return sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True))


def _named(line: str) -> Numbered | None:
    if match := _HAN_NAMED.match(line):
        title = (match["title"] or "").strip()
        is_title = not title or (could_be_title(title) and title[-1] not in "。；，：")
        return Numbered(LineKind.NAMED, (), _HAN_LEVELS[match["name"]], title) if is_title else None
    match = _NAMED.match(line)
    if match is None or line[0].islower():
        return None
    title, name = match["title"] or "", match["name"].lower()
    is_item = name in ("item", "items") and match["mark"] is not None and _ITEM_TITLE.fullmatch(title) is not None
    if title and not (_starts_title(title) and (is_item or could_be_title(title))):
        return None
    if title and match["mark"] is None and name not in ("§", "§§") and not line[: match.end("name")].isupper():
        return None  # "Section 3 Title" is as often the start of a sentence
    return Numbered(LineKind.NAMED, (), NAMES[name], title)


_NUMERALS = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
    (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
_MAX_ROMAN, _MAX_HAN = 4_000, 100
_ORDINALS = {1: "st", 2: "nd", 3: "rd"}
_SERIES = (
    "一二三四五六七八九十", "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳", "甲乙丙丁戊己庚辛壬癸", "가나다라마바사아자차카타파하",
    "абвгдежзиклмнопрстуфхцчшщэюя", "アイウエオカキクケコサシスセソタチツテト", "イロハニホヘトチリヌルヲ",
    "אבגדהוזחט", "أبتثجحخدذرزسشصضطظعغفقكلمنهوي",
)  # fmt: skip


def numeral(number: int, form: str) -> str:
    """A number in the form of the first one of a list: "1", "a", "A", "i", "I", "1st", "一" or "①"."""
    series = next((signs for signs in _SERIES if form and signs[0] == form.lower()), "")
    if series and 0 < number <= len(series):
        return series[number - 1].upper() if form.isupper() else series[number - 1]
    if form == "一" and 0 < number < _MAX_HAN:
        tens, units = divmod(number, 10)
        return f"{series[tens - 1] if tens > 1 else ''}十{series[units - 1] if units else ''}"
    if form == "1st":
        teens = number % 100 // 10 == 1
        return f"{number}{'th' if teens else _ORDINALS.get(number % 10, 'th')}"
    if form in "iI" and 0 < number < _MAX_ROMAN:
        text = ""
        for value, digits in _NUMERALS:
            text += digits * (number // value)
            number %= value
    elif form in "aA" and 0 < number < _MAX_ROMAN:
        text = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)  # after z come aa, bb
    else:
        return str(number)
    return text.upper() if form.isupper() else text


_INDENTED = regex(r"^\f?(?P<indent>[ \t]{6,})(?P<title>[IVX\dA-Z\u00a7OS](?:[^\n]{0,88}[^\s])?)[ \t]*$", re.MULTILINE)
_BARE = regex(r"(?P<roman>[IVX]{1,6})\.?|(?P<letter>[A-Z])\.?|(?P<decimal>\d{1,2})\.?")
_CENTRED_CAPITALS = regex(r"(?=.*[^\W\d_]{4})[^\W\d_](?:: |[^\W\d_]|[ .,?!&()/'\u2018\u2019\u2013-])*")
_OPINION = regex(
    r"(?:syllabus|headnotes?|opinion of the court|opinion of [A-Z][\w.' ]+, (?:c\. ?)?j\.|(?:opinion )?per curiam\.?"
    r"|(?:dissenting|concurring) opinion|opinion"
    r"|(?:statement of )?(?:[A-Z][\w.'\u2019-]*,? ){1,4}(?:(?:c|p)\. ?)?jj?\.,.{0,60}\b(?:concurring|dissenting)\b.*"
    r"|(?:statement of )?(?:(?:mr|mrs|ms)\. )?(?:(?:chief|presiding) )?(?:justice|judge) [A-Z][^.]{1,60}"
    r"\b(?:concurring|dissenting)\b.*)",
    re.IGNORECASE,
)
_CAPTION = regex(r"\b(?:v|vs|no|nos)\.\s|\b(?:figure|fig|table|plate|exhibit|map)\b", re.IGNORECASE)
_VERSUS = regex(r"(?:v|vs)\.?|versus|against|-+ ?(?:v|vs)\. ?-+", re.IGNORECASE)
_COURT = regex(
    r"^(?!opinion)(?:.*\b)?(?:court|tribunal)\s+(?:of|for)\b"
    r"|\b(?:supreme|district|circuit|county|high|tax|bankruptcy|superior) court\b"
    r"|^(?:for the )?(?:(?:north|south|east|west)ern |central |middle )?(?:district|county) of [\w ]{3,30}$"
    r"|^(?:for the )?[\w ]{4,20}circuit$|^(?:north|south|east|west)ern division$",
    re.IGNORECASE,
)
_NEXT = regex(r"\n(?P<indent>[ \t]{6,})(?P<title>\S(?:[^\n]{0,88}\S)?)[ \t]*$", re.MULTILINE)
_TITLE_CASE = regex(
    r"[A-Z](?:[\w'\u2019-]|(?:, |: | and | [/&] | )(?=[A-Z])|(?: (?:of|the|to|in|for|on|or|an?|by|at))(?= ))*"
)
_PART_OF_PAPER = regex(
    r"\b(?:abstract|analysis|arguments?|background|claims?|conclusions?(?: of law)?|damages|discussion|disposition"
    r"|evidence|facts?|findings(?: of fact)?|introduction|issues?|judgment|jurisdiction|liability|motion|opinion"
    r"|procedural history|questions? presented|relief|remed(?:y|ies)|standards? of review|statement of|summary)\b",
    re.IGNORECASE,
)
_IN_PARENTHESES = regex(r"\A[ \t]*\([^()\n]{1,80}\)[ \t]*\n+")  # below a cause of action
_MOST_LINES = 3  # of a heading
_MOST_ASIDE = 3  # characters from the middle of the first line
_SENTENCE_END = regex(r"[.?!:*][\"'\u201d\u2019)\]]*\d{0,3}$")
_WINDOW = 3_000  # characters on each side of a line that show how wide its text is
_FULL_LINE = 50  # characters; text without longer lines is taken to be set for a page of usual width
_USUAL_MIDDLES = range(25, 46)
_MOST_CANDIDATES = 20_000  # of one text; more are a layout of its own
_MOST_ALIKE = 2  # a line that occurs more often, digits aside, is no heading


@dataclass(frozen=True, slots=True)
class _Centred:
    """A short line in the middle, and the lines around it."""

    title: str
    start: int
    indent: int
    above: str  # the next line, blank or not
    below: str
    body: str  # the next lines below that are not blank
    number: Numbered | None
    is_part: bool  # of an opinion: the syllabus, the opinions of the judges

    @property
    def is_bare(self) -> bool:
        return self.number is not None and not self.number.title and self.number.kind is not LineKind.NAMED


def is_part_of_opinion(title: str) -> bool:
    """Whether a line names a part of a court's opinion, as "Syllabus" and "VANE, J., dissenting." do."""
    return title[:1].isupper() and _OPINION.fullmatch(title) is not None


def names_court(title: str) -> bool:
    """Whether a line is the name of a court, as above the parties."""
    return _COURT.search(title) is not None


def centred_headings(text: str) -> list[Heading]:
    """Find short lines that stand alone in the middle: numbers, capitals, and the usual parts of opinions."""
    if "      " not in text:
        return []
    candidates = list(islice(_centred_candidates(text), _MOST_CANDIDATES + 1))
    lines = _opening(candidates) if len(candidates) <= _MOST_CANDIDATES else []
    alike = Counter(re.sub(r"\d+", "0", line.title) for line in lines)
    lines = [line for line in lines if line.is_bare or line.is_part or alike[line.title] <= _MOST_ALIKE]
    return list(_levels(lines))


def headings_of_lines(lines: Sequence[tuple[str, bool]]) -> list[Heading]:
    """The headings among lines that a file itself sets in the middle, with their places among them as starts.

    A line is its text, or "" where it is prose, and whether it is bold. Headings stand above prose. The title below
    a number, as in "ARTICLE IV" and "TOLLS AND DUES", is part of one heading of two lines.
    """
    found: list[_Centred] = []
    opens = False
    for place in range(len(lines) - 1, -1, -1):
        title, is_bold = lines[place]
        if not title or (title[0] == "(" and title[-1] == ")"):  # prose, or what a cause of action is
            opens |= not title
            continue
        number, is_part = _number(title), is_part_of_opinion(title)
        is_title = number is not None or _names_part(title) or _is_in_capitals(title)
        is_title = is_title or (is_bold and could_be_title(title) and not re.search(r"\d{4}", title))
        is_party = place > 0 and _VERSUS.fullmatch(lines[place - 1][0]) is not None
        is_caption = (
            is_party or len(title) > _FULL_LINE * 2 or _CAPTION.search(title) or (not number and names_court(title))
        )
        opens = opens and (is_part or (is_title and not is_caption))
        if opens:
            below = found[-1] if found and found[-1].start == place + 1 else None
            whole = f"{title} {below.title}" if below is not None and not (below.number or below.is_part) else ""
            if number and not number.title and parse(whole) and below is not None and _is_titled(below.title):
                title, number = whole, _number(whole)
                del found[-1]
            found.append(_Centred(title, place, 0, "", "", "", number, is_part))
    return list(_levels(found[::-1]))


def title_of_lines(lines: Sequence[tuple[str, bool]]) -> str:
    """The first of the lines of `headings_of_lines`, where it looks like the title of the whole; "" for none."""
    title, is_bold = lines[0] if lines else ("", False)
    is_title = bool(title) and (is_bold or title.isupper()) and could_be_title(title)
    return title if is_title and not (names_court(title) or names_part(title) or is_part_of_opinion(title)) else ""


def _centred_candidates(text: str) -> Iterator[_Centred]:
    shouted = sum(map(str.isupper, text)) > 0.3 * len(text)
    taken = 0
    for match in _INDENTED.finditer(text):
        if match.start() < taken:
            continue
        title, taken = _heading_of_lines(text, match)
        number, is_part = _number(title), is_part_of_opinion(title)
        is_title = _names_part(title) or (not shouted and _is_in_capitals(title))
        if not (number or is_part or is_title):
            continue
        if not is_part and (_CAPTION.search(title) or (number is None and names_court(title))):
            continue
        indent = len(match["indent"].expandtabs())
        if not _is_in_the_middle(text, match, indent, slack=10 if is_part else 5):
            continue
        following = text[taken + 1 : taken + 1 + _WINDOW]
        before = text[: match.start()] if match.start() < _WINDOW else text[match.start() - _WINDOW : match.start()]
        above = before[:-1].rpartition("\n")[2] if text[match.start()] != "\f" else ""
        below = following.partition("\n")[0]
        yield _Centred(title, match.start("indent"), indent, above, below, following.lstrip("\n\f"), number, is_part)


def _heading_of_lines(text: str, match: re.Match[str]) -> tuple[str, int]:
    """A centred line, with the lines below it up to a blank one where all are one heading, and its end."""
    lines = [match]
    while len(lines) < _MOST_LINES and (below := _NEXT.match(text, lines[-1].end())) is not None:
        lines.append(below)
    end, bare = lines[-1].end(), _BARE.fullmatch(match["title"])
    title = " ".join(line["title"] for line in lines)
    is_heading = _names_part(title) or (parse(title) is not None and _is_titled(lines[-1]["title"].rstrip(".")))
    if (
        is_heading
        and len(lines) > 1
        and not text[end + 1 : end + 1 + _WINDOW].partition("\n")[0].strip()
        and not (bare and bare["decimal"])
        and all(abs(_middle(line) - _middle(match)) <= _MOST_ASIDE for line in lines)
    ):
        return title, end
    return match["title"], match.end()


def _middle(line: re.Match[str]) -> float:
    return len(line["indent"].expandtabs()) + len(line["title"]) / 2


def _is_titled(title: str) -> bool:
    return could_be_title(title) and (_TITLE_CASE.fullmatch(title) is not None or _is_in_capitals(title))


def _names_part(title: str) -> bool:
    return _PART_OF_PAPER.search(title) is not None and _is_titled(title)


def _number(title: str) -> Numbered | None:
    match = _BARE.fullmatch(title)
    if match is None:
        number = parse(title)
        is_address = number is not None and number.kind is LineKind.DECIMAL and "." not in title.split()[0]
        return None if is_address else number
    if match["roman"]:
        return Numbered(LineKind.ROMAN, (roman_value(match["roman"]),), 1, "")
    if match["letter"]:
        return Numbered(LineKind.LETTER, (ord(match["letter"]) - ord("A") + 1,), 1, "")
    return Numbered(LineKind.DECIMAL, (int(match["decimal"]),), 1, "")


def _is_in_capitals(title: str) -> bool:
    return title.isupper() and could_be_title(title) and _CENTRED_CAPITALS.fullmatch(title) is not None


def _is_in_the_middle(text: str, match: re.Match[str], indent: int, slack: int) -> bool:
    around = text[max(0, match.start() - _WINDOW) : match.start()], text[match.end() : match.end() + _WINDOW]
    middle = _middle(match)
    for block in around[::-1]:
        full = [
            line for line in block.split("\n")[1:] if len(line.rstrip()) >= _FULL_LINE and "   " not in line.strip()
        ]
        if full:
            left = min(len(line) - len(line.lstrip()) for line in full)
            right = sorted(len(line.rstrip()) for line in full)[len(full) // 2]
            width = right - left
            if indent - left >= 6 and abs(middle - (left + right) / 2) <= max(slack, 0.1 * width):
                return len(match["title"]) <= 0.85 * width
    return not any(len(line) >= _FULL_LINE for block in around for line in block.split("\n")) and (
        int(middle) in _USUAL_MIDDLES
    )


def _opening(lines: Sequence[_Centred]) -> list[_Centred]:
    """Leave out lines that do not open prose: lines of addresses, captions, poems and quotes, and page numbers."""
    found: list[_Centred] = []
    for place in range(len(lines) - 1, -1, -1):
        line, above = lines[place], lines[place - 1] if place else None
        first = line.body.partition("\n")[0]
        is_above = above is not None and above.title == line.above.strip()
        is_over = bool(found and first.strip()) and found[-1].title.startswith(first.strip())
        before, after = line.above.strip(), line.below.strip()
        is_alone = not (before or after)
        if line.title.isupper() and (not before or _SENTENCE_END.search(before)):  # in text without blank lines
            is_alone |= not after[:1].islower() and line.number is None
        if line.is_bare:  # between the last line of a paragraph and the first of the next
            opens = is_over or not after or after[0].isupper() or not after[0].isalnum()
            is_alone = opens and (is_above or not before or _SENTENCE_END.search(before) is not None)
            if line.number is not None and line.number.kind is LineKind.DECIMAL and not is_above:
                is_alone = is_alone and bool(before and after)  # else a page number
        if is_alone and line.body.strip() and (is_over or line.is_part or _is_prose(line)):
            found.append(line)
    return found[::-1]


def _is_prose(line: _Centred) -> bool:
    """Whether the text below a line is not centred itself, and no verse."""
    block = _IN_PARENTHESES.sub("", line.body).partition("\n\n")[0].split("\n")
    if not block[0].strip() or len(block[0]) - len(block[0].lstrip()) > line.indent - 4:
        return False
    rows = [row.strip() for row in block if row.strip()]
    is_verse = (
        len(rows) > 1
        and max(map(len, rows)) < _FULL_LINE
        and all(row.lstrip("\"'\u201c")[:1].isupper() for row in rows)
    )
    return not is_verse


def _levels(lines: Sequence[_Centred]) -> Iterator[Heading]:
    """Number the levels: parts of an opinion, then capitals and roman numbers, letters, arabic numbers."""
    last: dict[LineKind, int] = {}
    base, before = 1, ""
    for line in lines:
        level, number = base, line.number
        if line.is_part:
            if line.title.casefold() == before:
                continue
            level, base = 1, 2
            last.clear()
        elif number is None or number.kind is LineKind.NAMED:
            level = base if number is None else number.level
            last.pop(LineKind.LETTER, None)
            last.pop(LineKind.DECIMAL, None)
        else:
            kind, value = number.kind, number.number[0]
            if (
                kind is LineKind.ROMAN
                and len(line.title.rstrip(".")) == 1
                and last.get(LineKind.LETTER) == ord(line.title[0]) - 65
            ):
                kind, value = LineKind.LETTER, ord(line.title[0]) - 64
            order = (LineKind.ROMAN, LineKind.LETTER, LineKind.DECIMAL)
            above = [other for other in order[: order.index(kind)] if other in last]
            is_new = (
                value == last.get(kind, 0)
                if len(number.number) > 1
                else last.get(kind, 0) < value <= last.get(kind, 0) + 2
            )
            if not is_new or (line.is_bare and kind is not LineKind.ROMAN and not above):
                continue
            level += len(above) + len(number.number) - 1
            last = {other: last[other] for other in above} | {kind: value}
        before = line.title.casefold()
        yield Heading(line.title, level, line.start)


_RULE = regex(r"([=\-~^\"'`#*+:._])\1{2,}[ \t]*$")
_BLANK_LINES = regex(r"\n(?:[ \t]*+\n){4,}+")  # possessive: no memory for each line
_DIGITS = regex(r"\d+")
_COLUMNS = regex(r"\S(?:\s{3,}|\t)\S")
_CAPITALS = regex(r"(?=.*[^\W\d_]{4})[^\W\d_](?:: |[^\W_]|[ .,?!&()/'\"\u2018\u2019\u2013-])*")  # no formula, no code
_KNOWN = frozenset([
    "abstract", "introduction", "background", "summary", "overview", "motivation", "preface", "foreword", "conclusion",
    "conclusions", "discussion", "methods", "method", "methodology", "results", "evaluation", "experiments",
    "references", "bibliography", "acknowledgements", "acknowledgments", "appendix", "contents", "specification",
    "table of contents", "rationale", "limitations", "glossary", "claims", "description", "beschreibung", "ansprüche",
    "patentansprüche", "zusammenfassung", "einleitung", "revendications", "résumé", "reivindicaciones", "syllabus",
])  # fmt: skip
_ENOUGH_RULED = 3  # a text with this many underlined headings uses no other kind
_RUNNING_HEAD = 3  # a line that occurs this often, digits aside, is no heading
_MAX_NUMBERED = 50_000  # headings of one text
_MAX_INDENT, _MAX_CHARS = 3, 120


@dataclass(frozen=True, slots=True)
class _Line:
    """A line with a blank one above it."""

    text: str
    start: int
    below: str
    is_outdented: bool  # starts left of the text below it
    is_over_title: bool  # a line with a blank one below it

    @property
    def has_space_below(self) -> bool:
        return not self.below.strip()

    @property
    def opens_body(self) -> bool:
        """Whether there is space below the line, or a new sentence that cannot continue it."""
        below = self.below.strip()
        return not below or (below[0].isupper() and not below.isupper() and len(self.text) * 4 < len(below) * 3)


def names_part(title: str) -> bool:
    """Whether a title is that of a part of many documents, such as "Abstract" or "Beschreibung"."""
    return title.strip(" :").lower() in _KNOWN


def find_headings(text: str) -> list[Heading]:
    """Find headings that are underlined, numbered, in capitals, of known words, outdented, or centred."""
    lines, starts = _lines(text)
    ruled = list(_ruled(lines, starts))
    if len(ruled) >= _ENOUGH_RULED:
        return ruled
    taken = {heading.start for heading in ruled}
    candidates = [line for line in _candidates(lines, starts) if line.start not in taken]
    numbered = list(_in_sequence(_without_lists(_numbered(candidates), text)))
    taken |= {heading.start for heading in numbered}
    plain = _plain((line for line in candidates if line.start not in taken), lines)
    centred = centred_headings(text)
    if any(is_part_of_opinion(heading.title) for heading in centred):
        plain = (heading for heading in plain if not names_court(heading.title))
    flush = [*ruled, *numbered, *plain]
    taken = {heading.start for heading in flush}
    others = [heading for heading in centred if heading.start not in taken]
    return sorted([*flush, *others], key=lambda heading: heading.start)


def _lines(text: str) -> tuple[list[str], list[int]]:
    """The lines and their offsets; a run of more than three blank lines is cut to three."""
    lines: list[str] = []
    starts: list[int] = []
    place = 0
    for stop, after in [*(match.span() for match in _BLANK_LINES.finditer(text)), (len(text), len(text))]:
        block = text[place:stop].split("\n")
        starts.extend(accumulate((len(line) + 1 for line in block[:-1]), initial=place))
        lines += block
        if after > stop:
            lines += [""] * 3
            starts += [stop + 1] * 3
        place = after
    return lines, starts


def _ruled(lines: Sequence[str], starts: Sequence[int]) -> Iterator[Heading]:
    """Titles underlined, and maybe overlined, with one character; as in reStructuredText, first uses set the levels."""
    levels: dict[tuple[str, bool], int] = {}
    for number in range(1, len(lines)):
        match = _RULE.match(lines[number])
        title = lines[number - 1].strip()
        if match is None or not title or _RULE.match(title) or not could_be_title(title):
            continue
        above = lines[number - 2].rstrip() if number > 1 else ""
        is_overlined = bool(above) and above == lines[number].rstrip()
        if (above.strip() and not is_overlined) or (lines[number - 1][0].isspace() and not is_overlined):
            continue
        if not 0.6 * len(title) <= len(match.group().rstrip()) <= 2 * len(title) + 20:
            continue
        level = levels.setdefault((match.group(1), is_overlined), len(levels) + 1)
        yield Heading(title, level, starts[number - 2 if is_overlined else number - 1])


def _candidates(lines: Sequence[str], starts: Sequence[int]) -> Iterator[_Line]:
    is_indented = _share(lines, lambda line: line.startswith("  ")) > 0.6
    for number, line in enumerate(lines):
        is_first = not number or not lines[number - 1].strip() or line.startswith("\f")
        if not is_first or not line.strip():
            continue
        below = lines[number + 1] if number + 1 < len(lines) else ""
        indent = len(line) - len(line.lstrip(" \f"))
        is_over_last = bool(below.strip()) and not "".join(lines[number + 2 : number + 3]).strip()
        is_over_title = is_over_last and could_be_title(below.strip())
        if _ITEM.match(line):
            if is_over_last and parse(whole := f"{line.rstrip()} {below.strip()}") is not None:
                line, below = whole, ""
        elif len(line) > _MAX_CHARS or indent > _MAX_INDENT or line.strip()[0] in "|+>-*":
            continue
        body = next((below for below in lines[number + 1 : number + 4] if below.strip()), "")
        is_outdented = is_indented and indent == 0 and body.startswith("  ")
        yield _Line(line, starts[number], below, is_outdented, is_over_title)


def _numbered(candidates: Iterable[_Line]) -> list[tuple[_Line, Numbered]]:
    """Numbered lines; none if there are over `_MAX_NUMBERED`, which must be the items of a list."""
    found: list[tuple[_Line, Numbered]] = []
    candidates = list(candidates)
    bare = {line.text.strip() for line in candidates if line.has_space_below and _BARE.fullmatch(line.text.strip())}
    for line in candidates:
        numbered = parse(line.text)
        if numbered is None and line.text.strip() in bare and "II" in bare and not line.text.strip().isdecimal():
            numbered = _number(line.text.strip())
        if numbered is None:
            continue
        is_split = line.is_over_title and numbered.kind is LineKind.NAMED and not numbered.title
        if line.opens_body or is_split:
            found.append((line, numbered))
            if len(found) > _MAX_NUMBERED:
                return []
    return found


def _without_lists(pairs: list[tuple[_Line, Numbered]], text: str) -> list[tuple[_Line, Numbered]]:
    """Leave out neighbours of one level with nothing between them: they are the items of a list or of contents."""
    in_list = [False] * len(pairs)
    for place, ((line, a), (after, b)) in enumerate(pairwise(pairs)):
        between = text[line.start + len(line.text) : after.start]
        if not between.strip() and a.kind is b.kind and a.level == b.level:
            in_list[place] = in_list[place + 1] = True
    return [pair for pair, is_item in zip(pairs, in_list, strict=True) if not is_item]


def _in_sequence(found: Iterable[tuple[_Line, Numbered]]) -> Iterator[Heading]:
    """Keep numbers that continue the last number of their kind; numbers of lists and citations seldom do."""
    last: dict[LineKind, tuple[int, ...]] = {}
    for line, numbered in found:
        kind, level = numbered.kind, numbered.level
        if kind is LineKind.NAMED:
            if level < 3:
                last.clear()
        elif not _goes_on(last, numbered):
            continue
        else:
            if kind is LineKind.ROMAN:
                last.pop(LineKind.LETTER, None)
            last[kind] = numbered.number
            level += kind is LineKind.LETTER and LineKind.ROMAN in last
        yield Heading(line.text.strip(), level, line.start)


def _goes_on(last: dict[LineKind, tuple[int, ...]], numbered: Numbered) -> bool:
    if numbered.kind is LineKind.LETTER and len(numbered.number) == 1 and not last:
        return False  # "A. Cooper"
    before = last.get(numbered.kind, (-1,))
    return before < numbered.number and numbered.number[0] <= max(before[0], 0) + 3


def _plain(candidates: Iterable[_Line], lines: Sequence[str]) -> Iterator[Heading]:
    is_shouted = _share(lines, str.isupper) > 0.3
    found = [line for line in candidates if _is_plain_heading(line, is_shouted)]
    if not found:
        return
    wanted = {_mask(line.text) for line in found}
    repeats = Counter(mask for line in lines if len(line) <= _MAX_CHARS and (mask := _mask(line)) in wanted)
    for line in found:
        if repeats[_mask(line.text)] < _RUNNING_HEAD:
            yield Heading(line.text.strip(), 1, line.start)


def _mask(line: str) -> str:
    return _DIGITS.sub("0", line.strip())


def _is_plain_heading(line: _Line, is_shouted: bool) -> bool:
    title = line.text.strip()
    if is_part_of_opinion(title):
        return line.has_space_below
    if is_contents_line(title) or _COLUMNS.search(title) or not could_be_title(title):
        return False
    if names_part(title):
        return line.opens_body
    if title.isupper():
        return not is_shouted and line.opens_body and _CAPITALS.fullmatch(title) is not None
    return line.is_outdented and line.has_space_below and title[0].isupper()


def _share(lines: Sequence[str], is_so: Callable[[str], bool]) -> float:
    """The share of characters that are in lines for which `is_so` holds."""
    return sum(len(line) for line in lines if is_so(line)) / max(1, sum(len(line) for line in lines))
