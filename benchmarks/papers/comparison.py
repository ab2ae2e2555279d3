"""A comparison of a paper as a value: encoders that differ in one thing, their judge, and the order that was published.

`encoders.py` says how an encoder of a variant is made, `judges.py` what it is judged by, and `papers.py` runs any
comparison into run files, which `tables.py` draws.
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
    """How much is spent on one variant; a case is what the judge says."""

    steps: int  # updates of the parameters, at most
    batch: int  # pairs, or documents, of an update
    training_tokens: int  # of a document in an update
    max_words: int  # first ones of a document, no others are read when it is judged; of pairs not in training either
    n_train: int  # cases to learn from, at most
    n_test: int  # cases to judge by, at most, and as many to choose by
    layers: int = 0  # of the backbone, from the bottom; 0 for all


@dataclass(frozen=True)
class Conditions:
    """What all variants of a comparison get alike."""

    scale: Scale
    encoder: str  # backbone: a folder, a hub name, or the bundled one
    backbone: str  # the same as name@checksum
    device: str | None
    data: Path  # folder of the datasets
    work: Path  # folder of what can be used again
    is_quick: bool  # so little that figures mean nothing
    origin: Origin  # its seed is that of training
    draw_seed: int = 0  # of cases and documents, the same for all seeds of training
    log: Callable[[str], None] = lambda line: None


class Unit(StrEnum):
    """What changes places when documents are read in another order."""

    SECTIONS = "sections"  # headed ones, each with its chunks in their order
    CHUNKS = "chunks"


class Numbers(StrEnum):
    """When chunks are numbered."""

    FOLLOW = "follow"  # before: numbers go with them
    ANEW = "anew"  # after


@dataclass(frozen=True)
class Order:
    """In which orders a document is read when it is judged."""

    unit: Unit
    numbers: Numbers
    n_orders: int = 5  # of each document; a value is the mean over them


@dataclass(frozen=True)
class Size:
    """Of an encoder."""

    layers: int
    width: int  # of a state
    weights: int  # how many parameters


@dataclass(frozen=True)
class Made:
    """An encoder to be judged, and how it came to be."""

    folder: str  # or the name that was given
    encoder: str  # what it began with, as name@checksum
    begins_with: str  # for people: which parameters were taken of it
    size: Size | None  # None where nothing was trained
    n_train: int  # cases learned from
    n_steps: int  # updates made, those before fine-tuning among them
    best_step: int  # after which the parameters were kept
    seconds: float  # of making it
    comparison: str = "cosine"  # by which it scores pairs, of `benchmarks.pairs.comparing`
    chunk_tokens: int = 0  # most tokens of a chunk, special ones not counted; 0 where that is not known
    remark: str = ""  # what else must be known to read the values
    order: Order | None = None  # None for documents as written


class System(Protocol):
    """What makes a variant another one."""

    @property
    def settings(self) -> Settings:
        """What is not as by default, flat."""

    def trained_on(self, conditions: Conditions) -> Settings:
        """What it learns from, with checksums.

        Raises:
            EngineError: the data are not there.
        """

    def make(self, conditions: Conditions) -> Made:
        """Train the encoder, or take what an earlier call trained under equal conditions.

        Raises:
            EngineError: data or backbone are not there, or it cannot be trained.
        """


@dataclass(frozen=True)
class Judged:
    """The answers of one encoder."""

    cases: list[Case]
    k: int = 0  # depth of the rankings; 0 where cases have values


class Bench(Protocol):
    """A judge whose data were read."""

    @property
    def settings(self) -> Settings:
        """What values depend on beside scale and variant: `dataset` as name@checksum, how cases were drawn."""

    def judge(self, made: Made) -> Judged:
        """Judge an encoder; the same cases in the same order for all variants and seeds."""


class Judge(Protocol):
    """What variants are judged by."""

    @property
    def metric(self) -> str:
        """Of the cases; higher is better."""

    def open(self, conditions: Conditions) -> Bench:
        """Read the data.

        Raises:
            EngineError: they are not there, or too few.
        """


@dataclass(frozen=True)
class Variant:
    """One row of a paper's table."""

    name: str
    system: System
    published: float | None = None  # as printed; None where the paper gives no number


@dataclass(frozen=True)
class Comparison:
    """One table or figure of a paper.

    Attributes:
        name: of the comparison, unique in its paper.
        paper: for people.
        source: where in the paper, what was measured and on which data.
        judge: what stands for that here.
        reference: the variant that the others are tested against.
        variants: in the order of the table.
        scale: by default.
        found: pairs of variants, the better one first, where the paper says so without numbers.
        seeds: trainings of each variant; a case counts the mean of their values.
        is_long: whether short documents tell no variants apart, so that quick runs, too, read as many words.
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
        """All pairs of variants that the paper puts in order, the better one first.

        By its numbers, those that are equal left out, and by what it says.
        """
        numbers = {variant.name: variant.published for variant in self.variants if variant.published is not None}
        by_number = [(one, other) for one, a in numbers.items() for other, b in numbers.items() if a > b]
        return list(dict.fromkeys([*by_number, *self.found]))


def variants(systems: Mapping[str, System], published: Mapping[str, float] | None = None) -> tuple[Variant, ...]:
    """A variant for each system, with its published number where there is one."""
    return tuple(Variant(name, system, (published or {}).get(name)) for name, system in systems.items())


def column(rows: Mapping[str, Sequence[float]], number: int) -> dict[str, float]:
    """The published numbers of one column of a paper's table."""
    return {name: row[number] for name, row in rows.items()}


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
