"""The fields of a request, dates among them."""

import datetime
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import longmatch
from engine.errors import QueryError
from engine.index import Index
from engine.scoring.evidence import CONTAINMENT, Scoring
from engine.search.request import Explain, Mode, Request, parameters
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_document
from tests.strict_schema import check


def test_values_are_normalised_and_a_comparison_records_what_it_reads() -> None:
    request = Request.of(
        where={"year": {">=": 2019}}, without="a", skip={"appendix"}, weights=None, mode="containment", explain="model"
    )
    assert request == Request(
        where="`year` >= 2019", without=("a",), skip=("appendix",), mode=Mode.CONTAINMENT, explain=Explain.MODEL
    )
    assert request.scoring == CONTAINMENT
    assert list(Request(skip=("appendix",)).recorded_comparison()) == ["skip", "weights", "scoring"]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"k": 3, "weights": {"claims": 3}, "without": ["a", "b"], "scoring": Scoring(power=1.0)},
        {"least": "auto"},
        {"least": "0.25"},
        {"mode": "novelty", "skip": ["references", "appendix"], "encode_tokens": 9},
    ],
)
def test_a_request_is_made_again_from_its_record(values: dict[str, Any]) -> None:
    request = Request.of(**values)
    assert Request.of(**json.loads(json.dumps(request.recorded()))) == request


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"min_pairs": 1}, "a search has no parameter 'min_pairs'; did you mean min_pair?"),
        ({"colour": 1}, "a search has no parameter 'colour'; these are: k, offset, where"),
        ({"k": 0}, "k is 0; it must be at least 1"),
        ({"k": 2.5}, "k is 2.5; it must be a whole number"),
        ({"k": None}, "k is None; it must be a whole number"),
        ({"offset": True}, "offset is True; it must be a whole number"),
        ({"offset": -1}, "offset is -1; it must be at least 0"),
        ({"min_pair": 2}, "min_pair is 2; it must be from 0 to 1"),
        ({"min_pair": float("nan")}, "min_pair is nan; it must be from 0 to 1"),
        ({"least": "high"}, "least is 'high'; it must be a number or auto"),
        ({"least": "1.5"}, "least is 1.5; it must be from 0 to 1"),
        ({"exact": 1}, "exact is 1; it must be bool"),
        ({"mode": "near"}, "mode is 'near'; it must be one of: similar, containment, novelty"),
        ({"explain": "attention"}, "explain is 'attention'; it must be one of: evidence, model"),
        ({"skip": ["body"]}, "'body' is no kind of section that can be skipped; these are: references, acknowl"),
        ({"without": [3]}, "without is [3]; pass a doc_id or a list of them, as hit.doc_id"),
        ({"weights": ["claims"]}, 'the weights are list; pass a dict, as {"claims": 3, "abstract": 0}'),
        ({"where": 3}, "the filter is int; pass a dict or a text, as {'year': {'>=': 2019}}"),
        ({"where": "{"}, "the filter is not JSON ("),
        ({"scoring": CONTAINMENT}, "mode is 'similar' and the scoring has cover=True; leave out one of them"),
        ({"mode": "novelty", "k": 3, "exact": True}, "k and exact are for rankings of documents; leave out with mode"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(QueryError) as caught:
        Request.of(**values)
    assert str(caught.value).startswith(message)


def table() -> str:
    """The fields as a table of Markdown."""
    rows = ["| parameter | command line | default | meaning |", "| --- | --- | --- | --- |"]
    for one in parameters():
        about = one.about
        names = (about.option or "--" + one.name.replace("_", "-")).split()
        option = ", ".join(f"`{name}`" for name in names) if not about.is_constant else ""
        default = f"`{json.dumps(one.plain(Request()))}`" if not about.is_constant else "that of the mode"
        least, most = (f"{bound:g}" if bound is not None else None for bound in (about.least, about.most))
        limits = f" From {least} to {most}." if most else f" At least {least}." if least else ""
        choices = f" One of {', '.join(f'`{choice}`' for choice in about.choices)}." if about.choices else ""
        served = f" At most {about.most_served:,} over HTTP." if about.most_served else ""
        novelty = " Read by novelty, too." if about.in_novelty and one.name != "mode" else ""
        rows.append(f"| `{one.name}` | {option} | {default} | {about.text}{choices}{limits}{served}{novelty} |")
    return "\n".join(rows) + "\n"


def test_the_table_of_the_docs_has_the_fields() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "search.md").read_text()
    assert table() in page, table()


