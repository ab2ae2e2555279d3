"""Metadata filters compared with plain Python over the same metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import QueryError
from engine.store.snapshot import IndexSnapshot
from engine.store.where import parse_where
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
        ("year", "one of = != < <= > >= in like exists before", 5, ""),
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
