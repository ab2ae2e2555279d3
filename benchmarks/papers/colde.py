"""The comparisons of CoLDE (Jha et al. 2022, TKDD; arXiv:2108.09190): parts, sections, length, batch, section order.

Numbers are those of the arXiv version, which has four digits. All encoders are of the variant `paper`, with chunks of
512 tokens, three in each of two sections, as in the articles of the paper. The paper's batches of 50, 75, 100 and 200
are scaled down here by one factor, and all batch sizes are trained on equally many documents.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from benchmarks.papers.comparison import Comparison, Numbers, Order, Scale, Unit, column, rising, variants
from benchmarks.papers.encoders import Matched, PairData, Reordered
from benchmarks.papers.judges import Matching
from benchmarks.papers.needs import Sections
from engine.encoders.variant import Variant as Architecture

_CHUNK = 512  # tokens, special ones counted
_SCALE = Scale(steps=60, batch=8, training_tokens=6 * _CHUNK, max_words=2500, n_train=1000, n_test=150, layers=2)
_AAN, _WIKI = PairData("clscisumm"), PairData("wikipedia_seealso")
_PARTS = {  # AAN, WIKI
    "colde": (0.7420, 0.8006),
    "without-aug": (0.6166, 0.6061),
    "without-lstm": (0.7063, 0.7862),
    "without-cl": (0.5955, 0.5003),
}
_LENGTHS = tuple(n * 2 * _CHUNK for n in (1, 4, 8))  # tokens: whole chunks of two sections
_BATCHES = (8, 12, 16, 32)  # in the proportions of the batches of the paper
_NUMBERS = (2, 3, 4, 5)  # of sections
_SHUFFLED = replace(_AAN, need=Sections(3, words=1100))  # documents of at least three chunks

_colde = partial(Matched, variant=Architecture.PAPER)
_COLDE, _WRITTEN = _colde("colde", _AAN), _colde("colde", _SHUFFLED)

_comparison = partial(Comparison, paper="CoLDE", judge=Matching(_AAN), scale=_SCALE)


def _ablations(name: str, data: PairData, number: int) -> Comparison:
    recipes = {part: part if part == "colde" else f"colde-{part}" for part in _PARTS}
    return _comparison(
        name=f"ablations-{name}",
        source=f"table 2 of the arXiv version, accuracy on {name.upper()}",
        judge=Matching(data),
        reference="colde",
        variants=variants({part: _colde(recipe, data) for part, recipe in recipes.items()}, column(_PARTS, number)),
    )


COMPARISONS = (
    _ablations("aan", _AAN, 0),
    _ablations("wiki", _WIKI, 1),
    _comparison(
        name="sections",
        source="section on numbers of sections, accuracy, which it calls consistent, without numbers",
        reference="2",
        variants=variants({str(n): replace(_COLDE, sizes={"n_sections": str(n)}) for n in _NUMBERS}),
        # The total number of chunks of a document is nearly equal for all numbers of sections: 12, 12, 12, 10.
        scale=replace(_SCALE, training_tokens=12 * _CHUNK, batch=4, max_words=5000),
    ),
    _comparison(
        name="length",
        source="figure 7, accuracy on AAN by tokens of a document in training (1000, 4000, 8000), with which it grows",
        reference=str(_LENGTHS[0]),
        variants=variants({str(n): replace(_COLDE, training_tokens=n) for n in _LENGTHS}),
        # At evaluation, documents are read whole, as in the paper.
        scale=replace(_SCALE, steps=30, batch=4, max_words=6000, n_test=60),
        found=rising(*map(str, _LENGTHS)),
    ),
    _comparison(
        name="batch",
        source="figure 6, accuracy on AAN at equal epochs, higher with larger batches (50, 75, 100, 200)",
        reference=str(_BATCHES[0]),
        variants=variants({str(n): replace(_COLDE, batch=n, budgets=_BATCHES[0] / n) for n in _BATCHES}),
        found=rising(*map(str, _BATCHES)),
    ),
    _comparison(
        name="shuffling",
        source="figure 8, accuracy on AAN with sections shuffled at test, which does not change",
        judge=Matching(_SHUFFLED),
        reference="as-written",
        variants=variants(
            {
                "as-written": _WRITTEN,
                **{
                    f"{unit}-{numbers}": Reordered(_WRITTEN, Order(unit, numbers))
                    for unit in Unit
                    for numbers in Numbers
                },
            }
        ),
        is_long=True,
    ),
)