DATES: list[dict[str, Any]] = [
    {"date": "2019-05-31"},
    {"date": "2019-06-01"},
    {"date": "2019-05-31T23:59:59Z"},
    {"date": "2019-05"},
    {"date": "2019-06"},
    {"year": 2018},
    {"year": "2019"},
    {"date": "June 2020", "year": 2018},
    {"date": "2020-01-01", "year": 2018},
    {"published": "2018-12-31", "created": "2020-01-01"},
    {"date": ["2020-01-01", "2018-01-01"]},
    {"date": "05-Aug-2003"},
    {"date": ""},
    {"date": 20180101},
    {"priority": "1999-01-01"},
    {},
]
PASSING = [0, 2, 3, 5, 7, 9, 10]
UNDATED = [11, 12, 13, 14, 15]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dated") / "x.lm"
    documents = [
        replace(make_document(f"d{number:02d}", f"fox river word{number}"), metadata=metadata | {"part": number % 2})
        for number, metadata in enumerate(DATES)
    ]
    build(folder, documents, encoder=FakeEncoder(), encode="none")
    return folder


def names(result: Any) -> list[int]:  # noqa: ANN401
    return sorted(int(hit.doc_id[1:]) for hit in result)


@pytest.mark.parametrize("before", ["2019-06-01", "2019-06", datetime.date(2019, 6, 1)])
def test_what_passes_is_certainly_before_the_day(folder: Path, before: Any) -> None:  # noqa: ANN401
    with longmatch.open(folder) as index:
        result = index.search("fox river", before=before, k=50)
        assert (names(result), result.n_undated) == (PASSING, len(UNDATED))
        assert check(result.to_dict())["provenance"]["parameters"]["before"] == "2019-06-01"
        assert f"({len(UNDATED)} without a date left out)" in str(result) and "5 without a date" in result.to_html()
        odd = index.search("fox river", before=before, where="part = 1", k=50)
        assert names(odd) == [number for number in PASSING if number % 2]
        assert odd.n_undated == sum(number % 2 for number in UNDATED)
        assert index.search("fox river").n_undated is None
        joint = index.search_together(["fox river"], before=before, k=50)
        assert (names(joint), joint.to_dict()["n_undated"]) == (PASSING, len(UNDATED))
        novelty = index.search("fox river", before=before, mode="novelty")
        assert (novelty.n_searched, novelty.n_undated) == (len(PASSING), len(UNDATED))


def test_filters_compare_any_field_with_a_date(folder: Path) -> None:
    with Index.open(folder) as index:
        query = make_document("q", "fox river")
        assert names(index.search(query, Request(where="priority before 2000"))) == [14]
        assert names(index.search(query, Request(where="not year before '2019' and year exists"))) == [6]
        with pytest.raises(QueryError, match="expected a date, as 2019"):
            index.search(query, Request(where="year before 'soon'"))


def test_a_cut_off_can_name_another_field(folder: Path) -> None:
    with longmatch.open(folder) as index:
        result = index.search("fox river", before="priority=2000", k=50)
        assert (names(result), result.n_undated) == ([14], len(DATES) - 1)
        assert result.to_dict()["provenance"]["parameters"]["before"] == "priority=2000-01-01"
        with pytest.raises(QueryError, match="no document has the field 'prority'; did you mean"):
            index.search("fox river", before="prority=2000")


@pytest.mark.parametrize("before", ["=2019", "year=soon", "2019-13", "2019-6-1", "19", "", "2019-06-01T00:00", True])
def test_other_values_are_no_date(before: object) -> None:
    with pytest.raises(QueryError, match="it must be a date"):
        Request.of(before=before)


def test_an_index_without_dates_is_refused(tmp_path: Path) -> None:
    build(tmp_path / "x.lm", [make_document("d", "fox river")], encoder=FakeEncoder(), encode="none")
    with Index.open(tmp_path / "x.lm") as index, pytest.raises(QueryError, match="no document has a date"):
        index.search(make_document("q", "fox"), Request(before="2019"))
