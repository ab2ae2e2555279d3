"""Terms by small cases that can be checked by eye, and against a slow reference."""

import re
import sys
import unicodedata

import numpy as np
import pytest
import Stemmer
import xxhash
from hypothesis import given
from hypothesis import strategies as st

import engine.words.segmenter as segmenter_module
from engine.errors import QueryError
from engine.words.languages import ENGLISH, NOT_PLAIN, UNSPACED, marks
from engine.words.segmenter import Terms, WordSegmenter

ENGLISH_STEMS = Stemmer.Stemmer("english")
UNSPACED_NAMES = ("CJK UNIFIED", "IDEOGRAPHIC ITERATION", "HIRAGANA", "KATAKANA", "HANGUL", "THAI")
TRICKY = "aB1_ the-\n\t.,'éİﬁＡ人権々ガｶﾞは조ก็ก\u0301\u3099\u00ad\u200dß🙂"


def words_of(text: str, language: str = "english") -> list[str]:
    found = WordSegmenter(language).segment(text)
    return [text[start:stop] for start, stop in found.word_spans.tolist()]


def pairs_of(text: str, language: str = "english") -> list[str]:
    found = WordSegmenter(language).segment(text)
    return [text[start:stop] for start, stop in found.pair_spans.tolist()]


def is_same_word(one: str, other: str, language: str) -> bool:
    segmenter = WordSegmenter(language)
    return segmenter.segment(one).words.tolist() == segmenter.segment(other).words.tolist()


def is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M" or character in "\u00ad\u200d\uff9e"


def is_unspaced(character: str) -> bool:
    return (
        character.isalnum()
        and not is_mark(character)
        and unicodedata.name(character, "").replace("HALFWIDTH ", "").startswith(UNSPACED_NAMES)
    )


def runs_by_hand(text: str) -> list[tuple[bool, list[int]]]:
    """Of each run: whether it is cut into bigrams, and the borders of its syllables."""
    runs: list[tuple[bool, list[int]]] = []
    for at, character in enumerate(text):
        continues = bool(runs) and runs[-1][1][-1] == at
        if continues and is_mark(character):
            runs[-1][1][-1] += 1
        elif character.isalnum() or character == "_":
            if continues and runs[-1][0] == is_unspaced(character):
                runs[-1][1].append(at + 1)
            else:
                runs.append((is_unspaced(character), [at, at + 1]))
    return runs


def normal_by_hand(word: str) -> str:
    kept = "".join(character for character in word if character not in "\u00ad\u200d")
    return unicodedata.normalize("NFKC", kept).lower().replace("i\u0307", "i")


def terms_by_hand(text: str) -> tuple[list[int], list[tuple[int, int]]]:
    """Hashes of the English content words, and spans of the pairs."""
    hashes, spans = [], []
    words = []  # start, stop, number of the run, whether it is the first and the last of the run
    for number, (is_run, borders) in enumerate(runs_by_hand(text)):
        step = 2 if is_run and len(borders) > 2 else 1 if is_run else len(borders) - 1
        places = range(len(borders) - step)
        words += [(borders[at], borders[at + step], number, at == 0, at == places[-1]) for at in places]
    for start, stop, *_ in words:
        normal = normal_by_hand(text[start:stop])
        is_content = normal not in ENGLISH and (len(normal) > 1 or is_unspaced(normal))
        hashes.append(xxhash.xxh32_intdigest(ENGLISH_STEMS.stemWord(normal).encode()) if is_content else None)
    for (start, stop, run, _, is_last), one in zip(words, hashes, strict=True):
        for (next_start, next_stop, next_run, is_first, _), other in zip(words, hashes, strict=True):
            gap = text[stop:next_start]
            touches = run == next_run and stop == next_start
            follows = is_last and is_first and next_run == run + 1 and (len(gap) < 2 or gap.isspace())
            if one is not None and other is not None and (touches or follows):
                spans.append((start, next_stop))
    return [one for one in hashes if one is not None], spans


@given(
    st.text(st.sampled_from("aab cd\n\t-.,'_1the foxes"), max_size=60) | st.text(st.sampled_from(TRICKY), max_size=40)
)
def test_terms_equal_the_slow_definition(text: str) -> None:
    found = WordSegmenter("english").segment(text)
    words, pairs = terms_by_hand(text)
    assert found.words.tolist() == words
    assert [tuple(span) for span in found.pair_spans.tolist()] == pairs
    assert len(found.pairs) == len(pairs)


@given(st.text(st.sampled_from(TRICKY), max_size=9), st.text(st.sampled_from(TRICKY), max_size=9))
def test_signs_far_apart_leave_the_words_between_them(one: str, other: str) -> None:
    text = f"{one}{'the foxes ' * 25}{other} red{one}"
    found = WordSegmenter("english").segment(text)
    words, pairs = terms_by_hand(text)
    assert found.words.tolist() == words
    assert [tuple(span) for span in found.pair_spans.tolist()] == pairs


@pytest.mark.slow
@given(st.text(max_size=60))
def test_spans_slice_the_text_as_it_was_given(text: str) -> None:
    found = WordSegmenter("english").segment(text)
    for spans in (found.word_spans, found.pair_spans):
        assert ((spans[:, 0] < spans[:, 1]) & (spans[:, 1] <= len(text))).all()
        assert (np.diff(spans[:, 0]) >= 0).all()
    assert found.words.dtype == found.pairs.dtype == np.uint32


