"""What TDE varied (Findings of NAACL 2024): topics or none, losses and temperature, the number of topics.

Its tables 1 and 2 mix two datasets of summaries, too few of which are at hand to decide anything. Here variants are
judged by pairs of the papers of CL-SciSumm: does one cite the other?
"""

from __future__ import annotations

from benchmarks.pairs.comparing import Comparison as PairComparison
from benchmarks.papers.comparison import Comparison, Scale, Variant, above_all
from benchmarks.papers.pairs_task import EncoderArm, MatchingTask

PAPER = "TDE"
_SCALE = Scale(steps=50, batch=8, seconds=240, training_tokens=384, max_words=400, n_train=400, n_test=40)
_TASK = MatchingTask("clscisumm")
_NUMBERS = (20, 50, 100, 150, 200)  # of topics
_F1 = {  # by temperature: both losses, the contrastive one alone
    0.07: (0.946, 0.937),
    0.2: (0.942, 0.935),
    0.7: (0.938, 0.932),
    1.0: (0.930, 0.925),
}


def _losses() -> tuple[Variant, ...]:
    """Without cross-entropy the pair head learns nothing: such a TDE compares by the cosine of document vectors."""
    both = (
        Variant(f"sc-ce-{tau:g}", EncoderArm("tde", learned={"temperature": tau}), f1[0]) for tau, f1 in _F1.items()
    )
    contrastive = (
        Variant(
            f"sc-{tau:g}",
            EncoderArm(
                "tde",
                learned={"temperature": tau, "classification_weight": 0.0},
                comparison=PairComparison.COSINE,
            ),
            f1[1],
        )
        for tau, f1 in _F1.items()
    )
    return (*both, *contrastive, Variant("ce", EncoderArm("tde", learned={"contrastive_weight": 0.0}), 0.923))


def _topic_numbers(year: str, best: int) -> Comparison:
    return Comparison(
        name=f"topic-number-{year}",
        paper=PAPER,
        source=f"section on numbers of topics, SciSumm-{year[2:]}: {best} is the best of 20 to 200",
        task=_TASK,
        reference=str(best),
        variants=tuple(Variant(str(n), EncoderArm("tde", {"n_topics": str(n)})) for n in _NUMBERS),
        scale=_SCALE,
        found=above_all(str(best), *(str(n) for n in _NUMBERS if n != best)),
    )


COMPARISONS = (
    Comparison(
        name="topics",
        paper=PAPER,
        source="table 1, MRR on SciSumm-17",
        task=_TASK,
        reference="tde",
        variants=(
            Variant("tde", EncoderArm("tde"), 0.952),
            Variant("without-topics", EncoderArm("tde-without-topics"), 0.940),
        ),
        scale=_SCALE,
    ),
    Comparison(
        name="losses",
        paper=PAPER,
        source="table 2, F1 on Concept-Project",
        task=_TASK,
        reference="sc-ce-0.07",
        variants=_losses(),
        scale=_SCALE,
    ),
    _topic_numbers("2017", 100),
    _topic_numbers("2018", 50),
)
