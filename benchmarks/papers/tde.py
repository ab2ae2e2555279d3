"""The comparisons of TDE (Findings of NAACL 2024): topics or none, losses and temperature, the number of topics.

Tables 1 and 2 of TDE mix two datasets of summaries; too few of these summaries are available for a significant result.
Here variants are judged by pairs of papers of CL-SciSumm, which match if one cites the other.
"""

from __future__ import annotations

from functools import partial

from benchmarks.pairs.comparing import Comparison as PairComparison
from benchmarks.papers.comparison import Comparison, Scale, above_all, variants
from benchmarks.papers.encoders import Matched, PairData
from benchmarks.papers.judges import Matching

_DATA = PairData("clscisumm")
_NUMBERS = ("20", "50", "100", "150", "200")  # of topics
_F1 = {  # by temperature: both losses, only the contrastive loss
    0.07: (0.946, 0.937),
    0.2: (0.942, 0.935),
    0.7: (0.938, 0.932),
    1.0: (0.930, 0.925),
}

_tde = partial(Matched, "tde", _DATA)
_comparison = partial(
    Comparison,
    paper="TDE",
    judge=Matching(_DATA),
    scale=Scale(steps=50, batch=8, training_tokens=384, max_words=400, n_train=400, n_test=40),
)


def _contrastive(temperature: float) -> Matched:
    """TDE without cross-entropy; its pair head is not trained, so it compares by the cosine of document vectors."""
    learned = {"temperature": temperature, "classification_weight": 0.0}
    return _tde(learned=learned, comparison=PairComparison.COSINE)


def _topic_numbers(year: str, best: str) -> Comparison:
    return _comparison(
        name=f"topic-number-{year}",
        source=f"section on numbers of topics, SciSumm-{year[2:]}: {best} is the best of 20 to 200",
        reference=best,
        variants=variants({n: _tde(sizes={"n_topics": n}) for n in _NUMBERS}),
        found=above_all(best, *(n for n in _NUMBERS if n != best)),
    )


COMPARISONS = (
    _comparison(
        name="topics",
        source="table 1, MRR on SciSumm-17",
        reference="tde",
        variants=variants(
            {"tde": _tde(), "without-topics": Matched("tde-without-topics", _DATA)},
            {"tde": 0.952, "without-topics": 0.940},
        ),
    ),
    _comparison(
        name="losses",
        source="table 2, F1 on Concept-Project",
        reference="sc-ce-0.07",
        variants=variants(
            {
                **{f"sc-ce-{tau:g}": _tde(learned={"temperature": tau}) for tau in _F1},
                **{f"sc-{tau:g}": _contrastive(tau) for tau in _F1},
                "ce": _tde(learned={"contrastive_weight": 0.0}),
            },
            {
                **{f"sc-ce-{tau:g}": both for tau, (both, _) in _F1.items()},
                **{f"sc-{tau:g}": alone for tau, (_, alone) in _F1.items()},
                "ce": 0.923,
            },
        ),
    ),
    _topic_numbers("2017", "100"),
    _topic_numbers("2018", "50"),
)
