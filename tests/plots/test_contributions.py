"""Heat maps of results: their cells are the contributions, their columns sum to the scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from engine.errors import MissingExtra, QueryError
from engine.index import Index
from engine.search.request import Request
from engine.views import Result


@pytest.fixture
def result(index: Index) -> Result:
    return index.search("doc003", Request(k=4))


def cells(figure: Figure) -> np.ndarray:
    return np.asarray(figure.axes[0].images[0].get_array())


def test_a_hit_has_a_cell_for_each_section_pair(result: Result) -> None:
    hit = result[0]
    values = cells(hit.plot())
    expected = np.zeros((len(result.query.sections), len(hit.document.sections)))
    for pair in hit.pairs:
        expected[pair.query_section, pair.target_section] += pair.contribution
    np.testing.assert_allclose(values, expected, atol=1e-6)
    assert values.sum() == pytest.approx(hit.score, abs=1e-5)


def test_the_title_has_the_score(result: Result) -> None:
    assert result[0].plot().axes[0].get_title("left") == f"1. score {result[0].score:.4f}"


def test_columns_of_a_result_sum_to_the_scores(result: Result) -> None:
    figure = result.plot()
    np.testing.assert_allclose(cells(figure).sum(0), [hit.score for hit in result], atol=1e-5)
    names = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert names == [f"{hit.rank}. {hit.score:.4f} {hit.title}" for hit in result]
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert rows == ["part one", "part two", "part three"]


def test_small_contributions_have_no_number(result: Result) -> None:
    figure = result.plot()
    assert len(figure.axes[0].texts) == int((cells(figure) >= 0.005).sum())


def test_a_result_without_hits_is_refused(index: Index) -> None:
    with pytest.raises(QueryError, match="the result of 'Title 3' has no hits to draw; "):
        index.search("doc003", Request(where="year > 9999")).plot()


def test_a_hit_that_belongs_to_no_result_cannot_be_drawn(result: Result) -> None:
    with pytest.raises(QueryError, match="belongs to no result"):
        replace(result[0], _answer=None).plot()


def test_a_missing_matplotlib_raises_an_error_with_the_install_command(
    result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    for plot, name in ((result.plot, "Result.plot()"), (result[0].plot, "Hit.plot()")):
        with pytest.raises(MissingExtra) as caught:
            plot()
        assert str(caught.value) == f"{name} needs matplotlib; install it: pip install 'matplotlib>=3.9'"
