"""Pairs by label are compared with all pairs one by one; the memory that a large class takes."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import TrainingError
from engine.text.document import Document, MetadataValue
from engine.training.labels import pairs_by_label
from tests.fakes import make_document


def labelled(*values: MetadataValue) -> list[Document]:
    return [
        make_document(str(number), "text", metadata={} if value is None else {"label": value})
        for number, value in enumerate(values)
    ]


def test_documents_with_the_same_value_are_pairs() -> None:
    pairs = pairs_by_label(labelled("x", "y", "x", None, "x", "z"), "label")
    assert {one: dict(found) for one, found in pairs.items()} == {
        "0": {"2": 1, "4": 1},
        "2": {"0": 1, "4": 1},
        "4": {"0": 1, "2": 1},
    }


def test_each_item_of_a_list_is_a_label() -> None:
    pairs = pairs_by_label(labelled(["x", "y"], ["y"], "x", ["z", "z"]), "label")
    assert {one: dict(found) for one, found in pairs.items()} == {
        "0": {"2": 1, "1": 1},
        "1": {"0": 1},
        "2": {"0": 1},
    }


@given(st.lists(st.one_of(st.none(), st.integers(0, 3), st.lists(st.integers(0, 3), max_size=3)), max_size=9))
def test_pairs_are_those_found_one_by_one(values: list[MetadataValue]) -> None:
    documents = labelled(*values)
    sets = [set(value if isinstance(value, list) else [value]) - {None} for value in values]
    expected = {
        str(one): {str(other) for other in range(len(sets)) if other != one and sets[one] & sets[other]}
        for one in range(len(sets))
    }
    expected = {one: found for one, found in expected.items() if found}
    if not expected:
        with pytest.raises(TrainingError):
            pairs_by_label(documents, "label")
        return
    pairs = pairs_by_label(documents, "label")
    assert {one: set(found) for one, found in pairs.items()} == expected
    for one, found in pairs.items():
        assert len(found) == len(list(found)) == len(expected[one])
        assert one not in found
        assert all((str(other) in found) == (str(other) in expected[one]) for other in range(len(sets)))
        with pytest.raises(KeyError):
            found[one]


def test_order_is_that_of_the_documents_whatever_their_labels_hash_to() -> None:
    pairs = pairs_by_label(labelled(["x", "y"], "y", "x", "y"), "label")
    assert [list(pairs[one]) for one in "012"] == [["1", "3", "2"], ["0", "3"], ["0"]]


def test_memory_grows_with_the_documents_of_a_class_and_not_with_its_pairs() -> None:
    documents = labelled(*["x"] * 10_000)
    tracemalloc.start()
    pairs = pairs_by_label(documents, "label")
    n_pairs = sum(len(found) for found in pairs.values())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert n_pairs == 10_000 * 9_999
    assert peak < 1000 * len(documents)  # bytes; an entry a pair would be 10 GB


def test_a_label_that_no_two_share_is_refused() -> None:
    with pytest.raises(TrainingError) as raised:
        pairs_by_label(labelled("x", "y", None), "label")
    assert str(raised.value) == (
        "no two of 3 documents share a value of the metadata field 'label' (2 have one); name a field that they "
        "share, or give them train_pairs.tsv"
    )
