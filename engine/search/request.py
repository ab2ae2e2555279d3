"""The parameters of a search: all that it depends on besides the query and the index. Values only."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from engine.errors import QueryError
from engine.scoring.evidence import CONTAINMENT, Scoring
from engine.search.allowance import Allowance


class Mode(StrEnum):
    """The meaning of a score."""

    SIMILAR = "similar"  # how similar a document is to the query
    CONTAINMENT = "containment"  # how much of the query a document contains


class Explain(StrEnum):
    """The explanation of hits."""

    EVIDENCE = "evidence"  # the parts of the score alone
    MODEL = "model"  # the parts of the score, and the explanation of the model


@dataclass(frozen=True, slots=True)
class Request:
    """The parameters of a search, as they were given; the defaults are those of `longmatch.Index.search`."""

    k: int = 10
    offset: int = 0
    where: str | None = None
    without: tuple[str, ...] = ()
    skip: Collection[str] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    mode: str = Mode.SIMILAR
    diversify: bool = False
    min_pair: float = 0.0
    exact: bool = False
    scoring: Scoring | None = None
    allowance: Allowance | None = None
    explain: str = Explain.EVIDENCE

    def __post_init__(self) -> None:
        """Check mode, minimum and explanation, and choose the scoring of the mode.

        Raises:
            QueryError: there is no such mode or explanation, the scoring is that of another mode, or the minimum is
                out of range.
        """
        if self.mode not in list(Mode):
            raise QueryError(f"mode is {self.mode!r:.40}; it must be one of: {', '.join(Mode)}")
        if self.explain not in list(Explain):
            raise QueryError(f"explain is {self.explain!r:.40}; it must be one of: {', '.join(Explain)}")
        if not 0 <= self.min_pair <= 1:
            raise QueryError(f"min_pair is {self.min_pair:g}; it must be from 0 to 1, as contributions are")
        is_cover = self.mode == Mode.CONTAINMENT
        scoring = self.scoring or (CONTAINMENT if is_cover else Scoring())
        if scoring.cover != is_cover:
            raise QueryError(
                f"mode is {str(self.mode)!r} and the scoring has cover={scoring.cover}; leave out one of them, or pass "
                f"a scoring with cover={is_cover}"
            )
        object.__setattr__(self, "scoring", scoring)

    def leaving_out(self, *doc_ids: str) -> Request:
        """The same search, with further documents left out."""
        return replace(self, without=(*doc_ids, *self.without))
