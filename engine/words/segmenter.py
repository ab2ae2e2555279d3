r"""From a text to its terms: content words, and pairs of neighbouring content words. Counts nothing.

A word is a run of `\w` characters with the combining marks that follow them. Its term is the stem of
its normal form (lower case, NFKC). Words of one letter and stop words are not content words. A
pair is two adjacent content words with only white space, or one other character, between them.

In scripts without spaces (Han, kana, Thai, Lao, Khmer, Burmese) and in Hangul, every two
neighbouring syllables of a run are a word, and two such words that touch without overlapping are a
pair: four syllables. A run of one syllable is a word. A syllable is a character and its marks.

Terms are 32-bit hashes, so that they need no dictionary: two of ten thousand terms of a document
collide with a probability of one in a hundred.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, cycle, pairwise

import numpy as np
import Stemmer
import xxhash
from numpy.typing import NDArray

from engine.text.cleaning import regex
from engine.words.languages import NOT_PLAIN, UNSPACED, check_language, normal_form, stop_words_of, word_pattern

_PLAIN_CODES = 0x2CEF  # beyond the last code point of a plain text
_UNSPACED = regex(f"[{UNSPACED}]")
_UNMARKED = regex(f"[{UNSPACED}]+")
NO_TERM = -1
_NO_WORD = -1
_WORD, _SPACE, _SIGN = range(3)
_LEAST_PLAIN = 200  # characters of a plain stretch between two others
_BLOCK = 1 << 12  # words whose hashes are looked up at one time
_SHORT = 16  # characters of a word that is found by its code points
_SLOT_BITS = 17  # of the table of short words: 2 MB, which fits a cache of the processor
_MOST_REMEMBERED = 250_000  # cached words, about 35 MB
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: Fibonacci hashing (Knuth, TAOCP 3, section 6.4)
_MASKS = (np.tri(_SHORT + 1, _SHORT, -1, np.uint16) * np.uint16(0xFFFF)).view(np.uint64)  # (17, 4), by length


@dataclass(frozen=True, slots=True)
class Terms:
    """Term occurrences of a text, in reading order."""

    words: NDArray[np.uint32]  # (n,) hash of each content word
    word_spans: NDArray[np.int64]  # (n, 2) start and stop of each in the text
    pairs: NDArray[np.uint32]  # (m,) hash of each pair of neighbouring content words
    pair_spans: NDArray[np.int64]  # (m, 2) start of the first and stop of the second word


@lru_cache(maxsize=8)
def segmenter_of(language: str) -> WordSegmenter:
    """The segmenter of a language, which caches the hashes of words."""
    return WordSegmenter(language)


class _Hashes(dict[str, int]):
    """The hash of each word by its spelling, computed at first use; -1 for a word that is not a content word.

    Short words are also in a table, where arrays find them by 64 bits that mix their characters, different for all
    words of the corpora of `benchmarks`; a new word takes the row of an earlier one.
    """

    def __init__(self, language: str) -> None:
        super().__init__()
        self._language = language
        self._stop_words = stop_words_of(language)
        self._stemmer = Stemmer.Stemmer(language, 0) if language in Stemmer.algorithms() else None
        # The bits of the word xor its hash, and the hash: a row that another thread is writing fits no word.
        self._short = np.zeros((1 << _SLOT_BITS, 2), np.uint64)

    def __missing__(self, word: str) -> int:
        normal = normal_form(word, self._language)
        if normal in self._stop_words or (len(normal) < 2 and (normal.isascii() or not _UNSPACED.match(normal))):
            term = NO_TERM
        else:
            stem = normal if self._stemmer is None else self._stemmer.stemWord(normal)
            term = xxhash.xxh32_intdigest(stem.encode())
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        self[word] = term
        return term

    def of(self, text: str, spans: NDArray[np.int64]) -> NDArray[np.int64]:
        """The hashes (n,) of the words of a text at some spans (n, 2)."""
        codes = _short_codes(text + _SHORT * " ")
        windows = np.ndarray(len(text) + 1, f"V{2 * _SHORT}", codes, 0, 2)  # the characters from each place
        blocks = [spans[first : first + _BLOCK] for first in range(0, len(spans), _BLOCK)]
        hashes = (self._of_block(text, windows, block) for block in blocks)
        return np.concatenate([np.empty(0, np.int64), *hashes])

    def _of_block(self, text: str, windows: NDArray[np.void], spans: NDArray[np.int64]) -> NDArray[np.int64]:
        sizes = spans[:, 1] - spans[:, 0]
        masks = _MASKS.take(np.minimum(sizes, _SHORT), axis=0)
        spelled = windows[spans[:, 0]].view(np.uint64).reshape(-1, _SHORT // 4) & masks
        bits = np.zeros(len(spans), np.uint64)
        for characters in spelled.T:
            bits = (bits ^ characters) * _MIX
        slots = (bits >> np.uint64(64 - _SLOT_BITS)).astype(np.int64)
        rows = self._short.take(slots, axis=0)
        hashes: NDArray[np.int64] = rows[:, 1].astype(np.int64)
        others = np.flatnonzero((rows[:, 0] ^ rows[:, 1] != bits) | (sizes > _SHORT))
        if len(others):
            words = map(text.__getitem__, map(slice, *spans.take(others, axis=0).T.tolist()))
            hashes[others] = [*map(self.__getitem__, words)]
            is_plain = (spelled.take(others, axis=0).view(np.uint16) < 0xFFFF).all(axis=1)
            short = others[is_plain & (sizes[others] <= _SHORT)]
            values = hashes[short].astype(np.uint64)
            self._short[slots[short]] = np.stack([bits[short] ^ values, values], axis=1)
        return hashes


class WordSegmenter:
    """Segments texts of one language."""

    def __init__(self, language: str) -> None:
        """Choose a language; see `engine.words.languages`.

        Raises:
            QueryError: there is no such language.
        """
        check_language(language)
        self.language = language
        self._hashes = _Hashes(language)

    def term(self, word: str) -> int:
        """The hash of a word; -1 for one that is not a content word."""
        return self._hashes[word]

    def segment(self, text: str) -> Terms:
        """Find the terms of a text; spans are offsets in the text as it is given."""
        words = _plain_words(text) if text.isascii() else _mixed_words(text)
        hashes = self._hashes.of(text, words.spans)
        is_content = hashes != NO_TERM
        content = np.flatnonzero(is_content)
        first = np.flatnonzero(is_content & (words.nexts != _NO_WORD))
        second = words.nexts[first]
        is_pair = is_content[second]
        first, second = first[is_pair], second[is_pair]
        pair_spans = words.spans.take(first, axis=0)
        pair_spans[:, 1] = words.spans[second, 1]
        with np.errstate(over="ignore"):
            mixed = (hashes[first].astype(np.uint64) * _MIX + hashes[second].astype(np.uint64)) * _MIX
        return Terms(
            hashes[content].astype(np.uint32),
            words.spans.take(content, axis=0),
            (mixed >> np.uint64(32)).astype(np.uint32),
            pair_spans,
        )


@dataclass(frozen=True, slots=True)
class _Words:
    """Where all words of a text are, content words or not, in reading order."""

    spans: NDArray[np.int64]  # (n, 2)
    nexts: NDArray[np.int64]  # (n,) place of the next word if it is near and does not overlap, or `_NO_WORD`


def _plain_words(text: str) -> _Words:
    """The words of a text without marks and without scripts that are cut into bigrams."""
    kinds = _kinds_in(f" {text} ")
    is_word = kinds == _WORD
    spans = np.flatnonzero(is_word[1:] != is_word[:-1]).reshape(-1, 2)
    n_signs = np.cumsum(kinds == _SIGN, dtype=np.int32)
    stops, starts = spans[:-1, 1], spans[1:, 0]
    is_near = (starts - stops <= 1) | (n_signs[starts] == n_signs[stops])
    nexts = np.where(is_near, np.arange(1, len(starts) + 1), _NO_WORD)
    return _Words(spans, np.append(nexts, _NO_WORD)[: len(spans)])


def _short_codes(text: str) -> NDArray[np.uint16]:
    """The code point of each character, or U+FFFF, which is in no word, beyond."""
    codes = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), np.uint16)
    return codes if len(codes) == len(text) else np.minimum(_codes(text), np.uint16(0xFFFF)).astype(np.uint16)


def _codes(text: str) -> NDArray[np.uint32]:
    """The code point of each character."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _kinds_in(text: str) -> NDArray[np.uint8]:
    """Of each character of a plain text whether it is in `\\w`, white space, or a sign."""
    if text.isascii():
        return np.frombuffer(text.encode("ascii").translate(_kinds()[:256].tobytes()), np.uint8)
    return _kinds()[_codes(text)]


