"""What came of one variant of a paper's comparison, or why nothing came of it; one JSON file a variant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmarks.papers.comparison import Scale, Size
from benchmarks.record_file import name_of
from benchmarks.systems import Settings
from indexer.training.origin import Origin


@dataclass(frozen=True)
class PaperRecord:
    """One row of a paper's table, made again."""

    kind: ClassVar[str] = "paper"

    paper: str
    comparison: str
    source: str  # where in the paper, and of what its numbers are
    variant: str
    place: int  # of the variant in the paper's table, from 0
    reference: str  # the variant that others are tested against
    published: float | None  # as printed; None where the paper gives no number
    below: list[str]  # variants that the paper puts below this one
    metric: str
    scale: Scale  # what might be spent
    bench: Settings  # datasets with checksums, how cases were drawn, and the backbone that was given
    settings: Settings  # of the variant
    is_quick: bool
    failure: str  # why nothing was measured; "" where it was
    encoder: str  # what it began with, as name@checksum
    begins_with: str  # for people: which weights were taken of it
    size: Size | None  # of the encoder that was trained
    n_train: int  # cases learned from
    n_steps: int  # updates made
    best_step: int  # after which the weights were kept
    seconds: float  # all of it, with judging
    remark: str  # what else must be known to read the values
    values: list[float]  # the metric, a value a case of test; [] where nothing was measured
    groups: list[int]  # of each case
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        quick = "quick" if self.is_quick else ""
        return name_of(self.kind, self.paper, self.comparison, self.variant, quick, seed=self.origin.seed)

    @property
    def extent(self) -> Mapping[str, int]:
        """See `benchmarks.record_file.Sized`."""
        return {"steps to make": self.scale.steps, "cases to judge by": self.scale.n_test}

    @property
    def asked(self) -> tuple[object, ...]:
        """What must be equal for the same to be measured again; the variants of a comparison share all but the last."""
        return self.scale, self.bench, self.is_quick, self.origin.seed, self.metric, self.settings

    @property
    def mean(self) -> float:
        """The metric over all cases of test."""
        return float(np.mean(self.values))
