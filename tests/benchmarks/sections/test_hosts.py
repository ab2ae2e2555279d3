from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from benchmarks.datasets import DatasetError, open_dataset, read_documents
from benchmarks.sections.hosts import LENGTHS, choose_adoptions, host_words, n_words, split_by_length
from engine.document import Document
from tests.fakes import make_document


@pytest.fixture
def documents(long_folder: Path) -> list[Document]:
    return list(read_documents(open_dataset(str(long_folder))))


def test_queries_and_hosts_are_different_documents(documents: list[Document]) -> None:
    adoptions = choose_adoptions(documents, 2, seed=0)
    names = [name for adoption in adoptions for name in (adoption.query, adoption.host)]
    assert len(names) == len(set(names)) == 12
    assert [adoption.length for adoption in adoptions] == [*LENGTHS] * 2
    assert adoptions == choose_adoptions(documents, 2, seed=0) != choose_adoptions(documents, 2, seed=1)


def test_the_passage_is_the_sections_text_without_its_heading(documents: list[Document]) -> None:
    by_id = {document.doc_id: document for document in documents}
    for adoption in choose_adoptions(documents, 1, seed=0):
        query = by_id[adoption.query]
        section = query.sections[adoption.section]
        assert adoption.section > 0 and adoption.passage.heading == section.heading
        text = query.text[section.start : section.stop]
        assert text.split() == [*section.heading.split(), *adoption.passage.text.split()]
        assert adoption.n_shared == 0  # each document has its own rare words


def test_a_query_gets_the_host_that_shares_least() -> None:
    """Every second document has a twin with the same rare words, which it never gets."""
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


def test_the_words_of_hosts_are_told(documents: list[Document]) -> None:
    by_id = {document.doc_id: document for document in documents}
    adoptions = choose_adoptions(documents, 2, seed=0)
    for length, ends in host_words(by_id, adoptions).items():
        own = [n_words(by_id[adoption.host]) for adoption in adoptions if adoption.length == length]
        assert ends == [min(own), max(own)]


def test_too_few_documents_are_told(documents: list[Document]) -> None:
    with pytest.raises(DatasetError, match=r"15 plantings need 15 queries .* 24 documents have 15 and 9; plant fewer"):
        choose_adoptions(documents, 5, seed=0)
    boilerplate = [make_document(f"d{number}", [("", "title"), ("Licence", "as is " * 80)]) for number in range(9)]
    with pytest.raises(DatasetError, match=r"3 plantings need 3 queries .* 9 documents have 0 and 9"):
        choose_adoptions(boilerplate, 1, seed=0)
