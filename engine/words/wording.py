"""Words and sentences that never show by themselves why texts match: those of grammar, and those that a corpus repeats.

They are more than the stop words of `engine.words.languages`. A stop word is not a term at all, and technical text can
depend on words such as "can" or "same"; a function word is a term, and is neither marked nor listed. The same holds for
bare numbers.

A sentence that more than `MOST_DOCUMENTS` documents have is no evidence that two of them are similar.
Such sentences of a query are left out of its evidence: its terms are counted without them, and the
weight of a chunk is reduced by the share of its text that is in them. A target is compared as a whole.

Stock sentences are those that many documents have in about the same words: "the key words MUST and MUST NOT in this
document", "it will be apparent to those skilled in the art". They count as any other, and are never shown first. A
sentence is stock if `LEAST_STOCK` of its words are in runs of `RUN` words that many documents of the reference have.
A reference of few patents cannot show that, so sentences with the set phrases of patents are stock in any index.
Shorter phrases, as "the present invention" or "computer readable storage medium", are hollow: their sentence may be
shown for its other words alone.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
import stop_words
import xxhash
from numpy.typing import NDArray

from engine.text.cleaning import regex
from engine.text.segmentation import Span, sentence_starts
from engine.words.languages import UNSPACED, normal_form, stop_words_of
from engine.words.segmenter import NO_TERM, segmenter_of

_ENGLISH = """
about above according accordingly across after afterwards again against ago al all almost along already also although
altogether always am among amongst an and another any anybody anyone anything anyway are around as aside at away be
because been before beforehand being below beside besides better between beyond both but by can cannot cf could de did
do does doing done down due during each eg either else elsewhere enough et etc even ever every everybody everyone
everything everywhere except few fewer finally first firstly following for former from further furthermore get gets
given had has have having he hence her here hereby herein hers herself him himself his how however i ibid id ie if in
indeed instead into is it its itself just last latter least less lest let like made mainly make makes many may
me means meanwhile merely might mine more moreover most mostly much must my myself namely near nearly neither never
nevertheless next no nobody none nonetheless nor not nothing now nowhere of off often on once one ones only onto or
other others otherwise ought our ours ourselves out over own per perhaps possibly quite rather re really respectively
said same second secondly see seem seems seen several shall she should show shown shows since so some somebody someone
something sometimes somewhat somewhere soon still such than that the their theirs them themselves then thence there
thereafter thereby therefore therein thereto these they third this those though through throughout thus to
together too toward towards two under unless unlike until up upon us use used uses using usually various very via viz vs
was we well were what whatever when whence whenever where whereas whereby wherein whereof wherever whether which
whichever while who whoever whole whom whose why will with within without would yes yet you your yours yourself
embodiment embodiments
"""
_CHINESE = """
我们 你们 他们 她们 它们 这个 那个 这些 那些 这样 那样 可以 应当 应该 因为 所以 但是 如果 以及 或者 没有
一个 一些 之间 进行 其中 其他
为了 由于 对于 关于 根据 按照 通过 并且 不得 可能 能够 必须 已经 还是 就是 不是 的是 也是 都是 也不 是在
等等 有关 以上 以下 之一
"""
_SIGNS = "的了和与或及在是为以于对由从向到就都也而且但并不无有这那其之等被把将所者上下中内外时后前个每各该本此"
_THAI = """
และ หรือ ของ ใน ที่ เป็น ได้ มี จะ ให้ ไม่ การ ความ นี้ นั้น แต่ โดย จาก กับ เพื่อ ตาม ต้อง ซึ่ง ว่า แล้ว ก็ อยู่ ยัง ถ้า หาก เมื่อ ทั้ง แห่ง ดัง
"""
_HIRAGANA = regex("[\u3041-\u309f\u30fc]+")
_UNSPACED_WORD = regex(f"[{UNSPACED}]+")
# Words of Thai, Lao, Burmese and Khmer are several syllables without a border: a few characters are shared by chance.
_SYLLABIC = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_SYLLABIC_WORD = regex(f"[{_SYLLABIC}]+")
_FEWEST_SYLLABIC = 6  # characters
_WORD = regex(rf"[{_SYLLABIC}]+|[^\W{_SYLLABIC}]+")
# Not part of the word at its begin and end: particles and endings in hiragana, halves of Thai and Lao syllables.
_BEFORE = regex("[\u3041-\u309f]+|[\u0e30-\u0e3a\u0e45-\u0e4e\u0eb0-\u0ebc\u0ec6-\u0ece]+")
_AFTER = regex(
    "(?<![\u3041-\u309f])[\u3041-\u309f]++$|(?<![\u0e40-\u0e44\u0ec0-\u0ec4])[\u0e40-\u0e44\u0ec0-\u0ec4]++$"
)
_BARE_NUMBER = regex(r"\d{1,4}")  # of a drawing, a citation or a claim, unless it can be a year
_FIRST_YEAR, _LAST_YEAR = 1500, 2100


@cache
def _function_words(language: str) -> frozenset[str]:
    """The function words of a language, in their normal form."""
    match language:
        case "english" | "none":  # most texts of which too little is known are English
            return frozenset(_ENGLISH.split())
        case "chinese":
            return frozenset(_CHINESE.split()) | frozenset(_listed(language))
        case "thai":
            return frozenset(_THAI.split())
        case _:
            return stop_words_of(language) or frozenset(_listed(language))


def _listed(language: str) -> set[str]:
    if language not in stop_words.AVAILABLE_LANGUAGES:
        return set()
    return {normal_form(word, language) for word in stop_words.get_stop_words(language)}


def is_function_word(word: str, language: str) -> bool:
    """Whether a word, or a run of a script without spaces, is a word of grammar alone."""
    normal = normal_form(word, language)
    if normal in _function_words(language):
        return True
    if normal.isascii() or _UNSPACED_WORD.fullmatch(normal) is None:
        return False
    if language == "japanese" and _HIRAGANA.fullmatch(normal):
        return True
    signs = _SIGNS if language == "chinese" else ""
    return all(sign in signs or sign in _function_words(language) for sign in normal)


def is_content_word(word: str, language: str) -> bool:
    """Whether a word can show why two texts match: no word of grammar, and no bare number but a year."""
    if _is_bare_number(word):
        return False
    if len(word) < _FEWEST_SYLLABIC and _SYLLABIC_WORD.fullmatch(word):
        return False
    return not is_function_word(word, language)


@lru_cache(maxsize=1 << 16)
def content_of(text: str, language: str) -> Span | None:
    """A short text without the other words before the first content word and after the last; None if there is none."""
    words = [(_core(word), is_content_word(word[0], language)) for word in _WORD.finditer(text)]
    content = [core for core, is_content in words if is_content and core.start < core.stop]
    if len(content) == len(words) and not _is_unspaced(text):
        return Span(0, len(text)) if words else None
    return Span(content[0].start, content[-1].stop) if content else None


def _is_unspaced(text: str) -> bool:
    return not text.isascii() and _UNSPACED_WORD.search(text) is not None


@lru_cache(maxsize=1 << 16)
def is_telling(term: str, language: str) -> bool:
    """Whether a term has a content word, and no word of grammar beside it."""
    has_content = content_of(term, language) is not None
    return has_content and not any(is_function_word(word, language) for word in _WORD.findall(term))


def is_listed(term: str, language: str) -> bool:
    """Whether a term can be read by itself: it is telling, and no half of a word."""
    if not is_telling(term, language) or _SYLLABIC_WORD.search(term):
        return False
    content = content_of(term, language)
    return content is not None and (content.stop - content.start > 1 or not _is_unspaced(term))


@lru_cache(maxsize=1 << 16)
def content_words(term: str, language: str) -> frozenset[str | int]:
    """Keys of the content words of a term, the same for all forms of a word; in a script without spaces, the term."""
    if _is_unspaced(term):
        return frozenset([term])
    words = [word for word in _WORD.findall(term) if is_content_word(word, language)]
    segmenter = segmenter_of(language)
    if term.isascii():
        return frozenset(map(segmenter.term, words)) - {NO_TERM}
    return frozenset(segmenter.segment(" ".join(words)).words.tolist())


@lru_cache(maxsize=1 << 16)
def has_number(term: str) -> bool:
    """Whether a bare number that is no year is a word of a term."""
    return any(_is_bare_number(word) for word in _WORD.findall(term))


def _is_bare_number(word: str) -> bool:
    return _BARE_NUMBER.fullmatch(word) is not None and not _FIRST_YEAR <= int(word) <= _LAST_YEAR


def _core(word: re.Match[str]) -> Span:
    """A word without what belongs to its neighbours; only words of scripts without spaces are shortened."""
    before, after = _BEFORE.match(word[0]), _AFTER.search(word[0])
    start = word.start() + (before.end() if before else 0)
    return Span(start, max(start, word.start() + after.start() if after else word.end()))


MOST_DOCUMENTS = 8  # documents that share a sentence which still counts; as many as `Scoring.exceeding`
FEWEST_CHARS = 20  # of a sentence that can be common, without blanks
LEAST_LEFT = 0.2  # share of a query that must remain; if less would, nothing is left out
RUN = 4  # words in a run
LEAST_STOCK = 2 / 3  # share of the words of a stock sentence that are in runs of many documents
FEWEST_WITH_RUN = 5  # documents that have such a run, and a twentieth of those compared
_MOST_CHARACTERS = 200_000  # of a document that are compared: the begin and the end of a longer one
_LONGEST_PHRASED = 600  # characters of a sentence that a set phrase makes stock; a claim may be longer
_OF_PATENTS = ("invention", "embodiment", "Erfindung", "Ausführungsform")
_SET_PHRASE = regex(
    r"""\bskill(?:ed)?\ in\ the\ (?:\w+\ )?art\b|\bwithout\ departing\ from\ (?:\w+,?\ ){0,5}(?:scope|spirit)\b
    |\b(?:scope|spirit)\ of\ the\ (?:invention|(?:present|appended|following)\ (?:invention|disclosure|claims))\b
    |\bnot\ (?:\w+\ ){0,5}as\ (?:a\ )?limit|\billustrati\w+(?:\ only)?,?\ and\ not\ (?:\w+\ ){0,3}(?:restrict|limit)
    |\bpurposes?\ of\ illustration\ and\b|\blike\ (?:numerals|reference\ (?:numeral|character|number)s)\b
    |\b(?:variety|scope)\ of\ computer[-\ ]readable\b|\bany\ available\ media\b
    |\bFachmanns?\b|\bSchutz(?:bereich|umfang)|\bhomme\ du\ métier\b|\bcadre\ de\ l['’]invention\b""",
    re.IGNORECASE | re.VERBOSE,
)
_HOLLOW_PHRASE = regex(  # begins with letters, which are found faster than a border of a word
    r"""[ACDGIMPRacdgimpr](?<=\b.)(?:(?:resent|nstant|laimed)\ (?i:inventions?(?:\ relates?)?)
    |referred\ (?i:embodiments?)|eneral[-\ ](?i:purpose\ computers?)
    |(?:omputer|achine|rocessor)[-\ ](?i:(?:readable|usable)(?:\ (?:storage|recording|memory|medi(?:um|a)s?))*)
    |(?:laims?|nspr(?:uch|üchen?)|evendications?)\s\d+|laimed\ in\ claims?\ \d+|haracteri[sz]ed\ (?:in\ that|by)
    |adurch\ gekennzeichnet|aractérisée?s?\ en\ ce\ qu)\b""",
    re.VERBOSE,
)
_MEMORY = regex(
    r"\b(?:E*P?ROM|RAM|CD-ROM|DVD|(?:flash|random access|read[- ]only) memor|floppy|magnetic (?:dis|tape)|optical dis)"
)
_FEWEST_MEMORIES = 3  # kinds of memory that a sentence lists
_COUNTED_WORD = regex(rf"[{UNSPACED}]{{1,2}}|[^\W\d_{UNSPACED}]+")
_LETTERS = bytes(ord(chr(code).lower()) if chr(code).isalpha() else 32 for code in range(128)).ljust(256)
_BORDERS = np.arange(1, 16, dtype=np.uint64) << np.uint64(60)
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, eq=False)
class StockWording:
    """The runs of words that many documents of a reference have."""

    keys: NDArray[np.uint64]  # (K,) hashes, rising
    counts: NDArray[np.int64]  # (K,) documents with each
    n_documents: int  # compared


