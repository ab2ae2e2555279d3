"""What DocSplit is held against (EMNLP 2023 Findings): one backbone pretrained by each objective, then frozen.

All learn from the same articles of Wikipedia for as many steps. `docsplit-without-words` is no variant of the
paper: it tells the partition from the hidden words that only DocSplit learns by.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.papers.comparison import Comparison, Scale, Task, Variant, above_all
from benchmarks.papers.pretrained_task import PretrainedArm, ProbeTask, RetrievalTask
from engine.training.tasks.samplers import Sampling

PAPER = "DocSplit"
_SCALE = Scale(steps=50, batch=16, seconds=600, training_tokens=256, max_words=200, n_train=2000, n_test=100)
_ARMS: Mapping[str, PretrainedArm] = {
    "backbone": PretrainedArm(),
    "ct": PretrainedArm(Sampling.CT, learning_rate=1e-5),
    "simcse": PretrainedArm(Sampling.SIMCSE, learning_rate=3e-5),
    "ict": PretrainedArm(Sampling.ICT),
    "crop": PretrainedArm(Sampling.CROP_HALF),
    "contriever": PretrainedArm(Sampling.CONTRIEVER, has_queue=True),
    "docsplit": PretrainedArm(Sampling.DOCSPLIT, mlm_weight=0.1),
    "docsplit-without-words": PretrainedArm(Sampling.DOCSPLIT),
}
_PROBED = {  # rows of tables 1 and 2: BBCNews, 20News; BBCNews and 20News from 5 labels a class
    "backbone": (0.9106, 0.6234, 0.5422, 0.1994),
    "ct": (0.9032, 0.6576, 0.5956, 0.2411),
    "simcse": (0.9412, 0.7402, 0.8356, 0.4263),
    "contriever": (0.9466, 0.7586, 0.7771, 0.5427),
    "docsplit": (0.9556, 0.7689, 0.8686, 0.5579),
}
_FEW = 5  # labels a class


def _comparison(name: str, source: str, task: Task, column: int | None = None) -> Comparison:
    published = {} if column is None else {row: numbers[column] for row, numbers in _PROBED.items()}
    return Comparison(
        name=name,
        paper=PAPER,
        source=source,
        task=task,
        reference="docsplit",
        variants=tuple(Variant(row, arm, published.get(row)) for row, arm in _ARMS.items()),
        scale=_SCALE,
        found=() if published else above_all("docsplit", "backbone", "ct", "simcse", "contriever"),
    )


COMPARISONS = (
    _comparison(
        "retrieval",
        "figure 3, accuracy of telling whether papers of AAN cite each other; DocSplit is the best",
        RetrievalTask("clscisumm"),
    ),
    _comparison("bbc", "table 1, accuracy on BBCNews", ProbeTask("bbc_news"), 0),
    _comparison("news20", "table 1, accuracy on 20News", ProbeTask("news20"), 1),
    _comparison("bbc-few", "table 2, accuracy on BBCNews from 5 labels a class", ProbeTask("bbc_news", _FEW), 2),
    _comparison("news20-few", "table 2, accuracy on 20News from 5 labels a class", ProbeTask("news20", _FEW), 3),
)
