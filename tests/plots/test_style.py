"""Figures as PNG and SVG files."""

from __future__ import annotations

import io

import pytest

pytest.importorskip("matplotlib")

from matplotlib.image import imread

from engine.plots.style import COLOURS, MARKERS, Plot, figure_file


def figure(title: str = "A title") -> Plot:
    made = Plot(figsize=(2, 1), facecolor="white")
    made.add_subplot().set_title(title)
    return made


def test_a_picture_is_white_around_what_is_drawn() -> None:
    image = imread(io.BytesIO(figure_file(figure(), "png")))
    assert (image[[0, -1], :, :3] == 1).all() and (image[:, [0, -1], :3] == 1).all()
    assert (image[..., :3] < 0.5).any()


@pytest.mark.parametrize("form", ["png", "svg"])
def test_the_same_figure_gives_the_same_bytes(form: str) -> None:
    assert figure_file(figure(), form) == figure_file(figure(), form)  # type: ignore[arg-type]
    assert figure()._repr_png_() == figure_file(figure(), "png")  # as a notebook shows it


def test_titles_of_any_script_are_drawn_and_stay_text_in_an_svg() -> None:
    svg = figure_file(figure("Foxes & hens"), "svg").decode()
    assert ">Foxes &amp; hens</text>" in svg and "<dc:date>" not in svg
    assert figure_file(figure("狐狸"), "png").startswith(b"\x89PNG")  # without a warning


def test_every_colour_has_a_marker_of_its_own() -> None:
    assert len(set(COLOURS)) == len(set(MARKERS)) == len(COLOURS) == len(MARKERS)
