"""Places of terms in a text, and terms of its title."""

import pickle
from collections import Counter

import numpy as np
import pytest

from engine.text.document import Document
from engine.text.segmentation import Span
from engine.words.apart import TITLE_SHARE, title_span
from engine.words.counts import TermTable, count_documents, count_words
from engine.words.places import PAIR, QueryText
from engine.words.segmenter import WordSegmenter, segmenter_of
from tests.fakes import make_document

ENGLISH = WordSegmenter("english")
BODY = "Agents wait in a queue and the queue empties slowly while every agent talks about the weather. " * 4


def named(title: str, text: str) -> Document:
    return make_document("a", text, title=title)


def counts_of(table: TermTable) -> dict[int, int]:
    return dict(zip(table.terms.tolist(), table.counts.tolist(), strict=True))


@pytest.mark.parametrize(
    ("title", "text", "found"),
    [
        ("Queue of Agents", f"Queue of Agents\n\n{BODY}", "Queue of Agents"),
        ("Queue of agents", f"# Queue of *Agents*\n\n{BODY}", "Queue of *Agents"),
        ("Queue of Agents", f"======\nQueue of\n  Agents\n======\n{BODY}", "Queue of\n  Agents"),
        ("A queue", f"Author: B\nTitle: A queue\nStatus: Final\n\n{BODY}", "A queue"),
        ("Über Größen", f"ÜBER  GRÖẞEN.\n{BODY}", "ÜBER  GRÖẞEN"),
        ("待ち行列の理論", f"待ち行列の理論\n{BODY}", "待ち行列の理論"),
        ("C++: a language", f"C++ – a Language\n{BODY}", "C++ – a Language"),
    ],
)
def test_a_title_is_found_as_lines_of_its_own(title: str, text: str, found: str | None) -> None:
    span = title_span(named(title, text))
    assert (None if span is None else text[span.start : span.stop]) == found


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("queue", BODY),  # the name of a file, a word of a sentence
        ("A00-1020", BODY),  # an id
        ("***", f"***\n{BODY}"),
        ("Queue of Agents", f"The Queue of Agents\n{BODY}"),
        ("Queue", f"{BODY * 20}\nQueue\n"),  # far from the beginning
        ("word " * 101, f"{'word ' * 101}\n{BODY}"),  # a paragraph
    ],
)
def test_a_title_that_is_not_at_the_front_of_the_text_is_not_found(title: str, text: str) -> None:
    assert title_span(named(title, text)) is None


@pytest.mark.parametrize("title", ["Queue of Agents", "The Weather Agents Talk About", "Queue"])
def test_the_occurrences_of_a_title_add_a_share_of_the_text(title: str) -> None:
    text = f"{title}\n\n{BODY}"
    tables = count_documents(ENGLISH, [named(title, text)])
    found = ENGLISH.segment(text)
    for table, terms, spans in (
        (tables.words, found.words, found.word_spans),
        (tables.pairs, found.pairs, found.pair_spans),
    ):
        inside = [term for term, (_, stop) in zip(terms.tolist(), spans.tolist(), strict=True) if stop <= len(title)]
        expected = Counter(terms.tolist())
        for term in inside:
            expected[term] += round(TITLE_SHARE * len(terms) / len(inside))
        assert counts_of(table) == expected
        assert table.lengths().tolist() == [len(terms)], "the length of the text stays"


def test_a_text_without_its_title_or_that_is_its_title_is_counted_as_it_is() -> None:
    plain = count_words(ENGLISH, [BODY])
    for document in (named("queue", BODY), named("Elsewhere", BODY)):
        tables = count_documents(ENGLISH, [document])
        assert counts_of(tables.words) == counts_of(plain.words)
        assert tables.words.lengths().tolist() == plain.words.lengths().tolist()
    document = named("Queue of Agents", "Queue of Agents")
    assert title_span(document) == Span(0, 15)
    assert set(counts_of(count_documents(ENGLISH, [document]).words).values()) == {1}


DOCUMENT = make_document("d", [("", "The fox hunts. A quick fox. "), ("", "Two foxes hunt foxes; quick  fox hunts.")])


@pytest.mark.parametrize(
    ("term", "first", "second"),
    [
        ("fox", ["fox", "fox"], ["foxes", "foxes", "fox"]),
        ("Foxes", ["fox", "fox"], ["foxes", "foxes", "fox"]),
        ("quick fox", ["quick fox"], ["quick  fox"]),
        ("fox hunts", ["fox hunts"], ["foxes hunt", "fox hunts"]),
        ("the", [], []),
        ("dog", [], []),
    ],
)
def test_all_places_of_a_stem_are_found_by_section(term: str, first: list[str], second: list[str]) -> None:
    places, named = QueryText(DOCUMENT, "english").places, segmenter_of("english").segment(term)
    keys = [int(key) + PAIR for key in named.pairs] or [int(key) for key in named.words] or [0]
    _, spans = places.in_order(np.array(keys[:1]))
    for section, expected in zip(DOCUMENT.sections, (first, second), strict=True):
        own = [(start, end) for start, end in spans.tolist() if section.start <= start < section.stop]
        assert [DOCUMENT.text[start:end] for start, end in own] == expected


def test_a_copy_for_another_machine_is_without_what_can_be_computed_again() -> None:
    text = QueryText(DOCUMENT, "english")
    n_bytes = len(pickle.dumps(text))
    assert sum(int(table.counts.sum()) for table in text.places.tables(None)) == 18  # 11 words, 7 pairs
    assert len(pickle.dumps(text)) == n_bytes
    assert pickle.loads(pickle.dumps(text)).terms.words.tolist() == text.terms.words.tolist()
