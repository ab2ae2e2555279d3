"""A comparison of a paper as a value: encoders that differ in one property, their judge, and the published order.

`encoders.py` makes the encoder of a variant, `judges.py` evaluates it, `papers.py` runs a comparison and writes run
files, and `tables.py` draws their tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from benchmarks.runs import Case
from benchmarks.systems import Settings
from indexer.origin import Origin


@dataclass(frozen=True)
class Scale:
    """The training and evaluation budget of one variant; the judge defines a case."""

    steps: int  # updates of the parameters, at most
    batch: int  # pairs, or documents, of an update
    training_tokens: int  # of a document in an update
    max_words: int  # first words of a document that are read at evaluation; for pairs, also in training
    n_train: int  # most training cases
    n_test: int  # most test cases, and most validation cases
    layers: int = 0  # of the backbone, from the bottom; 0 for all


@dataclass(frozen=True)
class Conditions:
    """The conditions that are equal for all variants of a comparison."""

    scale: Scale
    encoder: str  # backbone: a folder, a hub name, or the bundled one
    backbone: str  # the backbone as name@checksum
    device: str | None
    data: Path  # folder of the datasets
    work: Path  # folder of reusable files
    is_quick: bool  # a scale so small that figures mean nothing
    origin: Origin  # has the seed of training
    draw_seed: int = 0  # seed of cases and documents, the same for all seeds of training
    log: Callable[[str], None] = lambda line: None


class Unit(StrEnum):
    """The unit that is moved when documents are read in another order."""

    SECTIONS = "sections"  # headed sections, each with its chunks in their order
    CHUNKS = "chunks"


class Numbers(StrEnum):
    """When chunks are numbered: before or after they are moved."""

    FOLLOW = "follow"  # before; a chunk keeps its number
    ANEW = "anew"  # after; numbers are in the new order


@dataclass(frozen=True)
class Order:
    """The orders in which a document is read at evaluation."""

    unit: Unit
    numbers: Numbers
    n_orders: int = 5  # of each document; a value is the mean over them


@dataclass(frozen=True)
class Size:
    """The size of an encoder."""

    layers: int
    width: int  # of a state
    weights: int  # number of parameters


@dataclass(frozen=True)
class Made:
    """An encoder to be judged, and how it was trained."""

    folder: str  # or the given name
    encoder: str  # the initial encoder, as name@checksum
    begins_with: str  # for people: which of its parameters were used
    size: Size | None  # None if nothing was trained
    n_train: int  # training cases
    n_steps: int  # updates, including those before fine-tuning
    best_step: int  # after which the parameters were kept
    seconds: float  # duration of making it
    comparison: str = "cosine"  # of `benchmarks.pairs.comparing`, by which it scores pairs
    chunk_tokens: int = 0  # most tokens of a chunk, special tokens not counted; 0 if unknown
    remark: str = ""  # further facts needed to read the values
    order: Order | None = None  # None for documents as written


class System(Protocol):
    """The encoder of a variant, and the settings in which it differs."""

    @property
    def settings(self) -> Settings:
        """The settings that differ from the defaults, flat."""

    def trained_on(self, conditions: Conditions) -> Settings:
        """The training data, with checksums.

        Raises:
            EngineError: the data are missing.
        """

    def make(self, conditions: Conditions) -> Made:
        """Train the encoder, or load the encoder that an earlier call trained under equal conditions.

        Raises:
            EngineError: data or backbone are missing, or the encoder cannot be trained.
        """


@dataclass(frozen=True)
class Judged:
    """The cases of one encoder, with their values or rankings."""

    cases: list[Case]
    k: int = 0  # depth of the rankings; 0 if cases have values


class Bench(Protocol):
    """A judge with its data loaded."""

    @property
    def settings(self) -> Settings:
        """What values depend on besides scale and variant: `dataset` as name@checksum, and how cases were drawn."""

    def judge(self, made: Made) -> Judged:
        """Judge an encoder; the same cases in the same order for all variants and seeds."""


class Judge(Protocol):
    """The interface of an evaluation of variants."""

    @property
    def metric(self) -> str:
        """The metric of the cases; higher is better."""

    def open(self, conditions: Conditions) -> Bench:
        """Read the data.

        Raises:
            EngineError: the data are missing, or too few.
        """


@dataclass(frozen=True)
class Variant:
    """One row of a paper's table."""

    name: str
    system: System
    published: float | None = None  # as printed; None if the paper gives no number


@dataclass(frozen=True)
class Comparison:
    """One table or figure of a paper.

    Attributes:
        name: of the comparison, unique in its paper.
        paper: the name of the paper, for people.
        source: where in the paper, what was measured and on which data.
        judge: the evaluation that replaces the paper's.
        reference: the variant that the others are tested against.
        variants: in the order of the table.
        scale: the default scale.
        found: pairs of variants, the better one first, that the paper orders without numbers.
        seeds: trainings of each variant; the value of a case is the mean over them.
        is_long: whether variants do not differ on short documents; then quick runs also read `scale.max_words` words.
    """

    name: str
    paper: str
    source: str
    judge: Judge
    reference: str
    variants: tuple[Variant, ...]
    scale: Scale
    found: tuple[tuple[str, str], ...] = field(default=())
    seeds: int = 1
    is_long: bool = False

    @property
    def published_order(self) -> list[tuple[str, str]]:
        """All pairs of variants that the paper orders, the better one first.

        The order is from its numbers, without equal ones, and from `found`.
        """
        numbers = {variant.name: variant.published for variant in self.variants if variant.published is not None}
        by_number = [(one, other) for one, a in numbers.items() for other, b in numbers.items() if a > b]
        return list(dict.fromkeys([*by_number, *self.found]))


def variants(systems: Mapping[str, System], published: Mapping[str, float] | None = None) -> tuple[Variant, ...]:
    """A variant for each system, with its published number if there is one."""
    return tuple(Variant(name, system, (published or {}).get(name)) for name, system in systems.items())


def column(rows: Mapping[str, Sequence[float]], number: int) -> dict[str, float]:
    """The published numbers of one column of a paper's table."""
    return {name: row[number] for name, row in rows.items()}


def rising(*names: str) -> tuple[tuple[str, str], ...]:
    """The pairs of a sequence in which each variant is better than all before it, the better one first."""
    return tuple((later, earlier) for at, later in enumerate(names) for earlier in names[:at])


def above_all(best: str, *others: str) -> tuple[tuple[str, str], ...]:
    """The pairs of one variant with each of the others, which it is better than; the others are not ordered."""
    return tuple((best, other) for other in others)


def flat(given: Mapping[str, object]) -> Settings:
    """Flatten settings, without those that are None or empty."""
    kept: Settings = {}
    for name, value in given.items():
        if isinstance(value, Mapping):
            kept |= {f"{name}_{key}": _plain(one) for key, one in value.items()}
        elif value not in (None, ""):
            kept[name] = _plain(value)
    return kept


def _plain(value: object) -> str | int | float | bool:
    return value if isinstance(value, bool | int | float) else str(value)
