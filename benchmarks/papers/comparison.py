"""A comparison of a paper as a value: what was varied, how it is judged, what the paper found, and whether we agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from benchmarks.systems import Settings
from indexer.training.origin import Origin


@dataclass(frozen=True)
class Scale:
    """How much is spent on one variant. What a case is the task says."""

    steps: int  # updates of the weights, at most
    batch: int  # pairs, or documents, of an update
    seconds: float  # of training, at most
    training_tokens: int  # of a document in an update
    max_words: int  # first ones of a document, no others are read when it is judged
    n_train: int  # cases to learn from, at most
    n_test: int  # cases to judge by, at most, and as many to choose by
    layers: int = 0  # of the backbone, from the bottom; 0 for all


@dataclass(frozen=True)
class Conditions:
    """What all variants of a comparison get alike."""

    scale: Scale
    encoder: str  # backbone: a folder, a hub name, or the bundled one
    device: str | None
    data: Path  # folder of the datasets
    work: Path  # folder of what can be used again
    is_quick: bool  # so little that figures mean nothing
    origin: Origin  # its seed is that of all that is drawn
    log: Callable[[str], None] = lambda line: None


@dataclass(frozen=True)
class Size:
    """Of an encoder."""

    layers: int
    width: int  # of a state
    weights: int  # how many


@dataclass(frozen=True)
class Measured:
    """What came of one variant."""

    values: Sequence[float]  # the metric, a value a case; their mean is the result
    groups: Sequence[int]  # of each case: cases of one group say less than as many apart
    encoder: str  # what it began with, as name@checksum
    begins_with: str  # for people: which weights were taken of it
    size: Size | None  # None where nothing was trained
    n_train: int  # cases learned from
    n_steps: int  # updates made, those before fine-tuning among them
    best_step: int  # after which the weights were kept
    seconds: float  # all of it, with judging
    remark: str = ""  # what else must be known to read the values


class Arm(Protocol):
    """What makes a variant another one."""

    @property
    def settings(self) -> Settings:
        """What is not as by default, flat."""


class Bench(Protocol):
    """A task whose data were read."""

    @property
    def settings(self) -> Settings:
        """All that values depend on beside scale, seed and variant: datasets with checksums, how cases were drawn."""

    def measure(self, arm: Any) -> Measured:  # noqa: ANN401
        """Make a variant and judge it; the same cases in the same order for all variants."""


class Task(Protocol):
    """What variants are judged by."""

    @property
    def metric(self) -> str:
        """Of which `Measured.values` are; higher is better."""

    def open(self, conditions: Conditions) -> Bench:
        """Read the data.

        Raises:
            EngineError: they are not there, or too few.
        """


@dataclass(frozen=True)
class Variant:
    """One row of a paper's table."""

    name: str
    arm: Arm
    published: float | None = None  # as printed; None where the paper gives no number


@dataclass(frozen=True)
class Comparison:
    """One table or figure of a paper.

    Attributes:
        name: of the comparison, unique in its paper.
        paper: for people.
        source: where in the paper, what was measured and on which data.
        task: what stands for that here.
        reference: the variant that the others are tested against.
        variants: in the order of the table.
        scale: by default; some minutes a variant on two cores.
        found: pairs of variants, the better one first, where the paper says so without numbers.
    """

    name: str
    paper: str
    source: str
    task: Task
    reference: str
    variants: tuple[Variant, ...]
    scale: Scale
    found: tuple[tuple[str, str], ...] = field(default=())

    @property
    def published_order(self) -> list[tuple[str, str]]:
        """All pairs of variants that the paper puts in order, the better one first.

        By its numbers, those that are equal left out, and by what it says.
        """
        numbers = {variant.name: variant.published for variant in self.variants if variant.published is not None}
        by_number = [(one, other) for one, a in numbers.items() for other, b in numbers.items() if a > b]
        return list(dict.fromkeys([*by_number, *self.found]))


def rising(*names: str) -> tuple[tuple[str, str], ...]:
    """The pairs of a row in which each is better than all before it."""
    return tuple((later, earlier) for at, later in enumerate(names) for earlier in names[:at])


def above_all(best: str, *others: str) -> tuple[tuple[str, str], ...]:
    """The pairs of one that is better than each of the others, about which nothing is said."""
    return tuple((best, other) for other in others)


def flat(given: Mapping[str, object]) -> Settings:
    """Settings without those that are not chosen."""
    kept: Settings = {}
    for name, value in given.items():
        if isinstance(value, Mapping):
            kept |= {f"{name}_{key}": _plain(one) for key, one in value.items()}
        elif value not in (None, ""):
            kept[name] = _plain(value)
    return kept


def _plain(value: object) -> str | int | float | bool:
    return value if isinstance(value, bool | int | float) else str(value)


LEVEL = 0.05  # below which a difference of ours counts as decided


@dataclass(frozen=True)
class Agreement:
    """How many of the paper's pairs we have in its order."""

    n_pairs: int  # that the paper puts in order, both of them measured here
    n_shared: int  # in the same order here
    n_reversed: int  # in the other; the rest are equal here
    n_decided: int  # of all pairs, those that differ here by more than chance
    n_decided_shared: int  # of these, the ones in the same order

    @property
    def tau(self) -> float | None:
        """Kendall's tau (1938) over the pairs that the paper orders, in [-1, 1]; None where there are none.

            tau = (n_shared - n_reversed) / n_pairs

        Where the paper orders all pairs it is tau-a of the two rankings; papers that say only which variant
        is the best order some.
        """
        return (self.n_shared - self.n_reversed) / self.n_pairs if self.n_pairs else None


def agreement(
    order: Sequence[tuple[str, str]], means: Mapping[str, float], p_values: Mapping[tuple[str, str], float]
) -> Agreement:
    """Hold our means against the paper's order.

    Args:
        order: pairs of variants, the better one first; those with a variant that has no mean are left out.
        means: of each variant that was measured, higher is better.
        p_values: of each of these pairs, adjusted for there being several.
    """
    known = [(better, worse) for better, worse in order if better in means and worse in means]
    shared = [pair for pair in known if means[pair[0]] > means[pair[1]]]
    turned = [pair for pair in known if means[pair[0]] < means[pair[1]]]
    decided = [pair for pair in known if p_values[pair] < LEVEL]
    return Agreement(
        n_pairs=len(known),
        n_shared=len(shared),
        n_reversed=len(turned),
        n_decided=len(decided),
        n_decided_shared=sum(pair in shared for pair in decided),
    )
