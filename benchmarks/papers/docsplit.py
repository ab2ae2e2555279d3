"""The comparisons of DocSplit (EMNLP 2023 Findings): one backbone pretrained by each objective, then frozen.

All are trained on the same articles of Wikipedia for equally many steps. `docsplit-without-words` is not a variant of
the paper: it separates the effect of the partition from that of the masked words, which only DocSplit predicts.
"""

from __future__ import annotations

from functools import partial

from benchmarks.papers.comparison import Comparison, Judge, Scale, above_all, column, variants
from benchmarks.papers.encoders import Pretrained
from benchmarks.papers.judges import Probing, Retrieving
from engine.training.tasks.samplers import Sampling

_pretrained = partial(Pretrained, "wikipedia_seealso")  # articles of Wikipedia, as in the paper
_SYSTEMS = {
    "backbone": _pretrained(),
    "ct": _pretrained(Sampling.CT, learning_rate=1e-5),
    "simcse": _pretrained(Sampling.SIMCSE, learning_rate=3e-5),
    "ict": _pretrained(Sampling.ICT),
    "crop": _pretrained(Sampling.CROP_HALF),
    "contriever": _pretrained(Sampling.CONTRIEVER, has_queue=True),
    "docsplit": _pretrained(Sampling.DOCSPLIT, mlm_weight=0.1),
    "docsplit-without-words": _pretrained(Sampling.DOCSPLIT),
}
_PROBED = {  # columns of tables 1 and 2: BBCNews, 20News; then both from 5 labels a class
    "backbone": (0.9106, 0.6234, 0.5422, 0.1994),
    "ct": (0.9032, 0.6576, 0.5956, 0.2411),
    "simcse": (0.9412, 0.7402, 0.8356, 0.4263),
    "contriever": (0.9466, 0.7586, 0.7771, 0.5427),
    "docsplit": (0.9556, 0.7689, 0.8686, 0.5579),
}

_comparison = partial(
    Comparison,
    paper="DocSplit",
    reference="docsplit",
    scale=Scale(steps=50, batch=16, training_tokens=256, max_words=200, n_train=2000, n_test=100),
)


def _probed(name: str, source: str, judge: Judge, number: int) -> Comparison:
    return _comparison(name=name, source=source, judge=judge, variants=variants(_SYSTEMS, column(_PROBED, number)))


COMPARISONS = (
    _comparison(
        name="retrieval",
        source="figure 3, accuracy of deciding whether papers of AAN cite each other; DocSplit is the best",
        judge=Retrieving("clscisumm"),
        variants=variants(_SYSTEMS),
        found=above_all("docsplit", "backbone", "ct", "simcse", "contriever"),
    ),
    _probed("bbc", "table 1, accuracy on BBCNews", Probing("bbc_news"), 0),
    _probed("news20", "table 1, accuracy on 20News", Probing("news20"), 1),
    _probed("bbc-few", "table 2, accuracy on BBCNews from 5 labels a class", Probing("bbc_news", 5), 2),
    _probed("news20-few", "table 2, accuracy on 20News from 5 labels a class", Probing("news20", 5), 3),
)
