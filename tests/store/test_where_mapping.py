"""Filters given as a dict, compared with the same filters as text and with plain Python."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import QueryError
from engine.store.snapshot import IndexSnapshot
from engine.store.where import parse_where, where_text
from engine.text.document import MetadataValue
from tests.store.written import write_metadata

METADATA: dict[str, Mapping[str, MetadataValue]] = {
    "acl": {"venue": "ACL", "year": 2019, "tags": ["a", "b"], "is_draft": True, "day": "2019-07-28"},
    "emnlp": {"venue": "EMNLP", "year": 2021, "tags": ["b", "c"], "is_draft": False, "share": 1e-7},
    "old": {"venue": "O'Reilly", "year": 1987, "publisher name": 'say "hi"', "nothing": None},
    "bare": {},
    "odd": {"$and": "x", "and": 1, "back`tick": "`", "ключ": "значение", "must": "have", "big": 1e25},
}
ALL = list(METADATA)
Matching = Callable[[Mapping[str, Any]], list[str]]


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexSnapshot]:
    with IndexSnapshot(write_metadata(tmp_path_factory.mktemp("where") / "x.lm", METADATA)) as opened:
        yield opened


@pytest.fixture
def matching(snapshot: IndexSnapshot) -> Matching:
    def found(where: Mapping[str, Any]) -> list[str]:
        text = where_text(where)
        return [name for name, kept in zip(ALL, snapshot.matching(text or "doc_id exists"), strict=True) if kept]

    return found


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"venue": "ACL"}, ["acl"]),
        ({"venue": ["ACL", "EMNLP"]}, ["acl", "emnlp"]),
        ({"venue": {"ACL"}}, ["acl"]),
        ({"year": {">=": 2019}}, ["acl", "emnlp"]),
        ({"year": {">": 1987, "<": 2021}}, ["acl"]),
        ({"year": {"$gte": 2019, "$lt": 2021}}, ["acl"]),
        ({"year": {"$gt": 2019}, "venue": ["ACL", "EMNLP"]}, ["emnlp"]),
        ({"year": {"<=": 1987}}, ["old"]),
        ({"year": {"=": 2019}}, ["acl"]),
        ({"year": {"$eq": 2019}}, ["acl"]),
        ({"year": {"!=": 2019}}, ["emnlp", "old", "bare", "odd"]),
        ({"year": {"$ne": 2019}}, ["emnlp", "old", "bare", "odd"]),
        ({"year": {"in": (2019, 1987)}}, ["acl", "old"]),
        ({"year": {"$in": [2019]}}, ["acl"]),
        ({"year": {"not in": [2019, 2021]}}, ["old", "bare", "odd"]),
        ({"year": {"$nin": [2019, 2021], ">": 0}}, ["old"]),
        ({"tags": "b"}, ["acl", "emnlp"]),
        ({"tags": ["a", "c"]}, ["acl", "emnlp"]),
        ({"year": None}, ["bare", "odd"]),
        ({"nothing": None}, ALL),
        ({"year": {"!=": None}}, ["acl", "emnlp", "old"]),
        ({"year": {"=": None}}, ["bare", "odd"]),
        ({"year": {"exists": True}}, ["acl", "emnlp", "old"]),
        ({"year": {"$exists": False}}, ["bare", "odd"]),
        ({"venue": {"like": "%l%"}}, ["acl", "emnlp", "old"]),
        ({"is_draft": True}, ["acl"]),
        ({"is_draft": {"!=": True}}, ["emnlp", "old", "bare", "odd"]),
        ({"is_draft": np.bool_(False)}, ["emnlp"]),
        ({"year": np.int64(2019)}, ["acl"]),
        ({"share": 1e-7}, ["emnlp"]),
        ({"share": {"<": 1.5e-7}}, ["emnlp"]),
        ({"big": {">=": 10**25}}, ["odd"]),
        ({"day": datetime.date(2019, 7, 28)}, ["acl"]),
        ({"day": {">=": datetime.date(2019, 1, 1)}}, ["acl"]),
        ({"$or": [{"venue": "ACL"}, {"year": 1987}]}, ["acl", "old"]),
        ({"$and": [{"tags": "b"}, {"year": {">": 2020}}]}, ["emnlp"]),
        ({"$not": {"venue": ["ACL", "EMNLP"]}}, ["old", "bare", "odd"]),
        ({"$or": [{"venue": "ACL", "year": 0}, {"$not": {"year": {"exists": True}}}]}, ["bare", "odd"]),
        ({"tags": "b", "$or": [{"year": 2019}, {"year": 2020}]}, ["acl"]),
        ({"doc_id": ["acl", "none"]}, ["acl"]),
        ({"and": 1}, ["odd"]),
        ({"must": "have"}, ["odd"]),
        ({"back`tick": "`"}, ["odd"]),
        ({"ключ": "значение"}, ["odd"]),
        ({"publisher name": 'say "hi"'}, ["old"]),
        ({"venue": "O'Reilly"}, ["old"]),
        ({"year": "2019"}, ["acl"]),
        ({}, ALL),
    ],
)
def test_a_filter_keeps_the_documents_that_match(
    matching: Matching, where: dict[str, Any], expected: list[str]
) -> None:
    assert matching(where) == expected


def test_the_text_is_the_language_of_filters() -> None:
    where = {"year": {">=": 2019, "<": 2024}, "venue": ["ACL", "O'Reilly"], "$or": [{"a": 1}, {"b": {"$nin": [0.5]}}]}
    assert where_text(where) == (
        "`year` >= 2019 and `year` < 2024 and `venue` in ('ACL', 'O''Reilly') and ((`a` = 1) or (not `b` in (0.5)))"
    )
    assert where_text({}) is None


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ({"year": {"=>": 1}}, "'=>' at 'year' is not an operator; known: = != < <= > >= in, not in, like, exists"),
        ({"year": {"$regex": "x"}}, "'$regex' at 'year' is not an operator"),
        ({"year": {}}, "no operator at 'year'"),
        ({"year": {">": None}}, "None at 'year' is NoneType; compare with text, a number, True or False"),
        ({"year": {">": [1]}}, "[1] at 'year' is a list; compare it with 'in' or 'not in'"),
        ({"year": {"in": 1}}, "'in' at 'year' takes a list, not 1"),
        ({"year": {"in": "ab"}}, "'in' at 'year' takes a list, not 'ab'"),
        ({"year": {"exists": 1}}, "'exists' at 'year' takes True or False, not 1"),
        ({"year": {"like": 1}}, "'like' at 'year' takes a text with % for any characters, not 1"),
        ({"year": []}, "the list at 'year' is empty; name a value, or leave 'year' out"),
        ({"year": [[1]]}, "[1] at 'year' is a list"),
        ({"year": float("nan")}, "nan at 'year' cannot be compared"),
        ({"year": {">": float("inf")}}, "inf at 'year' cannot be compared"),
        ({"year": object}, "<class 'object'> at 'year' is type; compare with"),
        ({"year": b"x"}, "b'x' at 'year' is bytes; compare with"),
        ({5: 1}, "the key 5 is not a text"),
        ({"": 1}, "the key '' is not a text"),
        ({"$xor": []}, "'$xor' joins no filters; known are $and, $or, $not, and $cites with a text"),
        ({"$cites": 3}, "'$cites' joins no filters"),
        ({"$and": {"a": 1}}, "'$and' takes a list of filters, not {'a': 1}"),
        ({"$or": []}, "'$or' takes a list of filters, not []"),
        ({"$or": [5]}, "5 is not a filter: a dict of keys and values"),
        ({"$not": {}}, "{} is not a filter: a dict of keys and values"),
        ({"must": [{"key": "city", "match": {"value": "x"}}]}, "'must' joins no filters; use $and, $or, $not"),
    ],
)
def test_an_error_names_the_place(where: dict[Any, Any], reason: str) -> None:
    with pytest.raises(QueryError) as raised:
        where_text(where)
    assert str(raised.value).startswith(f"filter {where!r}: {reason}")
    assert str(raised.value).endswith('; for example: {"year": {">=": 2019}, "venue": ["ACL", "EMNLP"]}')


def nested(depth: int) -> dict[str, Any]:
    where: dict[str, Any] = {"a": 1}
    for _ in range(depth):
        where = {"$not": {"$and": [where]}}
    return where


def test_a_filter_may_be_nested_but_not_without_end() -> None:
    parse_where(where_text(nested(5)) or "")
    with pytest.raises(QueryError, match="at most 12 filters inside each other"):
        where_text(nested(500))


@pytest.mark.parametrize("digits", [400, 10_000])
def test_a_number_beyond_all_floats_is_refused(digits: int) -> None:
    with pytest.raises(QueryError, match="inf at 'year' cannot be compared"):
        where_text({"year": 10**digits})


def test_a_long_filter_is_shortened_in_its_error() -> None:
    with pytest.raises(QueryError) as raised:
        where_text({"year": {"=>": "x" * 100_000}})
    assert len(str(raised.value)) < 400


@pytest.mark.slow
def test_a_list_of_many_values_is_taken(matching: Matching) -> None:
    assert matching({"doc_id": [*map(str, range(20_000)), "acl"]}) == ["acl"]


PLAIN = (
    st.text(max_size=8)
    | st.integers(-(2**70), 2**70)
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
)


@pytest.mark.slow
@given(st.dictionaries(st.text(alphabet="ab'\"\\%_$;-` .", min_size=1, max_size=6), PLAIN, min_size=1, max_size=3))
def test_any_key_and_value_is_read_unchanged(where: dict[str, Any]) -> None:
    where = {key: value for key, value in where.items() if not key.startswith("$")}
    if where:
        bound = parse_where(where_text(where) or "").values
        for value in where.values():
            expected = float(value) if isinstance(value, int) and abs(value) >= 2**63 else value  # none such is stored
            assert any(one == expected for one in bound)
