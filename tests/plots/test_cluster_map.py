"""Clusters on the map: marked documents, the legend, and lines between pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.collections import LineCollection, PathCollection

import longmatch
from engine.index import Index
from engine.plots import corpus_map as map_module
from engine.plots.corpus_map import corpus_map, look_of, plot_clusters
from engine.plots.style import figure_file
from engine.text.document import Document
from engine.views import Pairs
from indexer.pairs import PairSettings, find_pairs
from tests.plots.test_corpus_map import labels


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory, corpus: list[Document]) -> Iterator[Index]:
    """Thirty documents, the fourth one three times and the eighth one twice."""
    copies = [replace(corpus[at], doc_id=f"copy-{at}-{number}") for at, number in ((3, 0), (3, 1), (7, 0))]
    path = tmp_path_factory.mktemp("clusters") / "x.lm"
    longmatch.build(path, [*corpus[:30], *copies], encode="none", progress=False)
    with Index.open(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def pairs(copied: Index) -> Pairs:
    return find_pairs(copied, PairSettings(least=0.95))


def test_clusters_are_named_with_their_sizes(copied: Index, pairs: Pairs) -> None:
    figure = plot_clusters(copied, corpus_map(copied), pairs)
    assert labels(figure) == ["in no cluster", "1: 3 documents, Title 3", "2: 2 documents, Title 7"]
    assert figure.axes[0].get_title("left") == "33 documents, 5 in 2 clusters"
    assert [text.get_text() for text in figure.axes[0].texts] == ["1", "2"]


def test_members_and_the_pairs_between_them_are_drawn(copied: Index, pairs: Pairs) -> None:
    made = corpus_map(copied)
    (axes,) = plot_clusters(copied, made, pairs).axes
    points = {
        one.get_label(): np.array(one.get_offsets()) for one in axes.collections if isinstance(one, PathCollection)
    }
    names = copied.snapshot.doc_ids()
    own = [names.index(name) for name in ("copy-3-0", "copy-3-1", "doc003")]
    np.testing.assert_array_equal(points["1: 3 documents, Title 3"], made.points[own])
    assert len(points["in no cluster"]) == 28
    (lines,) = [one for one in axes.collections if isinstance(one, LineCollection)]
    assert len(lines.get_segments()) == len(pairs) == 4


def test_clusters_of_a_higher_score_are_drawn(copied: Index) -> None:
    loose = find_pairs(copied, PairSettings(least=0.4))
    assert len(loose) > 4 and len(loose.clusters()) > 2
    figure = plot_clusters(copied, corpus_map(copied), loose, least=0.95)
    assert labels(figure) == ["in no cluster", "1: 3 documents, Title 3", "2: 2 documents, Title 7"]
    assert figure.axes[0].get_title("left") == "33 documents, 5 in 2 clusters"
    (lines,) = [one for one in figure.axes[0].collections if isinstance(one, LineCollection)]
    assert len(lines.get_segments()) == 4


def test_members_are_on_a_map_of_a_sample(copied: Index, pairs: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_module, "MOST_DOCUMENTS", 5)
    members = [name for one in pairs.clusters() for name, _ in one.members]
    made = corpus_map(copied, keep=members)
    names = copied.snapshot.doc_ids()
    assert set(members) <= {names[at] for at in made.positions} and 5 <= len(made.positions) <= 10
    assert "1: 3 documents, Title 3" in labels(plot_clusters(copied, made, pairs))


def test_a_member_that_is_not_on_the_map_is_counted(copied: Index, pairs: Pairs) -> None:
    figure = plot_clusters(copied, corpus_map(copied, where="doc_id != 'doc003'"), pairs)
    assert "1: 2 of 3 documents, Title 3" in labels(figure)


def test_small_clusters_share_a_name_where_there_are_many(
    copied: Index, pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_module, "MOST_NAMED", 1)
    figure = plot_clusters(copied, corpus_map(copied), pairs)
    assert labels(figure)[1:] == ["1: 3 documents, Title 3", "1 more cluster"]


def test_without_clusters_the_map_is_drawn_alone(copied: Index) -> None:
    none = find_pairs(copied, PairSettings(least=1.0, where="doc_id in ('doc001', 'doc002')"))
    figure = plot_clusters(copied, corpus_map(copied), none)
    assert figure.axes[0].get_title("left") == "33 documents, 0 in 0 clusters"
    assert figure_file(figure, "svg").startswith(b"<?xml")


def test_every_named_cluster_has_a_look_of_its_own() -> None:
    assert len({look_of(number) for number in range(1, 43)}) == 42
