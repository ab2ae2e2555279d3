"""The map of a corpus: positions of documents, query and hits, and the legend."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure
from matplotlib.image import imread

from engine.errors import QueryError
from engine.index import Index
from engine.plots import COLOURS, MARKERS, corpus_map, figure_file, plot_map, project_vectors
from engine.search.request import Request
from engine.text.document import Document
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_document


def labels(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_documents_stand_where_their_vectors_are_projected_and_axes_state_their_share(index: Index) -> None:
    made = corpus_map(index)
    np.testing.assert_array_equal(made.points, project_vectors(index.snapshot.document_vectors).points)
    assert (made.n_documents, made.query) == (60, None)
    axes = plot_map(index, made).axes[0]
    assert axes.get_xlabel() == f"component 1: {100 * made.shares[0]:.1f} % of the variance"
    made = corpus_map(index, "doc003", "doc_id = 'doc003'")
    assert figure_file(plot_map(index, made, result=index.search("doc003", Request(k=1))), "svg").startswith(b"<?xml")


def test_an_indexed_query_stands_on_its_own_point_and_words_have_none(index: Index, words_folder: Path) -> None:
    made = corpus_map(index, "doc007")
    assert made.query is not None
    np.testing.assert_allclose(made.query, made.points[7:8], atol=1e-6)
    without = pytest.raises(QueryError, match=r"60 of 60 documents have no vectors yet.* encode them: longmatch index")
    with Index.open(words_folder) as opened, without:
        corpus_map(opened, "doc007")


def test_a_document_stands_near_those_of_its_topic(index: Index, corpus: list[Document]) -> None:
    made = corpus_map(index, make_document("q", corpus[12].text + corpus[22].text))
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
    build(tmp_path / "x.lm", documents, encoder=FakeEncoder())
    with Index.open(tmp_path / "x.lm") as opened:
        assert labels(plot_map(opened, corpus_map(opened), by="a")) == ["a: 1", "a: 2", "a: no value"]


def test_a_title_is_no_formula(index: Index) -> None:
    result = index.search("doc003", Request(k=1))
    title = r"From $1 to $2, \frac and {x"
    hit = replace(result[0], document=make_document("doc013", "text", title=title))
    figure = plot_map(index, corpus_map(index), result=replace(result, hits=(hit,)))
    assert title in figure_file(figure, "svg").decode()


def figure(title: str = "A title") -> Figure:
    made = Figure(figsize=(2, 1), facecolor="white")
    made.add_subplot().set_title(title)
    return made


def test_a_picture_is_white_around_what_is_drawn_and_every_colour_has_a_marker() -> None:
    image = imread(io.BytesIO(figure_file(figure(), "png")))
    assert (image[[0, -1], :, :3] == 1).all() and (image[:, [0, -1], :3] == 1).all()
    assert (image[..., :3] < 0.5).any()
    assert len(set(COLOURS)) == len(set(MARKERS)) == len(COLOURS) == len(MARKERS)


@pytest.mark.parametrize("form", ["png", "svg"])
def test_the_same_figure_gives_the_same_bytes(form: str) -> None:
    assert figure_file(figure(), form) == figure_file(figure(), form)  # type: ignore[arg-type]


def test_titles_of_any_script_are_drawn_and_stay_text_in_an_svg() -> None:
    svg = figure_file(figure("Foxes & hens"), "svg").decode()
    assert ">Foxes &amp; hens</text>" in svg and "<dc:date>" not in svg
    assert figure_file(figure("狐狸"), "png").startswith(b"\x89PNG")  # without a warning