@cache
def _kinds() -> NDArray[np.uint8]:
    """The kind of each code point of a plain text."""
    every = map(chr, range(_PLAIN_CODES))
    return np.array([_WORD if c.isalnum() or c == "_" else _SPACE if c.isspace() else _SIGN for c in every], np.uint8)


def _mixed_words(text: str) -> _Words:
    """The words of any text: of the plain stretches by arrays, of the others between blanks one by one."""
    others: list[list[int]] = []
    for match in NOT_PLAIN.finditer(text):
        at = others[-1][1] if others else 0
        if match.start() >= at:
            start = max(at, text.rfind(" ", at, match.start()) + 1)
            stop = text.find(" ", match.start())
            stop = len(text) if stop < 0 else stop
            if others and start - at < _LEAST_PLAIN:
                others[-1][1] = stop
            else:
                others.append([start, stop])
    edges = [0, *chain.from_iterable(others), len(text)]
    cuts = cycle((_plain_words, _all_words))
    parts = [(start, cut(text[start:stop])) for cut, (start, stop) in zip(cuts, pairwise(edges), strict=False)]
    firsts = np.cumsum([len(part.spans) for _, part in parts]).tolist()
    spans = np.concatenate([part.spans + start for start, part in parts])
    nexts = np.concatenate(
        [
            np.where(part.nexts == _NO_WORD, _NO_WORD, part.nexts + first)
            for (_, part), first in zip(parts, [0, *firsts], strict=False)
        ]
    )
    for first in firsts:  # words on both sides of a border can be neighbours
        if 0 < first < len(spans) and _is_near(text[spans[first - 1, 1] : spans[first, 0]]):
            nexts[first - 1] = first
    return _Words(spans, nexts)


