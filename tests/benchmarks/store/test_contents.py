from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.store.contents import Contents, compare, look, read_contents
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_corpus


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("contents") / "x.lm"
    build(path, make_corpus(6), encoder=FakeEncoder(), encode="all")
    return path


def read(index: Path) -> Contents:
    return read_contents(index, sorted(look(index))[:2])


def test_an_index_differs_from_one_without_a_document(index: Path) -> None:
    assert compare(read(index), read(index)).is_none
    less = read(index)
    first = sorted(less.documents)[0]
    del less.documents[first]
    difference = compare(less, read(index))
    assert (difference.documents, difference.vectors, difference.hits) == ([first], [], [])


def test_a_changed_vector_and_a_changed_score_are_found(index: Path) -> None:
    other = read(index)
    name, query = sorted(other.documents)[0], sorted(other.hits)[0]
    other.documents[name].vectors[-1, 0] += 0.5
    other.hits[query][0] = (other.hits[query][0][0], other.hits[query][0][1] + 0.25)
    difference = compare(other, read(index))
    assert (difference.documents, difference.vectors, difference.hits) == ([], [name], [query])
    assert difference.largest_vector_difference == pytest.approx(0.5)
    assert difference.largest_score_difference == pytest.approx(0.25)