@dataclass(frozen=True, slots=True)
class StockSentence:
    """A sentence in the words of many documents, or with a set phrase of patents."""

    span: Span
    n_documents: int  # that have its wording: the median of its runs; 0 for a set phrase that few have
    n_compared: int


def is_of_patents(text: str) -> bool:
    """Whether a text speaks of an invention or of embodiments, as patents do."""
    return any(word in text for word in _OF_PATENTS)


def hollow_phrases(text: str) -> NDArray[np.int64]:
    """The spans (n, 2) of set phrases of patents that say nothing about the subject of a text, rising."""
    phrases = _HOLLOW_PHRASE.finditer(text) if is_of_patents(text) else ()
    return np.array([phrase.span() for phrase in phrases], np.int64).reshape(-1, 2)


def common_sentences(texts: Iterable[str]) -> NDArray[np.uint64]:
    """The keys of sentences that more than `MOST_DOCUMENTS` of the texts have, rising."""
    keys = [_rising(np.array([key for _, key in _sentences(text)], np.uint64)) for text in texts]
    return _frequent(keys, MOST_DOCUMENTS + 1)[0]


def _rising(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return np.unique(keys, return_counts=True)[0]  # without counts it hashes before it sorts, which takes longer


def _frequent(keys: Sequence[NDArray[np.uint64]], least: float) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The keys that at least so many documents have, rising, and their numbers of documents; keys of each are rising.

    A part of the range of keys is counted at a time, since all keys take much memory.
    """
    found, counts = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for part in zip(*(np.split(of_one, np.searchsorted(of_one, _BORDERS)) for of_one in keys), strict=True):
        distinct, numbers = np.unique(np.concatenate(part), return_counts=True)
        found.append(distinct[numbers >= least])
        counts.append(numbers[numbers >= least])
    return np.concatenate(found), np.concatenate(counts)


def common_stretches(text: str, common: NDArray[np.uint64]) -> list[Span]:
    """The spans of common sentences in a query, in reading order; none if hardly any other text would remain."""
    if not len(common):
        return []
    sentences = _sentences(text)
    keys = np.array([key for _, key in sentences], np.uint64)
    is_common = common[np.minimum(np.searchsorted(common, keys), len(common) - 1)] == keys
    found = [Span(*place) for (place, _), one in zip(sentences, is_common.tolist(), strict=True) if one]
    n_chars = sum(span.stop - span.start for span in found)
    return found if n_chars <= (1 - LEAST_LEFT) * len(text) else []


def blanked(text: str, stretches: Sequence[Span]) -> str:
    """The text with blanks in place of some stretches, so that offsets do not change."""
    pieces, at = [], 0
    for span in stretches:
        pieces += [text[at : span.start], " " * (span.stop - span.start)]
        at = span.stop
    return "".join([*pieces, text[at:]])


def kept_shares(stretches: Sequence[Span], spans: Sequence[Span]) -> NDArray[np.float64]:
    """The share (I,) of the characters of each of I spans that is outside of some stretches, in [0, 1]."""
    starts = np.array([span.start for span in stretches], np.int64)
    stops = np.array([span.stop for span in stretches], np.int64)
    shares = np.ones(len(spans))
    for number, span in enumerate(spans) if len(stretches) else ():
        inside = np.minimum(stops, span.stop) - np.maximum(starts, span.start)
        shares[number] -= np.maximum(inside, 0).sum() / max(1, span.stop - span.start)
    return np.clip(shares, 0, 1)


def stock_wording(texts: Iterable[str]) -> StockWording:
    """The runs of words that at least `FEWEST_WITH_RUN` documents, and a twentieth of all, have."""
    keys = [_rising(_runs(_ends(text))[0]) for text in texts]
    return StockWording(*_frequent(keys, max(FEWEST_WITH_RUN, len(keys) / 20)), len(keys))


@lru_cache(maxsize=4)
def stock_sentences(text: str, wording: StockWording) -> tuple[StockSentence, ...]:
    """The stock sentences of a query, in reading order; none if hardly any other text would remain."""
    runs, starts = _runs(text)
    keys = wording.keys if len(wording.keys) else np.zeros(1, np.uint64)
    at = np.minimum(np.searchsorted(keys, runs), len(keys) - 1)
    is_common = keys[at] == runs
    is_patent = is_of_patents(text)
    phrases, memories = (
        [match.start() for match in pattern.finditer(text)] if is_patent else [] for pattern in (_SET_PHRASE, _MEMORY)
    )
    if not (is_common.any() or phrases or len(memories) >= _FEWEST_MEMORIES):
        return ()
    edges = np.array([*sentence_starts(text), len(text)])
    first, last = np.searchsorted(starts, edges[:-1]), np.searchsorted(starts, edges[1:])
    listing = Counter((np.searchsorted(edges, memories, side="right") - 1).tolist())
    phrased = {place for place, n in listing.items() if n >= _FEWEST_MEMORIES}
    phrased.update((np.searchsorted(edges, phrases, side="right") - 1).tolist())
    found = {place: 0 for place in phrased if edges[place + 1] - edges[place] <= _LONGEST_PHRASED}
    places = np.searchsorted(edges, starts[: len(runs)][is_common], side="right") - 1
    for place in sorted(set(places.tolist())):  # `np.unique` loads masked arrays
        begin, stop = int(first[place]), int(last[place])
        common = begin + np.flatnonzero(is_common[begin : max(begin, stop - RUN + 1)])
        n_words = len(set((common[:, None] + np.arange(RUN)).ravel().tolist()))
        if len(common) and n_words >= LEAST_STOCK * (stop - begin):
            found[place] = int(np.median(wording.counts[at[common]]))
    stock = [
        StockSentence(Span(*edges[place : place + 2].tolist()), found[place], wording.n_documents)
        for place in sorted(found)
    ]
    n_characters = sum(sentence.span.stop - sentence.span.start for sentence in stock)
    return tuple(stock) if n_characters <= (1 - LEAST_LEFT) * len(text) else ()


def _ends(text: str) -> str:
    """A text without the middle of a very long one, where stock sentences hardly stand."""
    half = _MOST_CHARACTERS // 2
    return text if len(text) <= 2 * half else f"{text[:half]}\n\n{text[-half:]}"


def _runs(text: str) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """A key of each run of words, without case and numbers, and where each word starts: (n - RUN + 1,) and (n,)."""
    words, starts = _counted_words(text)
    keys = {word: xxhash.xxh3_64_intdigest(word) for word in set(words)}
    hashes = np.fromiter(map(keys.__getitem__, words), np.uint64, len(words))
    runs = np.zeros(max(0, len(words) - RUN + 1), np.uint64)
    with np.errstate(over="ignore"):
        for step in range(RUN):
            runs = runs * _MIX + hashes[step : step + len(runs)]
    return runs, starts


def _counted_words(text: str) -> tuple[list[bytes], NDArray[np.int64]]:
    """The words that `_COUNTED_WORD` finds, in lower case, and where each starts."""
    if not text.isascii():
        found = [*_COUNTED_WORD.finditer(text)]
        return [word[0].lower().encode() for word in found], np.array([word.start() for word in found], np.int64)
    letters = text.encode().translate(_LETTERS)
    is_letter = np.frombuffer(b" " + letters, np.uint8) != 32
    return letters.split(), np.flatnonzero(is_letter[1:] > is_letter[:-1])


def _sentences(text: str) -> list[tuple[tuple[int, int], int]]:
    """The places of the sentences that can be common, each with a key without case and line breaks."""
    starts = sentence_starts(text)
    found = []
    for start, stop in zip(starts, [*starts[1:], len(text)], strict=True):
        words = " ".join(text[start:stop].casefold().split())
        if len(words) - words.count(" ") >= FEWEST_CHARS:
            found.append(((start, stop), xxhash.xxh3_64_intdigest(words.encode())))
    return found
