"""What SMITH varied (Yang et al. 2020, arXiv:2004.12297): pretraining, combination modes, numbers of blocks.

The encoder here is narrower and of fewer layers, and begins with random weights. What is
pretrained gets as many steps for that as for fine-tuning, on top of these.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.papers.comparison import Comparison, Scale, Variant, rising
from benchmarks.papers.pairs_task import EncoderArm, MatchingTask
from engine.encoders.smith.config import Combination
from engine.encoders.variant import Variant as Architecture

PAPER = "SMITH"
_SCALE = Scale(steps=100, batch=16, seconds=240, training_tokens=1536, max_words=1500, n_train=1000, n_test=150)
_SMALL = {"width": "128", "sentence_layers": "2", "sentence_ffn": "256", "document_layers": "2", "document_ffn": "256"}
_TASKS = {"aan": MatchingTask("clscisumm"), "wiki": MatchingTask("wikipedia_seealso")}
_DATA = {"aan": "AAN104K", "wiki": "Wiki65K"}
_BLOCK = 32  # tokens
_BLOCKS = (2, 4, 8, 16, 32, 48, 64)
_PRETRAINED: Mapping[str, tuple[str, float, float, float]] = {  # recipe, budgets, AAN, Wikipedia
    "np": ("smith-np", 1, 0.7725, 0.9054),
    "wp": ("smith-wp", 2, 0.8400, 0.9492),
    "wp-sp": ("smith-wp-sp", 2, 0.8536, 0.9585),
}
_COMBINED = {  # AAN, Wikipedia
    Combination.NORMAL: (0.8580, 0.9594),
    Combination.SUM: (0.7632, 0.9192),
    Combination.MEAN: (0.7061, 0.9221),
    Combination.ATTENTION: (0.8434, 0.9431),
}


def _pretraining(corpus: str) -> Comparison:
    return Comparison(
        name=f"pretraining-{corpus}",
        paper=PAPER,
        source=f"table 5, accuracy on {_DATA[corpus]}, test",
        task=_TASKS[corpus],
        reference="wp-sp",
        variants=tuple(
            Variant(name, EncoderArm(recipe, _SMALL, budgets=budgets), aan if corpus == "aan" else wiki)
            for name, (recipe, budgets, aan, wiki) in _PRETRAINED.items()
        ),
        scale=_SCALE,
    )


def _combination(corpus: str, architecture: Architecture) -> Comparison:
    """`fixed` leaves padding out and gives both halves of a vector the same length; `released` does neither."""
    return Comparison(
        name=f"combination-{corpus}" + ("" if architecture is Architecture.FIXED else f"-{architecture}"),
        paper=PAPER,
        source=f"table 7, accuracy on {_DATA[corpus]}, validation",
        task=_TASKS[corpus],
        reference=Combination.NORMAL.value,
        variants=tuple(
            Variant(
                mode.value,
                EncoderArm("smith-wp-sp", {**_SMALL, "combination": mode.value}, variant=architecture, budgets=2),
                published[corpus != "aan"],
            )
            for mode, published in _COMBINED.items()
        ),
        scale=_SCALE,
    )


def _blocks(corpus: str) -> Comparison:
    """The architecture of the paper reads so many blocks of a document and no more; it is not pretrained here."""
    return Comparison(
        name=f"blocks-{corpus}",
        paper=PAPER,
        source=f"figure 4, accuracy on {_DATA[corpus]}, which grows in general with the number of blocks",
        task=_TASKS[corpus],
        reference="48",
        variants=tuple(
            Variant(
                str(n),
                EncoderArm(
                    "smith-np",
                    {**_SMALL, "max_blocks": str(n)},
                    variant=Architecture.PAPER,
                    training_tokens=n * _BLOCK,
                ),
            )
            for n in _BLOCKS
        ),
        scale=_SCALE,
        found=rising(*map(str, _BLOCKS)),
    )


COMPARISONS = (
    _pretraining("aan"),
    _pretraining("wiki"),
    _combination("aan", Architecture.FIXED),
    _combination("aan", Architecture.RELEASED),
    _combination("wiki", Architecture.FIXED),
    _blocks("aan"),
    _blocks("wiki"),
)
