"""Makes a text fit to store, and text from outside (titles, names, texts, file names) safe to show."""

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import DocumentError

if TYPE_CHECKING:
    regex = re.compile
else:

    class regex:
        """A regular expression that is compiled when it is first used, as start-up is most of a query."""

        def __init__(self, pattern: str, flags: int = 0) -> None:
            self.pattern, self._flags = pattern, flags

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401
            self.__dict__[name] = value = getattr(re.compile(self.pattern, self._flags), name)
            return value


MAX_DOCUMENT_BYTES = 32 * 2**20  # the text of one document, in UTF-8
_FORBIDDEN = regex("[\x00\ud800-\udfff]")


def clean(text: str) -> str:
    """Normalise newlines; NUL and lone surrogates, which no store accepts, become U+FFFD."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return printable(text)


def printable(text: str) -> str:
    """Replace NUL and lone surrogates by U+FFFD; the length does not change."""
    return text.replace("\0", "\ufffd") if text.isascii() else _FORBIDDEN.sub("\ufffd", text)


def one_line(text: str) -> str:
    """Runs of white space become one space."""
    return " ".join(printable(text).split())


_SOUTHEAST = "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
# Han, kana and their signs.
_UNSPACED = f"{_SOUTHEAST}\u3001-\u3029\u3030-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff60\U00020000-\U0003ffff"
_UNSPACED_CHAR = regex(f"[{_UNSPACED}]")
_UNSPACED_BREAK = regex(f"(?<=[{_UNSPACED}])[ \\t]*\\n\\s*(?=[{_UNSPACED}])")
_SOFT_BREAK = regex("\u00ad[ \\t]*\\n\\s*")
_IN_BRACKETS = regex(r"[(\[][\d,; \u2013-]*[,;\u2013-]$")
_ROMAN = regex(r"(?:^|(?<![^\W\d_]))[IVXLCDM]+$")


def is_unspaced(before: str, after: str) -> bool:
    """Whether two characters belong to scripts that have no spaces between words."""
    return _UNSPACED_CHAR.match(before) is not None and _UNSPACED_CHAR.match(after) is not None


def joined_lines(text: str) -> str:
    """Join lines that break between two characters of a script without spaces."""
    return text if text.isascii() else _UNSPACED_BREAK.sub("", _SOFT_BREAK.sub("", text))


RIGHT_TO_LEFT, _LEFT_TO_RIGHT = regex("[\u0590-\u08ff]"), regex("[A-Za-z\u00c0-\u058f]")


def has_both_directions(text: str) -> bool:
    """Whether a text has letters that run to the left, and some that run to the right."""
    return RIGHT_TO_LEFT.search(text) is not None and _LEFT_TO_RIGHT.search(text) is not None


def as_read(seen: Iterable[str]) -> str:
    """The words of a line, which are seen from left to right, as they are read: most letters decide its direction."""
    words = list(seen)
    rights, lefts = (sum(len(pattern.findall(word)) for word in words) for pattern in (RIGHT_TO_LEFT, _LEFT_TO_RIGHT))
    is_leftward = rights > lefts
    along, against = (RIGHT_TO_LEFT, _LEFT_TO_RIGHT) if is_leftward else (_LEFT_TO_RIGHT, RIGHT_TO_LEFT)
    run: list[str] = []  # of words against the direction, and numbers between them
    ordered: list[str] = []
    for word in [*(reversed(words) if is_leftward else words), ""]:
        is_neutral = bool(word) and not any(map(str.isalpha, word)) and (bool(run) or is_leftward)
        if is_neutral or (against.search(word) and not along.search(word)):
            run.append(word)
            continue
        stop = max((at for at, one in enumerate(run, 1) if against.search(one)), default=0)
        ordered += [*reversed(run[:stop]), *run[stop:], word]
        run = []
    return " ".join(ordered[:-1])


_HYPHENATED = regex(r"(?<![^\W\d_])(?<!\s-)([^\W\d_]+)[-\u2010\u00ad¬][ \t]*\n[ \t]*([^\W\d_]+)(\S*)[ \t]?")
_WORD = regex(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_LETTERS = f"{_SOUTHEAST}\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff"
_UNSPACED_LINES = regex(f"(?<=[{_LETTERS}、，])[ \\t]*\\n[ \\t]*(?=[{_LETTERS}])")
_INVISIBLE = regex(
    "\u00ad(?![ \t]*\n)|[\u2060\ufeff]|(?<=[a-zA-Z\u00c0-\u024f])\u200b(?=[a-zA-Z\u00c0-\u024f])"
    "|(?<=\\s)\u200b|\u200b(?=\\s|\\Z)"
)
CUT_NUMBER = regex(  # "COVID-19", "12-year-old"
    r"(?<=[^\W_])-\n[ \t]*(?=\d+(?![\d.)]))|(?<=\d)-\n[ \t]*(?=[^\W\d_]{3})(?![A-Z])"
)
_HYPHEN_AT_END = regex("[-\u2010\u00ad¬][ \t]*\n")  # found faster than whole words
_SHARE_HYPHENATED = 0.01  # of the lines end with a hyphen, in text that was set
_LEAST_UNSPACED = 12  # characters of a full line in a script without spaces


def without_invisible(text: str) -> str:
    """Leave out soft hyphens inside of a line, and blanks of no width inside of words."""
    is_plain = text.isascii() or not any(sign in text for sign in "\u00ad\u200b\u2060\ufeff")
    return text if is_plain else _INVISIBLE.sub("", text)


def joined_words(text: str, *, was_set: bool = False) -> str:
    """Join words that a hyphen cuts at the end of a line, and lines of scripts without spaces.

    In a text that is not known to be set in type, a few hyphens at the ends of lines belong to their words.
    """
    if not text.isascii():
        text = _UNSPACED_LINES.sub(_full_line, without_invisible(text))
    n_least = 1 if was_set else max(1, _SHARE_HYPHENATED * (text.count("\n") + 1))
    if len(_HYPHEN_AT_END.findall(text)) < n_least:
        return text
    if len(_HYPHENATED.findall(text)) >= n_least:
        known = vocabulary(text)
        text = _HYPHENATED.sub(lambda match: _whole_word(match, known), text)
    return CUT_NUMBER.sub("-", text)


def vocabulary(text: str) -> frozenset[str]:
    """The words of a text that no line cuts, in small letters; of compounds also each pair, and "non-" and "-based"."""
    known = set(_WORD.findall(_HYPHENATED.sub(" ", text).lower()))
    for word in [word for word in known if "-" in word]:
        parts = word.split("-")
        known.update(f"{a}-{b}" for a, b in pairwise(parts))
        known.update(f"{part}-" for part in parts[:-1])
        known.update(f"-{part}" for part in parts[1:])
    return frozenset(known)


def _full_line(match: re.Match[str]) -> str:
    """ "" where the line before is long enough to be full; a short line ends where its author ended it."""
    start = match.string.rfind("\n", max(0, match.start() - 200), match.start()) + 1
    return "" if match.start() - start >= _LEAST_UNSPACED else match.group()


_HANGING = regex(  # "pre- and post-war"
    r"(?:pre|post|pro|non|anti|sub|inter|intra|mid|short|long|low|high|one|two|three|first|second|upper|lower|over|under)"
    r"-(?:and|or|to)|[^\W\d_]+-(?:und|oder|bzw)"
)
_COMPOUND = regex(  # in English, French and Russian
    r"(?:twen|thir|for|fif|six|seven|eigh|nine)ty-(?:one|two|three|four|five|six|seven|eight|nine|first|second|third"
    r"|(?:four|fif|six|seven|eigh|nin)th)|well-(?!ness|head|spring)\w{3,}|self-(?!ish|less|same|hood)\w{3,}|so-called"
    r"|(?:ci|là)-(?:dessus|dessous|contre|après|jointe?s?|devant|bas|haut|dedans)|(?:celui|celle|ceux|celles)-(?:ci|là)"
    r"|peut-être|\w{3,}-mêmes?|(?:au|par)-(?:dessus|dessous|delà|devant)|vis-à|est-(?:à|ce)|à-(?:vis|dire)"
    r"|(?:est|sont|ont|dit|fait|peut|doit|faut|sait|va)-(?:t|ils?|elles?|on)|(?:vingt|trente|quarante|cinquante"
    r"|soixante)-(?:deux|trois|quatre|cinq|six|sept|huit|neuf|dix)|quatre-vingts?"
    r"|(?:кто|что|как(?:ой|ая|ое|ие|ого|ую)?|где|когда|куда|откуда|почему)-(?:то|нибудь|либо)|из-(?:за|под)"
    r"|во-(?:первых|вторых|третьих)|по-(?:прежнему|видимому|моему|своему|\w+ски)"
)
_ENGLISH = Path(__file__).with_name("english.txt")  # of the vocabulary of BERT (Apache-2.0), from three letters on
_ELSEWHERE = frozenset(["und", "der", "les", "des", "het", "een", "och", "della", "los", "las", "uma"])
_AFFIXES = frozenset(
    "over under super inter sub out micro macro photo bio geo thermo counter fore back down with through semi anti "
    "auto tele post pre trans mis dis per pro mono proto con syn dia man men ship like wise less able age ally ing "
    "est ate ness ful full hood ment line lines".split()
)
_SHORT_WORD = 4  # letters; "the" in "state-of-the-art"
_PREFIXES = frozenset(["non", "multi", "quasi", "pseudo", "vice", "half", "cross"])


def _whole_word(match: re.Match[str], known: frozenset[str]) -> str:
    is_of_three = match.string[match.start() - 1 : match.start()] == "-" or match[3][:1] == "-"
    is_soft = "\u00ad" in match.group() and f"{match[1]}-{match[2]}".lower() not in known
    hyphen = "" if is_soft else hyphen_of(match[1], match[2], known, is_of_three=is_of_three)
    return f"{match[1]}{hyphen}{match[2]}{match[3]}\n"


def hyphen_of(head: str, tail: str, known: frozenset[str], *, is_of_three: bool = False) -> str:
    """What stands between the parts of a word that a hyphen divides at the end of a line: "-", "- " or nothing.

    `known` is the vocabulary of the text; in English its common words are known too. A hyphen
    stays before a capital, where the text has the compound elsewhere, or words that have one of its parts beside a
    hyphen ("non-" with a known tail), where the parts are words and the compound has more parts, or where both are
    common words. The word without a hyphen precedes all of that.
    """
    first, last = head.lower(), tail.lower()
    compound = f"{first}-{last}"
    if _HANGING.fullmatch(compound):
        return "- "
    if len(head) == 1 or _COMPOUND.fullmatch(compound):
        return "-"
    if first + last in known:
        return ""
    is_name = tail[0].isupper() and not head.isupper()
    is_like_others = (last in known and f"{first}-" in known) or (first in known and f"-{last}" in known)
    if is_name or compound in known or is_like_others:
        return "-"
    common = _common_words() if "the" in known and known.isdisjoint(_ELSEWHERE) else frozenset[str]()
    if not common.isdisjoint((first + last, (first + last).removesuffix("s"))):
        return ""
    is_compound = common >= {first, last} and _AFFIXES.isdisjoint((first, last))
    n_words = (first in known) + (last in known)
    is_of_words = n_words == 2 or (first in known and len(first) < _SHORT_WORD)
    return "-" if first in _PREFIXES or is_compound or (is_of_three and is_of_words) else ""


@lru_cache
def _common_words() -> frozenset[str]:
    """The common words of English."""
    return frozenset(_ENGLISH.read_text("utf-8").split())


_HAN = "\u3400-\u9fff\u3005"
_READING = regex(
    f"｜([^《｜\n]{{1,20}})《[\u3041-\u30ff]{{1,20}}》|(?<=[{_HAN}])《[\u3041-\u30ff]{{1,20}}》"
    f"|[{{\\[]([{_HAN}]{{1,20}})(?:\\||\\]{{)[\u3041-\u30ff|]{{1,40}}}}"
    f"|:ruby:`([{_HAN}]{{1,20}})[|<（][\u3041-\u30ff]{{1,40}}[>）]?`(?:\\\\ )?"
)


def without_readings(text: str) -> tuple[str, int]:
    """Leave out readings, as in 水門《すい》, {水門|すい} and [水門]{すい}; returns the rest and their number."""
    if text.isascii():
        return text, 0
    return _READING.subn(lambda match: next(filter(None, match.groups()), ""), text)


_DELETED = regex(r"(?:<|&lt;)DELETED(?:>|&gt;)((?:(?!(?:<|&lt;)/?DELETED).)*+)(?:<|&lt;)/DELETED(?:>|&gt;)", re.S)


def without_deleted(text: str) -> tuple[str, int]:
    """Leave out what a bill marks as <DELETED>; returns the rest and the number of these words."""
    if "DELETED" not in text:
        return text, 0
    n_words = sum(len(match[1].split()) for match in _DELETED.finditer(text))
    return _DELETED.sub("", text), n_words


# Begins with the newline before a line, which is found faster than its beginning.
_SPACED_OUT = regex(r"\n[ \t]*(?:[^\W\d_a-z] {1,4}){5,40}[^\W\d_a-z][ \t]*(?=\n|\Z)")


def without_gaps(text: str) -> str:
    """Write lines of capitals that are spaced out, as "A B S T R A C T", as words; letters in order are no word."""

    def joined(match: re.Match[str]) -> str:
        letters = "".join(match.group().split())
        is_list = ord(letters[-1]) - ord(letters[0]) == len(letters) - 1 or len(set(letters)) < 4
        return match.group() if is_list else re.sub(r"(\S) (?=\S)", r"\1", match.group())

    return _SPACED_OUT.sub(joined, f"\n{text}")[1:]


def grouped(text: str) -> str:
    """In parentheses, unless it is one number or name."""
    return text if len(text) < 2 or text.isalnum() else f"({text})"


def raised(before: str, text: str, *, is_link: bool = False) -> str:
    """A superscript behind other text: "^12", but the letters of "1st" as they are, unless they link to a note."""
    mark = text.strip()
    if not before.strip():
        return f"{text} " if mark.isalnum() else text
    is_negative = mark[:1] in "-+\u2212\u2013" and mark[1:2].isdigit() and before[-1].isalnum()
    is_apart = before[-1].isspace() or before[-1] in "([{" or _IN_BRACKETS.search(before)
    if is_apart or not (mark[:1].isalnum() or is_negative):
        return text
    if (
        mark.isalpha()
        and not (is_link and len(mark) == 1)
        and (
            (len(mark) > 1 and not mark.isupper()) or before[-1].isdigit() or (mark in "aeo" and _ROMAN.search(before))
        )
    ):
        return text
    return f"^{text.lstrip()}"


def check_text(text: str) -> None:
    """Refuse a text over `MAX_DOCUMENT_BYTES`.

    Raises:
        DocumentError: the text is too large.
    """
    if len(text) * 4 <= MAX_DOCUMENT_BYTES:
        return
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_DOCUMENT_BYTES:
        raise too_large("text", f"{size:,}", MAX_DOCUMENT_BYTES)


def too_large(what: str, size: str, limit: int) -> DocumentError:
    """The error for something of `size` bytes where `limit` are allowed."""
    return DocumentError(f"the {what} is {size} bytes, the limit is {limit:,}; split it into several documents")


_DATA = regex(  # begins with its letters, which is found fast
    r"data:(?<=\bdata:)(?:[\w.+/-]{1,60};base64,[A-Za-z0-9+/=]+"
    r"|[\w.+-]{1,40}/[\w.+-]{1,40}(?:;[\w=.-]{1,40}){0,3},[\w+/=%.!~*'&?:@-]{60,})"
)
_ENCODED = regex(
    r"^begin [0-7]{3} [^\n]{1,200}\n(?:[ -`]{1,61}\n)++end[ \t]*$|(?<!\w)(?:[0-9a-f]{120,}|[0-9A-F]{120,})(?!\w)"
    r"|(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{200,}={0,2}|(?:^[ \t]{0,8}[A-Za-z0-9+/]{60,76}={0,2}[ \t]*\n){4,}",
    re.MULTILINE,
)
_LEAST_ENCODED = 60  # characters of a line of encoded bytes
_HAS_LONG = regex(  # by steps of half the least length: fast
    r"(?:(?![A-Za-z0-9+/]{30}).{30})*+[A-Za-z0-9+/]{30}", re.DOTALL
)
_RUN = regex(r"[A-Za-z0-9+/]{120}")
_LINE_OF_BYTES, _LEAST_LINES = regex(rf"[A-Za-z0-9+/]{{{_LEAST_ENCODED},76}}={{0,2}}"), 4
_HEX = regex(r"(?=\d*[A-Fa-f])[\dA-Fa-f]+")
_LOWER, _UPPER, _DIGIT = regex("[a-z]"), regex("[A-Z]"), regex("[0-9]")


def without_encoded(text: str) -> tuple[str, int]:
    """Leave out bytes that are written as text (base64), such as pictures; returns the rest and their number."""
    rest = _DATA.sub("", text) if "data:" in text else text
    n_chars, text = len(text) - len(rest), rest
    long = [word for word in text.split() if len(word) >= _LEAST_ENCODED] if _HAS_LONG.match(text) else []
    has_lines = sum(map(bool, map(_LINE_OF_BYTES.fullmatch, long))) >= _LEAST_LINES
    if not has_lines and not any(map(_RUN.search, long)) and "\nbegin 6" not in text:
        return text, n_chars

    def leave_out(match: re.Match[str]) -> str:
        nonlocal n_chars
        run = match.group()
        is_hex = _HEX.fullmatch(run) is not None
        is_mixed = is_hex or (_LOWER.search(run) and _UPPER.search(run))
        if not run.startswith("begin ") and not (is_mixed and _DIGIT.search(run)):
            return run  # a rule, or a sequence of genes
        n_chars += len(run)
        return "\n" if run.endswith("\n") else ""

    text = _ENCODED.sub(leave_out, text)
    return text, n_chars


REPLACEMENT = "\ufffd"
# Control characters, marks that turn the direction of what follows, lone surrogates, and what XML does not allow.
_UNSAFE = regex("[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_BREAKS = regex("\r\n|[\t\n\x0b\x0c\r\x1c-\x1e\x85\u2028\u2029]")
_ALL_BREAKS_BUT_NEWLINE = regex("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# `json.dumps` leaves these as they are; some terminals obey them, and some programs end a line at them.
_ESCAPED = regex("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def safe(text: str, *, lines: bool = False) -> str:
    """A text that can do nothing but be read: what a terminal or XML would obey or refuse becomes U+FFFD.

    Line breaks and tabs become blanks; with `lines` they stay, every line break as a newline.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _ALL_BREAKS_BUT_NEWLINE.sub("\n", text) if lines else _BREAKS.sub(" ", text)
    return _UNSAFE.sub(REPLACEMENT, text)


def json_text(value: Any, *, indent: int | None = None) -> str:  # noqa: ANN401
    """A value as JSON, without loss: what a terminal would obey is escaped as \\uXXXX."""
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", written)
