"""The comparisons of SMITH (Yang et al. 2020, arXiv:2004.12297): pretraining, combination modes, numbers of blocks.

The encoder here is narrower, has fewer layers, and starts from random parameters. Pretrained variants get as many
additional steps for pretraining as they get for fine-tuning.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from benchmarks.papers.comparison import Comparison, Scale, column, rising, variants
from benchmarks.papers.encoders import Matched, PairData
from benchmarks.papers.judges import Matching
from benchmarks.papers.needs import Blocks
from engine.encoders.smith.config import Combination
from engine.encoders.variant import Variant as Architecture

_SMALL = {"width": "128", "sentence_layers": "2", "sentence_ffn": "256", "document_layers": "2", "document_ffn": "256"}
_DATA = {"aan": PairData("clscisumm"), "wiki": PairData("wikipedia_seealso")}
_PUBLISHED = {"aan": "AAN104K", "wiki": "Wiki65K"}
_COLUMN = {"aan": 0, "wiki": 1}
_BLOCK = 32  # tokens
_BLOCKS = (2, 4, 8, 16, 32, 48, 64)
_PRETRAINED = {"np": (0.7725, 0.9054), "wp": (0.8400, 0.9492), "wp-sp": (0.8536, 0.9585)}  # AAN, Wikipedia
_COMBINED = {  # AAN, Wikipedia
    Combination.NORMAL.value: (0.8580, 0.9594),
    Combination.SUM.value: (0.7632, 0.9192),
    Combination.MEAN.value: (0.7061, 0.9221),
    Combination.ATTENTION.value: (0.8434, 0.9431),
}

_comparison = partial(
    Comparison,
    paper="SMITH",
    scale=Scale(steps=100, batch=16, training_tokens=1536, max_words=1500, n_train=1000, n_test=150),
)


def _pretraining(corpus: str) -> Comparison:
    data = _DATA[corpus]
    return _comparison(
        name=f"pretraining-{corpus}",
        source=f"table 5, accuracy on {_PUBLISHED[corpus]}, test",
        judge=Matching(data),
        reference="wp-sp",
        variants=variants(
            {name: Matched(f"smith-{name}", data, _SMALL, budgets=1 if name == "np" else 2) for name in _PRETRAINED},
            column(_PRETRAINED, _COLUMN[corpus]),
        ),
    )


def _combination(corpus: str, architecture: Architecture) -> Comparison:
    """Combination modes of an architecture.

    `fixed` leaves padding out and gives both halves of a vector the same length; `released` does neither. In `fixed`
    the sum and the mean of the blocks are the same model, which is listed as the mean.
    """
    one_model = {Combination.SUM.value} if architecture is Architecture.FIXED else set()
    modes = [mode for mode in _COMBINED if mode not in one_model]
    encoder = partial(Matched, "smith-wp-sp", _DATA[corpus], variant=architecture, budgets=2)
    return _comparison(
        name=f"combination-{corpus}" + ("" if architecture is Architecture.FIXED else f"-{architecture}"),
        source=f"table 7, accuracy on {_PUBLISHED[corpus]}, validation",
        judge=Matching(_DATA[corpus]),
        reference=Combination.NORMAL.value,
        variants=variants(
            {mode: encoder(sizes={**_SMALL, "combination": mode}) for mode in modes},
            column(_COMBINED, _COLUMN[corpus]),
        ),
    )


def _blocks(corpus: str) -> Comparison:
    """Numbers of blocks; the architecture of the paper truncates documents to them. It is not pretrained here.

    Documents that fill fewer blocks than the largest number are left out: variants would not differ on them.
    """
    data = replace(_DATA[corpus], need=Blocks(max(_BLOCKS), _BLOCK))
    encoder = partial(Matched, "smith-np", data, variant=Architecture.PAPER)
    return _comparison(
        name=f"blocks-{corpus}",
        source=f"figure 4, accuracy on {_PUBLISHED[corpus]}, which grows in general with the number of blocks",
        judge=Matching(data),
        reference="48",
        variants=variants(
            {str(n): encoder(sizes={**_SMALL, "max_blocks": str(n)}, training_tokens=n * _BLOCK) for n in _BLOCKS}
        ),
        found=rising(*map(str, _BLOCKS)),
        is_long=True,
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