def _all_words(text: str) -> _Words:
    """The words of any text."""
    starts: list[int] = []
    stops: list[int] = []
    nexts: list[int] = []
    for match in word_pattern().finditer(text):
        start, stop = match.span()
        borders = [start, stop] if match.group(1) is None else [*_syllables(text, start, stop), stop]
        n_words = max(1, len(borders) - 2)
        place = len(starts)
        starts += borders[:n_words]
        stops += borders[-n_words:]
        # Bigrams of one run overlap, so the next one that does not overlap is the next but one.
        nexts += range(place + 2, place + n_words)
        if n_words > 1:
            nexts.append(_NO_WORD)
        nexts.append(place + n_words)
    following = [*starts, len(text)]
    near = [
        after if after < len(starts) and _is_near(text[stop : following[after]]) else _NO_WORD
        for stop, after in zip(stops, nexts, strict=True)
    ]
    return _Words(np.stack([starts, stops], axis=1).astype(np.int64), np.array(near, np.int64))


def _is_near(gap: str) -> bool:
    """Whether two words on both sides of a gap can be a pair."""
    return len(gap) <= 1 or gap.isspace()


def _syllables(text: str, start: int, stop: int) -> Iterable[int]:
    """Where the syllables of a run start: at every character that is not a mark."""
    if _UNMARKED.fullmatch(text, start, stop):
        return range(start, stop)
    return [match.start() for match in _UNSPACED.finditer(text, start, stop)]
