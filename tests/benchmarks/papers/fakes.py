"""A judge and systems of comparisons that train nothing: their values are given."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.papers.comparison import Comparison, Conditions, Judged, Made, Size, Variant
from benchmarks.runs import Case
from benchmarks.systems import Settings
from engine.errors import TrainingError
from tests.benchmarks.papers.cases import SCALE

VALUES = {"np": (0.0, 1.0, 0.0), "wp": (1.0, 1.0, 0.0)}


@dataclass(frozen=True)
class FakeSystem:
    name: str
    values: tuple[float, ...] = ()
    failure: str = ""
    data: str = "pets@0"

    @property
    def settings(self) -> Settings:
        return {"recipe": self.name, "mean": sum(self.values or VALUES.get(self.name, ()))}

    def trained_on(self, conditions: Conditions) -> Settings:
        return {"trained_dataset": self.data}

    def make(self, conditions: Conditions) -> Made:
        if self.failure:
            raise TrainingError(self.failure)
        return Made(self.name, "bert@0", "bert", Size(2, 32, 1000), 24, 3, 2, 1.25)


@dataclass
class FakeJudge:
    """A judge that is its own bench, and lists the encoders that it has judged."""

    dataset: str = "pets@0"
    metric: str = "accuracy"
    judged: list[str] = field(default_factory=list)

    @property
    def settings(self) -> Settings:
        return {"dataset": self.dataset}

    def open(self, conditions: Conditions) -> FakeJudge:
        return self

    def judge(self, made: Made) -> Judged:
        self.judged.append(made.folder)
        return Judged(
            [
                Case(id=str(at), values={self.metric: value}, group=group)
                for at, (value, group) in enumerate(zip(VALUES[made.folder], "011", strict=True))
            ]
        )


def comparison(judge: FakeJudge, *, failure: str = "") -> Comparison:
    variants = (Variant("np", FakeSystem("np", failure=failure), 0.7), Variant("wp", FakeSystem("wp"), 0.8))
    return Comparison("pretraining", "SMITH", "table 5", judge, "wp", variants, SCALE)