@given(st.text(st.sampled_from("éüİÅñấ각가がパघक़ aB人"), max_size=30))
def test_composed_and_decomposed_text_have_equal_words(text: str) -> None:
    forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD")]
    assert is_same_word(*forms, "none")  # type: ignore[call-arg]


def test_plain_text_has_no_character_that_needs_care() -> None:
    needs_care = re.compile(f"[{UNSPACED}{marks()}]")
    plain = [chr(code) for code in range(sys.maxunicode) if not NOT_PLAIN.match(chr(code))]
    assert len(plain) > 2_000
    assert not [character for character in plain if needs_care.match(character)]


@pytest.mark.parametrize(
    ("text", "words", "pairs"),
    [
        ("The fox is a b c of x9", ["fox", "x9"], []),  # stop words and single letters are no words
        ("don't John's l'homme", ["don", "John", "homme"], None),
        ("rock'n'roll o'clock", None, []),
        ("red fox and brown dog", None, ["red fox", "brown dog"]),
        ("İstanbul Fox ẞtraße", ["İstanbul", "Fox", "ẞtraße"], None),  # lower-casing moves no offset
        ("人権宣言", ["人権", "権宣", "宣言"], None),
        ("人権宣言文", None, ["人権宣言", "権宣言文"]),
        ("人々", ["人々"], None),  # the iteration mark belongs to its run
        ("인권은 모든", ["인권", "권은", "모든"], ["권은 모든"]),
        ("สิทธิ", ["สิท", "ทธิ"], None),  # vowel signs stay with their consonant
        ("law 法 of", ["law", "法"], None),
        (
            "The word 人権 means human rights",
            ["word", "人権", "means", "human", "rights"],
            ["word 人権", "人権 means", "means human", "human rights"],
        ),
        *(
            (f"red{gap}fox", ["red", "fox"], [f"red{gap}fox"])
            for gap in (" ", "\n\n   ", "-", "/", ",", "\u3000", "🙂")
        ),
        *((f"red{gap}fox", None, []) for gap in (", ", ". ", "--", " - ", "🙂🙂")),
    ],
)
def test_a_text_has_these_words_and_pairs(text: str, words: list[str] | None, pairs: list[str] | None) -> None:
    assert words is None or words_of(text) == words
    assert pairs is None or pairs_of(text) == pairs


def test_pairs_are_ordered_and_words_of_a_long_text_are_those_of_its_parts() -> None:
    segmenter = WordSegmenter("english")
    assert segmenter.segment("red fox").pairs.tolist() != segmenter.segment("fox red").pairs.tolist()
    part = "the fox " * 8_000 + "x" * 70_000 + " crosses a river. "
    once, twice = (WordSegmenter("english").segment(part * n) for n in (1, 2))
    assert twice.words.tolist() == once.words.tolist() * 2
    assert twice.word_spans[len(once.words) :].tolist() == (once.word_spans + len(part)).tolist()


@pytest.mark.parametrize(
    ("one", "other", "language"),
    [
        ("Foxes", "fox", "english"),
        ("café", "cafe\u0301", "french"),
        ("ＡＢＣ", "abc", "english"),
        ("𝐅𝐨𝐱", "fox", "english"),
        ("Menschenrechte", "Menschenrechten", "german"),
        ("STRASSE", "Straße", "german"),
        ("Ver\u00adein", "Verein", "german"),
        ("İstanbul", "istanbul", "none"),
        ("IŞIK", "ışık", "turkish"),
        ("Würde", "würde", "none"),
        ("ﬁnal", "final", "english"),
        ("می\u200cشود", "میشود", "none"),
        ("ｶﾞｽ", "ガス", "japanese"),
        ("か\u3099く", "がく", "japanese"),
    ],
)
def test_forms_of_a_word_are_one_term(one: str, other: str, language: str) -> None:
    assert is_same_word(one, other, language)


@pytest.mark.parametrize("text", ["मानव अधिकारों की", "மனித உரிமைகள்", "মানবাধিকার", "حُرِّيَّة"])
def test_vowel_signs_split_no_word(text: str) -> None:
    assert words_of(text, "none") == text.split()


@pytest.mark.parametrize("text", ["", "   ", "the of and", "!?"])
def test_text_without_content_has_no_terms(text: str) -> None:
    found = WordSegmenter("english").segment(text)
    assert isinstance(found, Terms)
    assert [len(array) for array in (found.words, found.word_spans, found.pairs, found.pair_spans)] == [0, 0, 0, 0]


def test_terms_stay_right_when_tables_of_words_are_full_or_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segmenter_module, "_MOST_REMEMBERED", 3)
    text = "one two three four five six seven two"
    assert WordSegmenter("english").segment(text).words.tolist() == terms_by_hand(text)[0]
    monkeypatch.setattr(segmenter_module, "_SLOT_BITS", 1)
    segmenter, text = WordSegmenter("english"), "hedge hedgehog étude лиса 狐狸 extraordinary extraordinarily hedg 🙂x"
    for _ in range(3):
        assert segmenter.segment(text).words.tolist() == terms_by_hand(text)[0]


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(QueryError, match=r"there is no language 'klingon'; use one of arabic, .*, turkish"):
        WordSegmenter("klingon")
