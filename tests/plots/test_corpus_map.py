"""The map of a corpus: positions of documents, query, hits and clusters, lines between pairs, and the legend."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.collections import LineCollection, PathCollection

import longmatch
from engine.index import Index
from engine.plots import Plot, corpus_map, figure_file, look_of, plot_clusters, plot_map, project_vectors
from engine.search.request import Request
from engine.text.document import Document
from engine.views import Pairs
from indexer.pairs import PairSettings, find_pairs
from tests.fakes import make_document


def labels(figure: Plot) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_documents_stand_where_their_vectors_are_projected_and_axes_state_their_share(index: Index) -> None:
    made = corpus_map(index)
    np.testing.assert_array_equal(made.points, project_vectors(index.snapshot.document_vectors).points)
    assert (made.source, made.n_documents, made.query) == ("document vectors", 60, None)
    axes = plot_map(index, made).axes[0]
    assert axes.get_xlabel() == f"component 1: {100 * made.shares[0]:.1f} % of the variance of document vectors"
    made = corpus_map(index, "doc003", "doc_id = 'doc003'")
    assert figure_file(plot_map(index, made, result=index.search("doc003", Request(k=1))), "svg").startswith(b"<?xml")


def test_an_indexed_query_stands_on_its_own_point(index: Index, words_folder: Path) -> None:
    made = corpus_map(index, "doc007")
    assert made.query is not None
    np.testing.assert_allclose(made.query, made.points[7:8], atol=1e-6)
    with Index.open(words_folder) as opened:
        made = corpus_map(opened, "doc007")
        assert made.source == "weighted words" and made.query is not None
        np.testing.assert_allclose(made.query, made.points[7:8], atol=1e-6)


def test_a_document_stands_near_those_of_its_topic(words_folder: Path, corpus: list[Document]) -> None:
    with Index.open(words_folder) as opened:
        made = corpus_map(opened, make_document("q", corpus[12].text + corpus[22].text))
    assert made.query is not None
    distances = np.linalg.norm(made.points - made.query, axis=1)
    own = np.array([document.metadata["topic"] == 2 for document in corpus])
    assert distances[own].mean() < distances[~own].mean()


def test_a_filter_and_a_sample_choose_documents(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    assert corpus_map(index, where="topic = 3").positions.tolist() == [3, 13, 23, 33, 43, 53]
    monkeypatch.setattr("engine.plots.MOST_DOCUMENTS", 10)
    made = corpus_map(index)
    assert len(made.positions) == len(made.points) == 10
    assert made.positions.tolist() == sorted(made.positions.tolist()) == corpus_map(index).positions.tolist()
    assert plot_map(index, made).axes[0].get_title("left") == "10 of 60 documents"


def test_hits_have_their_ranks_and_titles_and_those_not_on_the_map_are_left_out(index: Index) -> None:
    result = index.search("doc003", Request(k=3))
    figure = plot_map(index, corpus_map(index, "doc003"), result=result)
    assert labels(figure) == [*(f"{hit.rank}: {hit.score:.4f} {hit.title}" for hit in result), "query: Title 3"]
    assert [text.get_text() for text in figure.axes[0].texts] == ["1", "2", "3"]
    made = corpus_map(index, where="topic = 4")
    figure = plot_map(index, made, result=index.search("doc003", Request(k=3, where="topic = 3")))
    assert labels(figure) == [] and not list(figure.axes[0].texts)


def test_the_commonest_values_of_a_field_get_colours_and_no_value_is_grey(index: Index, tmp_path: Path) -> None:
    found = labels(plot_map(index, corpus_map(index), by="topic"))
    assert found == [*(f"topic: {value}" for value in range(6)), "topic: other values"]
    assert labels(plot_map(index, corpus_map(index), by="tags"))[0] == "tags: t0"
    documents = [make_document(f"d{n}", f"fox {n} and dog", metadata={"a": n} if n else {}) for n in range(3)]
    longmatch.build(tmp_path / "x.lm", documents, encode="none", progress=False)
    with Index.open(tmp_path / "x.lm") as opened:
        assert labels(plot_map(opened, corpus_map(opened), by="a")) == ["a: 1", "a: 2", "a: no value"]


def test_a_title_is_no_formula(index: Index) -> None:
    result = index.search("doc003", Request(k=1))
    title = r"From $1 to $2, \frac and {x"
    hit = replace(result[0], document=make_document("doc013", "text", title=title))
    figure = plot_map(index, corpus_map(index), result=replace(result, hits=(hit,)))
    assert title in figure_file(figure, "svg").decode()


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


def test_clusters_have_names_sizes_and_looks_of_their_own(copied: Index, pairs: Pairs) -> None:
    figure = plot_clusters(copied, corpus_map(copied), pairs)
    assert labels(figure) == ["in no cluster", "1: 3 documents, Title 3", "2: 2 documents, Title 7"]
    assert figure.axes[0].get_title("left") == "33 documents, 5 in 2 clusters"
    assert [text.get_text() for text in figure.axes[0].texts] == ["1", "2"]
    figure = plot_clusters(copied, corpus_map(copied, where="doc_id != 'doc003'"), pairs)
    assert "1: 2 of 3 documents, Title 3" in labels(figure)
    assert len({look_of(number) for number in range(1, 43)}) == 42


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
    monkeypatch.setattr("engine.plots.MOST_DOCUMENTS", 5)
    members = [name for one in pairs.clusters() for name, _ in one.members]
    made = corpus_map(copied, keep=members)
    names = copied.snapshot.doc_ids()
    assert set(members) <= {names[at] for at in made.positions} and 5 <= len(made.positions) <= 10
    assert "1: 3 documents, Title 3" in labels(plot_clusters(copied, made, pairs))


def test_small_clusters_of_many_share_a_name(copied: Index, pairs: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.plots.MOST_NAMED", 1)
    figure = plot_clusters(copied, corpus_map(copied), pairs)
    assert labels(figure)[1:] == ["1: 3 documents, Title 3", "1 more cluster"]


def test_without_clusters_the_map_is_drawn_alone(copied: Index) -> None:
    none = find_pairs(copied, PairSettings(least=1.0, where="doc_id in ('doc001', 'doc002')"))
    figure = plot_clusters(copied, corpus_map(copied), none)
    assert figure.axes[0].get_title("left") == "33 documents, 0 in 0 clusters"
    assert figure_file(figure, "svg").startswith(b"<?xml")
