"""What CoLDE varied (Jha et al. 2022, TKDD; arXiv:2108.09190): parts, sections, length, batch, order of sections.

Numbers are those of the arXiv version, which has four digits. The paper's batches of 50, 75, 100
and 200 are smaller here by the same factor, and all see as many documents.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.papers.comparison import Comparison, Scale, Variant, rising
from benchmarks.papers.pairs_task import EncoderArm, MatchingTask
from benchmarks.papers.shuffled_task import Numbers, ReadingArm, ShuffledTask, Unit

PAPER = "CoLDE"
_SCALE = Scale(steps=60, batch=8, seconds=240, training_tokens=1536, max_words=1500, n_train=1000, n_test=150, layers=2)
_TASKS = {"aan": MatchingTask("clscisumm"), "wiki": MatchingTask("wikipedia_seealso")}
_DATA = {"aan": "AAN", "wiki": "WIKI"}
_PARTS = {  # AAN, WIKI
    "colde": (0.7420, 0.8006),
    "without-aug": (0.6166, 0.6061),
    "without-lstm": (0.7063, 0.7862),
    "without-cl": (0.5955, 0.5003),
}
_LENGTHS = (1000, 4000, 8000)  # tokens
_BATCHES = {50: 8, 75: 12, 100: 16, 200: 32}  # of the paper: ours


def _ablations(corpus: str) -> Comparison:
    return Comparison(
        name=f"ablations-{corpus}",
        paper=PAPER,
        source=f"table 2 of the arXiv version, accuracy on {_DATA[corpus]}",
        task=_TASKS[corpus],
        reference="colde",
        variants=tuple(
            Variant(name, EncoderArm(name if name == "colde" else f"colde-{name}"), published[corpus != "aan"])
            for name, published in _PARTS.items()
        ),
        scale=_SCALE,
    )


COMPARISONS = (
    _ablations("aan"),
    _ablations("wiki"),
    Comparison(
        name="sections",
        paper=PAPER,
        source="section on numbers of sections, accuracy, which it calls consistent, without numbers",
        task=_TASKS["aan"],
        reference="2",
        variants=tuple(Variant(str(n), EncoderArm("colde", {"n_sections": str(n)})) for n in (2, 3, 4, 5)),
        scale=_SCALE,
    ),
    Comparison(
        name="length",
        paper=PAPER,
        source="figure 7, accuracy on AAN by tokens of a document in training, with which it grows",
        task=_TASKS["aan"],
        reference="1000",
        variants=tuple(Variant(str(n), EncoderArm("colde", training_tokens=n)) for n in _LENGTHS),
        # Documents are read whole when they are judged, as in the paper.
        scale=replace(_SCALE, steps=30, batch=4, seconds=300, max_words=6000, n_test=60),
        found=rising(*map(str, _LENGTHS)),
    ),
    Comparison(
        name="batch",
        paper=PAPER,
        source="figure 6, accuracy on AAN at equal epochs, higher with larger batches",
        task=_TASKS["aan"],
        reference="50",
        variants=tuple(
            Variant(str(published), EncoderArm("colde", batch=ours, budgets=_BATCHES[50] / ours))
            for published, ours in _BATCHES.items()
        ),
        scale=_SCALE,
        found=rising(*map(str, _BATCHES)),
    ),
    Comparison(
        name="shuffling",
        paper=PAPER,
        source="figure 8, accuracy on AAN with sections shuffled at test, which does not change",
        task=ShuffledTask(_TASKS["aan"], EncoderArm("colde")),
        reference="as-written",
        variants=(
            Variant("as-written", ReadingArm()),
            *(
                Variant(f"{unit}-{numbers}", ReadingArm(unit, numbers))
                for unit in (Unit.SECTIONS, Unit.CHUNKS)
                for numbers in (Numbers.FOLLOW, Numbers.ANEW)
            ),
        ),
        scale=_SCALE,
    ),
)
