"""Languages and scripts: stop words, normal forms of words, and detection of the language of a corpus."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import islice

import Stemmer
import stop_words

from engine.errors import QueryError
from engine.text.cleaning import regex

NONE = "none"  # no stemmer and no stop words
# Lucene's list. Longer lists contain words that matter in technical text ("can", "same", "between").
ENGLISH = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with".split()
)
# The Greek list of the package stop_words is ancient Greek, without final sigma.
_GREEK = frozenset(
    "αλλά αν από αυτά αυτές αυτή αυτό αυτοί αυτός αυτού για δε δεν ένα έναν ένας επί η ή ήταν θα και κάθε κατά "
    "μας με μετά μη μην μια μία να ο οι όπως ότι όταν ούτε που πρέπει προς πως σε στα στη στην στις στο στον στους "
    "συν τα τη την της τις το τον του τους των ως είναι είχε έχει έχουν εάν εκ εν μεταξύ μέχρι όσο οποία οποίο "
    "οποίος πριν πολύ σας υπό χωρίς".split()
)
# The package stop_words decoded its Turkish list with a wrong encoding: Latin-1 instead of Latin-5.
_LATIN_5 = str.maketrans("ýþð", "ışğ")
# The most frequent function words that two lists lack.
_ADDED = {
    "catalan": "al als aquest aquesta aquests aquestes això del dels ha han hi ho més ni no pel pels",
    "turkish": "ancak bütün değil diğer göre her herkes kadar olan olarak olduğu olup onun sonra şekilde",
}

# Nouns and verbs that the lists have had since 2025; see findings/stop-words-content-words.sh.
_CONTENT = {
    "french": "essai pièce",
    "italian": "comprare gente lavoro nome persone",
    "portuguese": "caminho corrente horas nome povo tempo trabalhar trabalho valor verdade",
    "spanish": "emplean emplear empleo fuerza intento sentido tiempo total trabaja trabajan trabajar trabajo usar uso "
    "valor verdad",
}

# Characters of each script that is segmented into bigrams: those written without spaces, and Hangul, whose particles
# join the word before them.
_SCRIPTS = {
    "han": "\u3005\u3007\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af",
    "kana": "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d\U0001b000-\U0001b16f",
    "hangul": "\u1100-\u115f\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\uffa1-\uffdc",
    "thai": "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e50-\u0e59",
    "lao": "\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6\u0ed0-\u0edf",
    "khmer": "\u1780-\u17b3\u17d7\u17dc\u17e0-\u17e9",
    "burmese": "\u1000-\u102a\u103f-\u1049\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081",
}
_LANGUAGES_OF_SCRIPTS = {"han": "chinese", "kana": "japanese", "hangul": "korean"}  # others are named as their script
# Languages without a stemmer here, whose words or bigrams are still lower-cased and normalised.
_UNSTEMMED = frozenset(_LANGUAGES_OF_SCRIPTS.get(script, script) for script in _SCRIPTS)
UNSPACED = "".join(_SCRIPTS.values())  # for a character class of a regular expression
# Invisible characters inside words: soft hyphen, grapheme joiner, (non-)joiners of Persian and Indic scripts, variants.
_INVISIBLE = "\u00ad\u034f\u200c\u200d\u2060\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef"
# No marks and no script that is segmented into bigrams: Latin, Greek, Cyrillic, punctuation, symbols.
NOT_PLAIN = regex(
    "[^\x00-\xac\xae-\u02ff\u0370-\u0482\u048a-\u0590\u1e00-\u200b\u2010-\u205f\u2070-\u20cf\u2100-\u2cee]"
)
_DROP_INVISIBLE = regex(f"[{_INVISIBLE}]")

_SAMPLE_TEXTS = 200
_SAMPLE_CHARACTERS = 4_000  # from the middle of each text, away from title pages and references
_FEW_CHARACTERS = 800
_LEAST_SHARE = 0.12  # of stop words among the words of a text in their language
_MOST_OF_ONE = 0.02  # most share that one stop word can add, so that no single word decides the language
_FEWEST_WORDS = 30  # of a text whose stop words alone show that it is in another language
_FEWEST_LISTED = 4  # different stop words that show it of a shorter text, which has none of the given language
_LEAST_SCRIPT = 0.2  # share of words in a script that decides when no stop words do
_LEAST_KANA = 0.05  # of Han and kana together: Japanese has a third or more, Chinese only quotations


@cache
def languages() -> tuple[str, ...]:
    """Names of the languages, sorted; `none` for text in any other."""
    both = set(stop_words.AVAILABLE_LANGUAGES) & set(Stemmer.algorithms())
    return tuple(sorted({*both, *_UNSTEMMED, NONE}))


def check_language(name: str) -> None:
    """Refuse a language that does not exist.

    Raises:
        QueryError: there is no such language; the message lists the languages that exist.
    """
    if name not in languages():
        raise QueryError(f"there is no language {name!r}; use one of {', '.join(languages())}")


@lru_cache(maxsize=64)
def stop_words_of(language: str) -> frozenset[str]:
    """Words that are not content words, in their normal form."""
    check_language(language)
    if language in (NONE, *_UNSTEMMED):
        return frozenset()
    return _listed(language)


@cache
def _listed(language: str) -> frozenset[str]:
    """The stop words of any language that has a list, including those that have no stemmer."""
    if language == "english":
        return ENGLISH
    if language == "greek":
        return _GREEK
    words = stop_words.get_stop_words(language) + _ADDED.get(language, "").split()
    if language == "turkish":
        words = [word.translate(_LATIN_5) for word in words]
    return frozenset(normal_form(word, language) for word in words) - set(_CONTENT.get(language, "").split())


def normal_form(word: str, language: str) -> str:
    """A word in NFKC and lower case, without invisible characters, so that spellings of one word are equal."""
    if word.isascii() and language != "turkish":
        return word.lower()
    word = unicodedata.normalize("NFKC", _DROP_INVISIBLE.sub("", word))
    if language == "turkish":
        word = word.replace("I", "ı")
    return word.lower().replace("i\u0307", "i")  # lower-cased "İ" is two characters


@cache
def marks() -> str:
    """Characters that continue a word or a syllable but start none, for a character class of a regular expression.

    Combining marks of all scripts, which `\\w` lacks, Hangul vowels and final consonants, and
    the sound marks of half-width kana.
    """
    combining = "".join(chr(code) for code in range(0x300, 0x1E950) if unicodedata.category(chr(code))[0] == "M")
    return combining + "\u1160-\u11ff\ud7b0-\ud7fb\uff9e\uff9f" + _INVISIBLE


@cache
def word_pattern() -> re.Pattern[str]:
    """A pattern with two groups: a run of a script that is segmented into bigrams, or a word."""
    # The look-ahead avoids the search in the long list of marks for most characters.
    some_marks = rf"(?![\0-\xac])[{marks()}]+"
    unspaced, spaced = f"[{UNSPACED}]", rf"[^\W{UNSPACED}]"
    return re.compile(f"({unspaced}+(?:{some_marks}{unspaced}*)*)|({spaced}+(?:{some_marks}{spaced}*)*)")


def detect_language(texts: Iterable[str]) -> str:
    """The language of most words of a sample, by script and by stop words; `none` where no language here fits."""
    name = language_name(texts)
    return name if name in languages() else NONE


def language_name(texts: Iterable[str]) -> str:
    """The language of most words of a sample, also one that is not among `languages`; `none` where nothing fits.

    Two characters of a script that is segmented into bigrams count as a word. Where such a script
    has less than half of the words, the language whose stop words are the largest share of the
    other words is taken. Languages that have a list of stop words but no stemmer take part, so
    that Ukrainian is not detected as Russian.
    """
    return _named(*_counted(texts))


def other_language(text: str, language: str) -> str | None:
    """The language of a text, if it is certainly not a given one; None where that is not known."""
    if language == NONE:
        return None
    for n_characters in (_FEW_CHARACTERS, _SAMPLE_CHARACTERS):  # the first few decide for nearly all texts
        words, runs = _counted([text], n_characters)
        n_own = 0 if language in _UNSTEMMED else _n_listed(words, language)
        if n_own > _LEAST_SHARE * words.total():
            return None
    if (name := _named(words, runs)) in (NONE, language):
        return None
    if name in _UNSTEMMED:  # some have no list
        return name
    n_listed = _n_listed(words, name)
    is_long = words.total() >= _FEWEST_WORDS or (not n_own and n_listed >= _FEWEST_LISTED)
    return name if is_long and n_listed > 2 * n_own else None


def _counted(texts: Iterable[str], n_characters: int = _SAMPLE_CHARACTERS) -> tuple[Counter[str], list[str]]:
    """The words of a sample, and its runs of scripts that are segmented into bigrams."""
    runs: list[str] = []
    words: Counter[str] = Counter()
    for text in islice(texts, _SAMPLE_TEXTS):
        start = max(0, (len(text) - n_characters) // 2)
        sample = text[start : start + n_characters]
        is_plain = NOT_PLAIN.search(sample) is None
        found = [("", word) for word in re.findall(r"\w+", sample)] if is_plain else word_pattern().findall(sample)
        runs += [run for run, _ in found if run]
        words.update(normal_form(word, NONE) for _, word in found if word and not word[0].isdigit())
    return words, runs


def _named(words: Counter[str], runs: list[str]) -> str:
    n_words, n_unspaced = words.total(), sum(map(len, runs)) / 2
    if n_unspaced > n_words:
        return _by_script("".join(runs))
    name = _by_stop_words(words)
    if name == NONE and n_unspaced > _LEAST_SCRIPT * (n_words + n_unspaced):
        return _by_script("".join(runs))
    return name


def _by_script(text: str) -> str:
    n = Counter({script: len(re.findall(f"[{characters}]", text)) for script, characters in _SCRIPTS.items()})
    both = n["han"] + n["kana"]
    n["han"], n["kana"] = (0, both) if n["kana"] > _LEAST_KANA * both else (both, 0)
    script = max(_SCRIPTS, key=lambda name: n[name])
    return _LANGUAGES_OF_SCRIPTS.get(script, script)


def _by_stop_words(words: Counter[str]) -> str:
    # Malay is close enough to Indonesian to be stemmed as such.
    listed = sorted(set(stop_words.AVAILABLE_LANGUAGES) - _UNSTEMMED - {"malaysian"})
    counts = {name: _n_listed(words, name) for name in listed}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] > _LEAST_SHARE * words.total() else NONE


def _n_listed(words: Counter[str], language: str) -> float:
    """The stop words of a language among some words; each one counts up to a limit."""
    most = max(1.0, _MOST_OF_ONE * words.total())
    return sum(min(words[word], most) for word in _listed(language).intersection(words) if len(word) > 1)
