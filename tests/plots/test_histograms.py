"""Histograms of an index: their bars count its documents."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.axes import Axes

import longmatch
from engine.index import Index
from engine.plots.histograms import left_out_counts, plot_coverage, plot_lengths, read_shares, section_counts
from engine.plots.style import figure_file
from engine.store.snapshot import Snapshot
from engine.text.document import Document
from tests.fakes import make_document


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of 1 to 9 sections without vectors, some with figures left out."""
    documents = [
        make_document(
            f"d{number}",
            [(f"part {part}", "fox " * 5 ** (number % 5)) for part in range(number)],
            metadata={"left_out_figures": number} if number % 2 else {"left_out_link_lists": 1, "left_out_figures": 1},
        )
        for number in range(1, 10)
    ]
    path = tmp_path_factory.mktemp("histograms") / "words.lm"
    longmatch.build(path, documents, encode="none", progress=False)
    return path


def heights(axes: Axes) -> int:
    return int(sum(bar.get_height() for bar in axes.patches))


def test_every_document_is_in_one_bar(index: Index, words: Path) -> None:
    with Index.open(words) as opened:
        for snapshot in (index.snapshot, opened.snapshot):
            figure = plot_lengths(snapshot)
            assert [heights(axes) for axes in figure.axes] == [snapshot.n_documents] * 2


def test_medians_are_written_beside_their_lines(index: Index) -> None:
    tokens, sections = plot_lengths(index.snapshot).axes
    assert tokens.texts[0].get_text() == f"median {np.median(index.snapshot.tokens):,.0f}"
    assert sections.texts[0].get_text() == "median 3"


def test_lengths_that_span_much_stand_on_a_logarithmic_axis(words: Path, index: Index) -> None:
    with Index.open(words) as opened:
        tokens, sections = plot_lengths(opened.snapshot).axes
        assert (tokens.get_xscale(), sections.get_xscale()) == ("log", "linear")
        assert "estimated" in tokens.get_xlabel()
        assert section_counts(opened.snapshot).tolist() == list(range(1, 10))
    assert plot_lengths(index.snapshot).axes[0].get_xlabel() == "tokens of a document"


def test_shares_are_those_of_the_documents_with_vectors(index: Index, words: Path) -> None:
    shares, n_missing = read_shares(index.snapshot)
    assert (shares.tolist(), n_missing) == ([1.0] * 60, 0)
    assert [bar.get_height() for bar in plot_coverage(index.snapshot).axes[0].patches] == [0] * 19 + [60]
    with Index.open(words) as opened:
        shares, n_missing = read_shares(opened.snapshot)
        assert (len(shares), n_missing) == (0, 9)
        read = plot_coverage(opened.snapshot).axes[0]
        assert [text.get_text() for text in read.texts] == ["9"]
        assert read.get_xticklabels()[0].get_text() == "no vectors\nyet"


def test_what_readers_left_out_is_counted_by_document(words: Path, index: Index) -> None:
    with Index.open(words) as opened:
        assert left_out_counts(opened.snapshot) == {"figures": 9, "link_lists": 4}
        axes = plot_coverage(opened.snapshot).axes[1]
        assert [label.get_text() for label in axes.get_yticklabels()] == ["link lists", "figures"]
        assert [bar.get_width() for bar in axes.patches] == [4, 9]
    assert plot_coverage(index.snapshot).axes[1].get_xlabel() == "readers left nothing out"


def test_an_empty_index_is_drawn(tmp_path: Path, corpus: list[Document]) -> None:
    longmatch.build(tmp_path / "x.lm", corpus[:1], encode="none", progress=False)
    with longmatch.open(tmp_path / "x.lm") as opened:
        opened.remove("doc000")
    with Snapshot(tmp_path / "x.lm") as snapshot:
        for plot in (plot_lengths, plot_coverage):
            assert figure_file(plot(snapshot), "png").startswith(b"\x89PNG")
