from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import DatasetError, open_dataset, read_documents
from benchmarks.sections.planting import (
    LENGTHS,
    Damage,
    Form,
    Passage,
    Position,
    choose_adoptions,
    damaged,
    drop_words,
    host_words,
    n_words,
    plant,
    shuffle_sentences,
    split_by_length,
)
from engine.document import Document
from tests.fakes import make_document

TEXT = "One is first. Two is second. Three is third. Four is fourth. Five is fifth."
PASSAGE = Passage("Planted", "Green seed grows.")


@pytest.fixture
def host() -> Document:
    return make_document("host", [("One", "First. Second."), ("Two", "Third. Fourth."), ("Three", "Fifth. Sixth.")])


def test_dropped_words_leave_the_rest_in_order_and_shuffled_sentences_stay_whole() -> None:
    words = [f"w{number}" for number in range(50)]
    left = drop_words(" ".join(words), 0.3, np.random.default_rng(0)).split()
    assert len(left) == 35 and left == sorted(left, key=words.index)
    assert drop_words("a\n\nb", 0, np.random.default_rng(0)) == "a\n\nb"
    shuffled = shuffle_sentences(TEXT, np.random.default_rng(0))
    assert shuffled != TEXT and sorted(f"{shuffled} ".split(". ")) == sorted(f"{TEXT} ".split(". "))


def test_damages_are_seeded_and_only_a_copy_has_the_heading() -> None:
    kinds = {damage: damaged(Passage("A", TEXT), damage, np.random.default_rng(1)) for damage in Damage}
    assert {damage: passage.heading for damage, passage in kinds.items() if passage.heading} == {Damage.COPY: "A"}
    # round(0.1 * 15) is 2: halves are rounded to the even number.
    assert [len(passage.text.split()) for passage in kinds.values()] == [15, 13, 11, 7, 15]
    assert kinds[Damage.COPY].text == TEXT
    assert damaged(Passage("A", TEXT), Damage.DROP_50, np.random.default_rng(1)) == kinds[Damage.DROP_50]


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("position", Position)
def test_the_host_holds_the_passage_and_all_that_it_was(host: Document, position: Position, form: Form) -> None:
    planted = plant(host, PASSAGE, position, form)
    document, span = planted.document, planted.span
    expected = "Planted\n\nGreen seed grows." if form is Form.SECTION else "Green seed grows."
    assert document.text[span.start : span.stop] == expected
    assert (document.text[: span.start] + document.text[span.stop :]).split() == host.text.split()
    starts, stops = ([getattr(section, end) for section in document.sections] for end in ("start", "stop"))
    assert starts == [0, *stops[:-1]] and stops[-1] == len(document.text)
    holder = document.sections[planted.section]
    assert holder.start <= span.start < span.stop <= holder.stop
    kept = [section.heading for section in document.sections if section is not holder or form is Form.PASSAGE]
    assert kept == ["One", "Two", "Three"]


def test_positions_are_the_first_the_middle_and_the_last(host: Document) -> None:
    sections = [plant(host, PASSAGE, position, Form.SECTION).section for position in Position]
    passages = [plant(host, PASSAGE, position, Form.PASSAGE).section for position in Position]
    assert (sections, passages) == ([0, 1, 3], [0, 1, 2])
    middle = plant(host, PASSAGE, Position.MIDDLE, Form.PASSAGE).document
    text = " ".join(middle.text.split())
    assert text == "One First. Second. Two Third. Green seed grows. Fourth. Three Fifth. Sixth."


@pytest.fixture
def documents(long_folder: Path) -> list[Document]:
    return list(read_documents(open_dataset(str(long_folder))))


def test_sections_of_queries_are_adopted_by_other_documents(documents: list[Document]) -> None:
    adoptions = choose_adoptions(documents, 2, seed=0)
    names = [name for adoption in adoptions for name in (adoption.query, adoption.host)]
    assert len(names) == len(set(names)) == 12
    assert [adoption.length for adoption in adoptions] == [*LENGTHS] * 2
    assert adoptions == choose_adoptions(documents, 2, seed=0) != choose_adoptions(documents, 2, seed=1)
    by_id = {document.doc_id: document for document in documents}
    for adoption in adoptions:
        query = by_id[adoption.query]
        section = query.sections[adoption.section]
        assert adoption.section > 0 and adoption.passage.heading == section.heading
        text = query.text[section.start : section.stop]
        assert text.split() == [*section.heading.split(), *adoption.passage.text.split()]
        assert adoption.n_shared == 0  # each document has its own rare words
    for length, ends in host_words(by_id, adoptions).items():
        own = [n_words(by_id[adoption.host]) for adoption in adoptions if adoption.length == length]
        assert ends == [min(own), max(own)]


def test_a_query_gets_the_host_that_shares_least() -> None:
    """Every document has a twin with the same rare words, which is never its host."""
    documents = []
    for letter in "abcdefghij":
        words = [f"{letter}{number}" for number in ("uno", "due", "tre", "quattro", "cinque")]
        text = " ".join(f"The {word} stands here in a line with so many other plain words." for word in words)
        documents += [make_document(f"{letter}{twin}", [("", "title"), ("Part", text)]) for twin in (1, 2)]
    for seed in range(5):
        for adoption in choose_adoptions(documents, 2, seed):
            assert adoption.query[0] != adoption.host[0] and adoption.n_shared == 0


def test_thirds_are_by_words(documents: list[Document]) -> None:
    thirds = split_by_length(documents)
    assert [len(third) for third in thirds.values()] == [8, 8, 8]
    for shorter, longer in combinations(thirds.values(), 2):
        assert max(map(n_words, shorter)) <= min(map(n_words, longer))


def test_too_few_documents_are_refused(documents: list[Document]) -> None:
    with pytest.raises(DatasetError, match=r"15 plantings need 15 queries .* 24 documents have 15 and 9; plant fewer"):
        choose_adoptions(documents, 5, seed=0)
    boilerplate = [make_document(f"d{number}", [("", "title"), ("Licence", "as is " * 80)]) for number in range(9)]
    with pytest.raises(DatasetError, match=r"3 plantings need 3 queries .* 9 documents have 0 and 9"):
        choose_adoptions(boilerplate, 1, seed=0)
