"""`Request` normalises and checks its values, and makes itself again from what it records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.errors import QueryError
from engine.scoring.evidence import CONTAINMENT, Scoring
from engine.search.request import Explain, Mode, Request, parameters


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
        option = f"`{about.option or '--' + one.name.replace('_', '-')}`" if not about.is_constant else ""
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
