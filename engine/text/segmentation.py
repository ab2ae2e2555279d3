"""Parts of a text as offsets: spans, headings, sections, sentences, chunks, and how a text is cut into them.

Every cut keeps the whole text: sections cover it without gaps, and the chunks
of a section hold each of its tokens exactly once.
"""

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from engine.text.cleaning import regex


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of `Document.text`, `stop` exclusive."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading as a reader found it; its section runs from `start` to the next heading."""

    title: str
    level: int  # 1 is the outermost
    start: int  # offset of the heading's own line in the text


@dataclass(frozen=True, slots=True)
class Section:
    """A headed part of a document, its heading line included.

    Sections follow each other without gaps and cover the whole text, so that
    nothing of a document is outside every section.
    """

    heading: str  # "" where the document has none here
    path: tuple[str, ...]  # headings above it, outermost first; ends with its own
    start: int
    stop: int
    n_merged: int = 1  # headed parts that were joined here because they were tiny
    part: int = 1  # this section is part 1 .. n_parts of one that was huge
    n_parts: int = 1

    @property
    def span(self) -> Span:
        """Its stretch of the text."""
        return Span(self.start, self.stop)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A window of tokens that is encoded as one vector.

    Windows end where sections end, except in encoders that follow a paper whose windows run across sections.
    """

    section: int  # position in the document, from 0, of the section in which the window begins
    start: int
    stop: int
    n_tokens: int  # without the special tokens


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a document the encoder read; for a query, how much of it was searched with."""

    tokens_read: int
    tokens_total: int
    chunks_pooled: int = 1  # most neighbouring chunks that one vector of a very long query represents

    @property
    def share(self) -> float:
        """In [0, 1]; 1 for a document without tokens."""
        return self.tokens_read / self.tokens_total if self.tokens_total else 1.0


MIN_SECTION_CHARS = 200  # a shorter headed part is joined with its neighbour
MAX_SECTION_CHARS = 8_000  # a longer one is cut at paragraph borders


def divide(text: str, headings: Iterable[Heading] = ()) -> tuple[Section, ...]:
    """Cut a text at its headings into sections that cover it without gaps.

    Parts under `MIN_SECTION_CHARS` are joined with what follows (at the end: with
    what precedes), parts over `MAX_SECTION_CHARS` are cut at paragraph borders
    into pieces of similar size; `n_merged`, `part` and `n_parts` record it. A text
    without headings is one part with heading "".
    """
    if not text:
        return ()
    pieces: list[Section] = []
    for section in _join_tiny(list(_headed_parts(text, headings)), text):
        pieces.extend(_cut_huge(section, text))
    return tuple(pieces)


def _headed_parts(text: str, headings: Iterable[Heading]) -> Iterator[Section]:
    ordered = sorted(headings, key=lambda heading: heading.start)
    first = ordered[0].start if ordered else len(text)
    preamble = text[:first].strip()
    if preamble or not ordered:
        yield Section("", (), 0, first)
    open_levels: list[Heading] = []
    for number, heading in enumerate(ordered):
        while open_levels and open_levels[-1].level >= heading.level:
            open_levels.pop()
        open_levels.append(heading)
        start = 0 if number == 0 and not preamble else heading.start
        stop = ordered[number + 1].start if number + 1 < len(ordered) else len(text)
        if stop > start:
            yield Section(heading.title, tuple(above.title for above in open_levels if above.title), start, stop)


def _join_tiny(parts: list[Section], text: str) -> list[Section]:
    joined: list[Section] = []
    waiting: list[Section] = []
    for part in parts:
        waiting.append(part)
        if len(text[waiting[0].start : waiting[-1].stop].strip()) >= MIN_SECTION_CHARS:
            joined.append(_join(waiting))
            waiting = []
    if waiting and joined:
        joined[-1] = _join([joined[-1], *waiting])
    elif waiting:
        joined.append(_join(waiting))
    return joined


