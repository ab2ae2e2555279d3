"""Metadata filters compared with plain Python over the same metadata, and filters given as a dict with their text."""

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
    "pep": {"family": "pep", "year": 2019, "tags": ["a", "b"], "draft": True, "score": 0.5},
    "rfc": {"family": "rfc", "year": 2021, "tags": ["b", "c"], "draft": False, "score": -1.25},
    "old": {"family": "O'Reilly", "year": 1987, "tags": [], "publisher name": 'say "hi"', "nothing": None},
    "bare": {},
    "odd": {
        "and": "yes",
        "back\\slash": 1,
        "dotted.key": "x",
        "ключ": "значение",
        "pct": "100%",
        "mixed": [1, "a", None],
    },
}


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexSnapshot]:
    with IndexSnapshot(write_metadata(tmp_path_factory.mktemp("where") / "x.lm", METADATA)) as opened:
        yield opened


Matching = Callable[[str], list[str]]


@pytest.fixture
def matching(snapshot: IndexSnapshot) -> Matching:
    return lambda where: [name for name, kept in zip(METADATA, snapshot.matching(where), strict=True) if kept]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("family = 'pep'", ["pep"]),
        ("family == 'pep'", ["pep"]),
        ('family="pep"', ["pep"]),
        ("FAMILY = 'pep'", []),
        ("family != 'pep'", ["rfc", "old", "bare", "odd"]),
        ("family <> 'pep'", ["rfc", "old", "bare", "odd"]),
        ("year >= 2019", ["pep", "rfc"]),
        ("year>2019", ["rfc"]),
        ("year > '2019'", ["rfc"]),
        ("year in ('1987', '2021')", ["rfc", "old"]),
        ("year < 'text'", []),
        ("family > 5", []),
        ("year < 2019", ["old"]),
        ("year <= 2019", ["pep", "old"]),
        ("score < -1", ["rfc"]),
        ("score = 0.5", ["pep"]),
        ("draft = true", ["pep"]),
        ("draft = FALSE", ["rfc"]),
        ("draft != true", ["rfc", "old", "bare", "odd"]),
        ("tags = 'b'", ["pep", "rfc"]),
        ("tags != 'b'", ["old", "bare", "odd"]),
        ("tags in ('c', 'a')", ["pep", "rfc"]),
        ("year in (1987, 2021)", ["rfc", "old"]),
        ("family like 'P%'", ["pep"]),
        ("family like '_fc'", ["rfc"]),
        ("year exists", ["pep", "rfc", "old"]),
        ("tags exists", ["pep", "rfc"]),
        ("nothing exists", []),
        ("not year exists", ["bare", "odd"]),
        ("year not exists", ["bare", "odd"]),
        ("family not in ('pep', 'rfc')", ["old", "bare", "odd"]),
        ("family not like '%p%' and family NOT LIKE 'rf_'", ["old", "bare", "odd"]),
        ("not not year exists", ["pep", "rfc", "old"]),
        ("family = 'O''Reilly'", ["old"]),
        ("`publisher name` = 'say \"hi\"'", ["old"]),
        ('`publisher name` = "say ""hi"""', ["old"]),
        ("`and` = 'yes'", ["odd"]),
        ("`back\\slash` = 1", ["odd"]),
        ("dotted.key = 'x'", ["odd"]),
        ("`dotted.key` = 'x'", ["odd"]),
        ("ключ = 'значение'", ["odd"]),
        ("mixed = 'a' and mixed = 1", ["odd"]),
        ("doc_id = 'bare'", ["bare"]),
        ("title like 'the r%'", ["rfc"]),
        ("source = 'odd.txt'", ["odd"]),
        ("doc_id in ('pep', 'old', 'none')", ["pep", "old"]),
        ("family = 'pep' or family = 'rfc' and year < 2000", ["pep"]),
        ("(family = 'pep' or family = 'rfc') and year < 2000", []),
        ("not (family = 'pep' or family = 'rfc')", ["old", "bare", "odd"]),
        ("NOT family = 'pep' AND year exists", ["rfc", "old"]),
        ("\n year\t>=\n2019 ", ["pep", "rfc"]),
        ("no_such_key = 1", []),
        ("year = '2019'", ["pep"]),
        ("family = 2019", []),
    ],
)
def test_a_filter_keeps_the_documents_that_match(matching: Matching, where: str, expected: list[str]) -> None:
    assert matching(where) == expected


