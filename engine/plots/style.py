"""Colours, markers and files of all pictures. It needs matplotlib; no window, no state of pyplot."""

from __future__ import annotations

import io
import warnings
from typing import Literal

from matplotlib import rc_context
from matplotlib.figure import Figure

# Okabe & Ito (2008): distinct for colour-blind readers; without their yellow, too faint on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # one for each colour, so that no reader depends on colours alone
FAINT, DARK = "#8a8a8a", "#333333"
DPI = 130
Form = Literal["png", "svg"]


class Plot(Figure):
    """A figure on white that a notebook shows by itself; `savefig` writes PNG, SVG or PDF."""

    def _repr_png_(self) -> bytes:
        return figure_file(self, "png")


def figure_file(figure: Figure, form: Form) -> bytes:
    """Render a figure, cropped to its contents; the same figure gives the same bytes."""
    stream = io.BytesIO()
    metadata = {"Date": None} if form == "svg" else {}
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "longmatch"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a title may be in any script
        figure.savefig(stream, format=form, dpi=DPI, bbox_inches="tight", pad_inches=0.12, metadata=metadata)
    return stream.getvalue()