def _join(parts: Sequence[Section]) -> Section:
    """Join neighbours under the heading of the largest of them."""
    if len(parts) == 1:
        return parts[0]
    largest = max(parts, key=lambda part: part.stop - part.start)
    return replace(largest, start=parts[0].start, stop=parts[-1].stop, n_merged=sum(part.n_merged for part in parts))


_BORDERS = (
    regex(r"\n[ \t]*\n\s*|\f\s*"),
    regex(r"\n"),
    regex(r"[.!?]\s+|[。！？｡।॥؟۔]\s*"),
    regex(r"\s+"),
)


def _cut_huge(section: Section, text: str) -> list[Section]:
    n_parts = -(-(section.stop - section.start) // MAX_SECTION_CHARS)
    if n_parts == 1:
        return [section]
    cuts = [section.start]
    for part in range(1, n_parts):
        left = n_parts - part + 1
        cuts.append(_border_near(text, cuts[-1] + (section.stop - cuts[-1]) // left, cuts[-1], section.stop))
    cuts.append(section.stop)
    pieces = [(a, b) for a, b in pairwise(cuts) if b > a]
    return [
        replace(section, start=a, stop=b, part=number, n_parts=len(pieces))
        for number, (a, b) in enumerate(pieces, start=1)
    ]


def _border_near(text: str, goal: int, low: int, high: int) -> int:
    """The best place to cut, at most `MAX_SECTION_CHARS` / 4 from `goal`: paragraph, line, sentence, word."""
    reach = MAX_SECTION_CHARS // 4
    window_start, window_stop = max(low + 1, goal - reach), min(high, goal + reach)
    for border in _BORDERS:
        ends = [match.end() for match in border.finditer(text, window_start, window_stop)]
        if ends:
            return min(ends, key=lambda end: abs(end - goal))
    return goal


_ABBREVIATIONS = frozenset(
    "al approx art cf ch co corp dept dr ed eds eq eqs etc ex fig figs gen hon inc jr ltd mr mrs ms no nos "
    "op p para pp prof rev sec sect sr st supp tab u.s v viz vol vs e.g i.e a.k.a ca resp u.k ph.d d.c "
    "jan feb mar apr jun jul aug sep sept oct nov dec".split()
)
# In capitals these are English acronyms: NR, SRA.
_ABBREVIATIONS_ABROAD = frozenset(
    "abb bzw hrsg nr usw vgl z.b d.h u.a mme mlle p.ex sra dra p.ej см рис стр гл".split()
)
# Within a citation these capitalised words are abbreviations: "Ser. No. 5", "Fed. R. Civ. P. 26", "J. Biol. Chem. 12".
_CITED = frozenset(
    "acad admin amer ann app appl assoc astron bankr biol bull bus cal chem cir civ comm const crim ct evid fed inst "
    "int lab lett math mech med nat natl pat phil phys prac proc psychol pub publ reg regs res rs sci ser soc stat "
    "surg tech trans univ".split()
)
_CITATION_GOES_ON = regex(r"\d|§|Nos?\b|Code\b|[A-Z][a-z]{0,6}\.")
_OPENING, _CLOSING = "\"'“‘(\\[«„‚‹¿¡", "\"'”’)\\]»›"
_SIGNS = "؟۔।॥።፧։។៕။"  # Arabic, Urdu, Hindi, Ethiopic, Armenian, Khmer, Burmese
# Begins with one set of signs, to which a regular expression skips quickly.
_SENTENCE_END = regex(
    rf"[.!?。！？｡．{_SIGNS}\n\f](?:"
    rf"(?<=[.!?])(?<![.!?].)[.!?]*[{_CLOSING}]*(?:\^\d{{1,3}}|\[\d{{1,3}}\]){{0,5}}\s+(?=[{_OPENING}]*(?P<next>\w))"
    # (a full stop, maybe with the numbers of notes; see `_opens_sentence`)
    # Signs that always end a sentence, even where no space follows: Chinese and Japanese,
    r"|(?<=[。！？｡．])(?<!．(?=\d))(?:[。！？｡]|．(?!\d))*+[」』）】〉》”’\"')\]]*+\s*+(?![とっ、，])"
    rf"|(?<=[{_SIGNS}])[{_SIGNS}]*+[\"'”’)\]»]*+\s*+"  # other scripts
    r"|(?<=\n)[ \t]*\n\s*|(?<=\f)\s*"  # a blank line or page break
    r"|(?<=\n)(?=[ \t]*(?:[-*•]|\d+[.)])\s))"  # a list item
)
_PARAGRAPH_END = regex(r"\n[ \t]*\n|\f")
_LAST_WORD = regex(r"[\w.]+$")
_GEORGIAN = range(0x10D0, 0x1100)  # Georgian letters are lower case for Python, but open sentences


def sentence_starts(text: str) -> list[int]:
    """Offsets at which a sentence starts, the first one 0; blank lines and list items start one too.

    In scripts with capitals a full stop ends a sentence where a capital or a digit follows.
    """
    starts = [0]
    for match in _SENTENCE_END.finditer(text):
        following = match["next"]
        if following is not None and not _opens_sentence(following):
            if _PARAGRAPH_END.search(match.group()) is None:
                continue
        elif text[match.start()] == "." and _is_abbreviation(text, match.start(), match.end()):
            continue
        if match.end() < len(text):
            starts.append(match.end())
    return starts


def _opens_sentence(char: str) -> bool:
    """Whether a sentence can start with a character: a digit, a capital, or a letter of a script without capitals."""
    return char.isdecimal() or (char.isalpha() and not char.islower()) or ord(char) in _GEORGIAN


def _is_abbreviation(text: str, dot: int, stop: int) -> bool:
    """Whether the full stop at `dot` belongs to an abbreviation; the text goes on at `stop`."""
    word = _LAST_WORD.search(text, max(0, dot - 12), dot)
    if word is None:
        return False
    name = word.group().lower()
    if len(name) == 1:
        return name.isalpha() and unicodedata.category(name) != "Lo"  # an initial; a whole word in other scripts
    if name in _CITED and word.group()[0].isupper() and _CITATION_GOES_ON.match(text, stop):
        return True
    return name in _ABBREVIATIONS or (name in _ABBREVIATIONS_ABROAD and not word.group().isupper())


@dataclass(frozen=True, slots=True)
class TokenWindow:
    """Tokens `first` to `stop` (exclusive) of a section, to be encoded together."""

    first: int
    stop: int


def fill_windows(sentence_ends: Sequence[int], capacity: int) -> list[TokenWindow]:
    """Greedy sentence filling with wrapping.

    As in SMITH (Yang et al. 2020, arXiv:2004.12297, section 4.1.1): sentences join
    a window while it holds at most `capacity` tokens. A sentence longer than
    that runs on into the next windows, where the paper cuts it off. A last window
    under a quarter of `capacity` is levelled with the one before it.

    Args:
        sentence_ends: for each sentence the count of tokens up to its end, rising;
            the last one is the number of tokens.
        capacity: most tokens of a window, at least 1.
    """
    windows: list[TokenWindow] = []
    first = stop = 0
    for end in sentence_ends:
        if end - first > capacity and stop > first:
            windows.append(TokenWindow(first, stop))
            first = stop
        while end - first > capacity:
            windows.append(TokenWindow(first, first + capacity))
            first += capacity
        stop = end
    if stop > first:
        windows.append(TokenWindow(first, stop))
    if len(windows) > 1 and windows[-1].stop - windows[-1].first < capacity // 4:
        windows[-2:] = _levelled(windows[-2].first, windows[-1].stop, sentence_ends, capacity)
    return windows


def _levelled(first: int, stop: int, sentence_ends: Sequence[int], capacity: int) -> list[TokenWindow]:
    """Cut `first` to `stop` in two near the middle, at a sentence end where both halves fit."""
    middle = (first + stop + 1) // 2
    low, high = max(first + 1, stop - capacity), min(stop - 1, first + capacity)
    ends = sentence_ends[bisect_left(sentence_ends, low) : bisect_right(sentence_ends, high)]
    cut = min(ends, key=lambda end: abs(end - middle)) if ends else middle
    return [TokenWindow(first, cut), TokenWindow(cut, stop)]
