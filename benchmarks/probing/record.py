"""What a classification probe measured, as a record; read by tables, filled by `benchmarks.probes`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from benchmarks.record_file import name_of
from benchmarks.systems import Settings
from indexer.training.origin import Origin


@dataclass(frozen=True)
class ProbeRecord:
    """What a linear classifier learned from the frozen vectors of one system."""

    kind: ClassVar[str] = "probe"

    task: str
    dataset: str  # name@checksum
    system: str
    encoder: str  # name@fingerprint; "" where the system has none
    settings: Settings
    is_quick: bool  # on a small part of the dataset
    n_classes: int
    n_train: int
    n_valid: int
    n_test: int
    metrics: dict[str, float]  # accuracy and macro_f1 on test, in [0, 1]
    wrong: list[int]  # places in the test split that were classified wrongly
    groups: list[int]  # of each place the number of its first document, where pairs share it; [] where none is shared
    few_shot: dict[str, dict[str, list[float]]]  # labels a class, to metric, to its values by draw
    n_tokens: int  # encoded in this run; 0 where the vectors were there
    seconds: float  # of making the vectors
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        cut = f"first{self.settings['max_words']}" if self.settings["max_words"] else ""
        given = (self.encoder.partition("@")[0], cut, "quick" if self.is_quick else "")
        return name_of("probe", self.task, self.system, *given, seed=self.origin.seed)

    @property
    def extent(self) -> Mapping[str, int]:
        """See `benchmarks.record_file.Sized`."""
        return {"test cases": self.n_test, "numbers of labels": len(self.few_shot)}

    @property
    def is_right(self) -> list[int]:
        """1 or 0 for each document of the test split, in its order."""
        wrong = set(self.wrong)
        return [int(place not in wrong) for place in range(self.n_test)]