@pytest.mark.parametrize(
    "value",
    ["' OR 1=1 --", "'; DROP TABLE documents; --", "%' OR '1'='1", "\\'", "$.family", ":value", "?1", "\x00", "100%"],
)
def test_an_injection_is_a_literal(matching: Matching, value: str) -> None:
    quoted = value.replace("'", "''")
    assert matching(f"family = '{quoted}'") == []
    assert matching(f"pct = '{quoted}'") == (["odd"] if value == "100%" else [])


@pytest.mark.parametrize("key", ["a' OR '1'='1", "$", "$[0]", 'x"; --', "[0]", "*", "a\\", "?", ":p", "#-1", '"'])
def test_an_injection_in_a_key_is_a_key(matching: Matching, key: str) -> None:
    assert matching(f"`{key}` exists") == []


@given(st.text(alphabet="ab'\"\\%_$;-", max_size=8))
def test_any_quoted_text_is_read_unchanged(text: str) -> None:
    bound = parse_where("k = '{}'".format(text.replace("'", "''"))).values
    assert text in bound


@pytest.mark.parametrize(
    ("where", "expected", "character", "found"),
    [
        ("", "a metadata key", 1, ""),
        ("year", "one of = != < <= > >= not in like exists before", 5, ""),
        ("year not = 3", "one of in like exists before", 10, "= 3"),
        ("year =", "a value ('text', a number, true or false)", 7, ""),
        ("year = = 3", "a value ('text', a number, true or false)", 8, "= 3"),
        ("year = 3 family = 'x'", "'and', 'or' or the end", 10, "family = 'x'"),
        ("year = 3 and", "a metadata key", 13, ""),
        ("(year = 3", "')'", 10, ""),
        ("year = 3)", "'and', 'or' or the end", 9, ")"),
        ("year in (1, )", "a value ('text', a number, true or false)", 13, ")"),
        ("year in 1", "'('", 9, "1"),
        ("year = $", "a key, value or operator", 8, "$"),
        ("family = 'unclosed", "a key, value or operator", 10, "'unclosed"),
        ("true = 1", "a metadata key", 1, "true = 1"),
        ("1 = 1", "a metadata key", 1, "1 = 1"),
        ("year = 5.", "a value ('text', a number, true or false)", 8, "5."),
        ("a = 1; drop table documents", "a key, value or operator", 6, "; drop table documen"),
    ],
)
def test_an_error_points_at_the_place(where: str, expected: str, character: int, found: str) -> None:
    with pytest.raises(QueryError) as raised:
        parse_where(where)
    assert str(raised.value) == (
        f"filter {where!r}: expected {expected} at character {character}, found {repr(found) if found else 'its end'}; "
        "for example: family = 'pep' and year >= 2019"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "where",
    [
        "(" * 3000 + "a = 1" + ")" * 3000,
        "not " * 3000 + "a = 1",
        " or ".join(["a = 1"] * 3000),
        " and ".join(["a = 1"] * 3000),
        "year = 99999999999999999999999",
        "year = " + "9" * 5000,
        "year in (" + ", ".join(["1"] * 40_000) + ")",
        "(a = 1 or (b = 1 and " * 13 + "c = 1" + "))" * 13,
        "(a = 1 or (b = 1 and " * 15 + "c = 1" + "))" * 15,
        " or ".join(["a = 1"] * 200),
        "draft < true",
        "title = true",
        "title > true",
        "year in (true, 2019)",
    ],
)
def test_a_monstrous_filter_is_answered_or_refused(matching: Matching, where: str) -> None:
    try:
        answer: Any = matching(where)
    except QueryError as error:
        assert "expected at most" in str(error)
        return
    assert set(answer) <= set(METADATA)


def test_a_list_of_many_values_is_taken(matching: Matching) -> None:
    names = ", ".join(f"'{number}'" for number in range(5000))
    assert matching(f"doc_id in ({names}, 'pep')") == ["pep"]


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ({"venue": "O'Reilly"}, "`venue` = 'O''Reilly'"),
        ({"venue": ["ACL", "EMNLP"]}, "`venue` in ('ACL', 'EMNLP')"),
        ({"venue": {"ACL"}}, "`venue` in ('ACL')"),
        ({"year": {">": 1987, "<=": 2021}}, "`year` > 1987 and `year` <= 2021"),
        ({"year": {"$gte": 2019, "$lt": 2021}}, "`year` >= 2019 and `year` < 2021"),
        ({"year": {"$gt": 2019, "$lte": 2021}, "x": ["y"]}, "`year` > 2019 and `year` <= 2021 and `x` in ('y')"),
        ({"year": {"$eq": 1, "==": 2, "$ne": 3, "<>": 4}}, "`year` = 1 and `year` = 2 and `year` != 3 and `year` != 4"),
        ({"year": {"in": (2019, 1987), "$in": [1]}}, "`year` in (2019, 1987) and `year` in (1)"),
        ({"year": {"not in": [2019], "$nin": [1]}}, "not `year` in (2019) and not `year` in (1)"),
        ({"year": None}, "not `year` exists"),
        ({"year": {"!=": None, "$eq": None}}, "`year` exists and not `year` exists"),
        ({"year": {"exists": True, "$exists": False}}, "`year` exists and not `year` exists"),
        ({"venue": {"like": "%l%", "$like": "a"}}, "`venue` like '%l%' and `venue` like 'a'"),
        ({"is_draft": True, "x": {"!=": False}}, "`is_draft` = true and `x` != false"),
        ({"a": np.bool_(False), "b": np.int64(2019), "c": np.float64(0.5)}, "`a` = false and `b` = 2019 and `c` = 0.5"),
        ({"share": {"<": 1.5e-7}}, "`share` < 0.00000015"),
        ({"big": {">=": 10**25}}, "`big` >= 10000000000000000000000000.0"),
        ({"day": {">=": datetime.date(2019, 1, 1)}}, "`day` >= '2019-01-01'"),
        ({"$or": [{"a": 1}, {"b": {"$nin": [0.5]}}], "c": 1}, "((`a` = 1) or (not `b` in (0.5))) and `c` = 1"),
        ({"$and": [{"tags": "b"}, {"$not": {"x": 1, "y": 2}}]}, "((`tags` = 'b') and (not (`x` = 1 and `y` = 2)))"),
        ({"and": 1, "must": "have", "back`tick": "`"}, "`and` = 1 and `must` = 'have' and `back``tick` = '`'"),
        ({}, None),
    ],
)
def test_a_dict_is_written_as_a_filter(where: dict[str, Any], text: str | None) -> None:
    assert where_text(where) == text
    parse_where(text or "doc_id exists")


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


def test_a_filter_may_be_nested_but_not_without_end_and_is_shortened_in_its_error() -> None:
    parse_where(where_text(nested(5)) or "")
    with pytest.raises(QueryError, match="at most 12 filters inside each other"):
        where_text(nested(500))
    with pytest.raises(QueryError) as raised:
        where_text({"year": {"=>": "x" * 100_000}})
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize("digits", [400, 10_000])
def test_a_number_beyond_all_floats_is_refused(digits: int) -> None:
    with pytest.raises(QueryError, match="inf at 'year' cannot be compared"):
        where_text({"year": 10**digits})


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
