"""`Request` declares a search once: all that it depends on besides the query and the index. Values only.

Each field carries what programs and people must know of it. Options of commands, bodies of HTTP, tools of MCP,
provenance, replay, the table of the docs and all checks are made from the fields. Only `longmatch.Index` spells them
out again, as keywords.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, replace
from enum import StrEnum
from functools import cache
from typing import Any, get_args, get_type_hints

from engine.errors import QueryError
from engine.scoring.evidence import CONTAINMENT, Scoring
from engine.store.where import before_text, filter_text, first_day
from engine.text.section_kinds import SectionKind

_ENTRY = re.compile(r"\s*(?P<name>.+?)\s*=\s*(?P<weight>[^=,]*?)\s*(?:,|$)", re.DOTALL)
AUTO = "auto"  # of `Request.least`
STANDING: Mapping[str, Any] = {"k": 100, "least": AUTO}  # defaults of a standing question
_SKIPPED = tuple(kind.value for kind in SectionKind if kind is not SectionKind.BODY)


class Mode(StrEnum):
    """What a search finds, and the meaning of its scores."""

    SIMILAR = "similar"  # documents by their similarity to the query
    CONTAINMENT = "containment"  # documents by how much of the query they contain
    NOVELTY = "novelty"  # sections of the query by how little of them any document contains


class Explain(StrEnum):
    """The explanation of hits."""

    EVIDENCE = "evidence"  # the parts of the score alone
    MODEL = "model"  # the parts of the score, and the explanation of the model


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The description of a field: its help, range and choices, and the searches that read it."""

    text: str
    least: float | None = None
    most: float | None = None
    most_served: float | None = None  # for clients of a server
    choices: tuple[str, ...] = ()
    option: str | None = None  # of commands; by default `--` and the name
    value: str | None = None  # placeholder of the value in the help of commands
    in_novelty: bool = False  # whether a search for novelty reads it
    in_comparison: bool = False  # whether a comparison of two documents reads it
    is_constant: bool = False  # one of the constants of the score, which only Python can change


def _field(default: Any, text: str, **rest: Any) -> Any:  # noqa: ANN401
    """A field of `Request` with its default, or a type that makes it, and its description."""
    about = {"about": About(text=text, **rest)}
    return field(default_factory=default, metadata=about) if default is dict else field(default=default, metadata=about)


@dataclass(frozen=True, slots=True)
class Request:
    """A search, with the defaults of every front.

    Raises:
        QueryError: a value has another type or is out of its range, or two values exclude each other.
    """

    k: int = _field(10, "Number of hits per query.", least=1, most_served=1_000, option="-k --k")
    offset: int = _field(0, "Number of hits to skip, for pages.", least=0, most_served=1_000_000)
    where: str | None = _field(
        None,
        "Metadata filter, for example: family = 'pep' and number >= 400; longmatch show INDEX --fields lists the "
        "fields.",
        value="FILTER",
        in_novelty=True,
    )
    before: str | None = _field(
        None,
        "Only documents dated before this day, as 2019 or 2019-06-01, or by another field: "
        "priority_date=2019-06-01; those without a date are counted.",
        value="DATE",
        in_novelty=True,
    )
    without: tuple[str, ...] = _field((), "Leave this document out of the hits.", value="ID", in_novelty=True)
    with_itself: bool = _field(
        False, "Keep documents with the same content as the query among the hits.", in_novelty=True
    )
    skip: tuple[str, ...] = _field(
        (),
        "Leave sections of this kind out of the query and of all documents.",
        choices=_SKIPPED,
        in_novelty=True,
        in_comparison=True,
    )
    weights: Mapping[str, float] = _field(
        dict,
        "Weights of sections of the query, by heading, kind or number, as claims=3,abstract=0; by default 1.",
        option="--weight",
        value="NAME=X,...",
        in_comparison=True,
    )
    mode: Mode = _field(
        Mode.SIMILAR,
        "What to find: similar documents, documents that contain the query, or sections of the query that no "
        "document contains.",
        choices=tuple(Mode),
        in_novelty=True,
    )
    diversify: bool = _field(False, "Order the first 50 hits so that each adds other sections of the query.")
    one_per: str | None = _field(
        None, "One hit for each value of this metadata field, as family; it lists the others.", value="FIELD"
    )
    min_pair: float = _field(
        0.0,
        "List section pairs that contribute at least X to the score, and the sum of the others.",
        least=0,
        most=1,
        value="X",
    )
    least: float | str | None = _field(
        None,
        "List hits with a score of at least X; auto: of at least the score that unrelated documents reach.",
        least=0,
        most=1,
        choices=(AUTO,),
        value="X",
    )
    exact: bool = _field(False, "Score every document instead of candidates; the result is certified.")
    candidates: int = _field(
        20,
        "Encode the N best candidates by words that have no vectors yet.",
        least=0,
        most_served=1_000,
        in_novelty=True,
    )
    encode_tokens: int | None = _field(
        None, "Approximate limit of tokens to encode for candidates.", least=1, in_novelty=True
    )
    explain: Explain = _field(
        Explain.EVIDENCE,
        "evidence: the parts of the score; model: also the section pairs that a CoLDE or SMITH encoder computes.",
        choices=tuple(Explain),
    )
    scoring: Scoring | None = _field(
        None, "The constants of the score.", in_novelty=True, in_comparison=True, is_constant=True
    )

    def __post_init__(self) -> None:
        """Normalise and check every value, and choose the scoring of the mode."""
        for parameter in parameters():
            object.__setattr__(self, parameter.name, parameter.checked(getattr(self, parameter.name)))
        self._check_mode()
        is_cover = self.mode is not Mode.SIMILAR
        scoring = self.scoring or (CONTAINMENT if is_cover else Scoring())
        if scoring.cover != is_cover:
            raise QueryError(
                f"mode is {str(self.mode)!r} and the scoring has cover={scoring.cover}; leave out one of them, or pass "
                f"a scoring with cover={is_cover}"
            )
        object.__setattr__(self, "scoring", scoring)

    def _check_mode(self) -> None:
        ignored = [
            parameter.name
            for parameter in parameters()
            if not parameter.about.in_novelty
            if getattr(self, parameter.name) != parameter.default
        ]
        if self.mode is Mode.NOVELTY and ignored:
            are = "is" if len(ignored) == 1 else "are"
            raise QueryError(f"{' and '.join(ignored)} {are} for rankings of documents; leave out with mode 'novelty'")

    @classmethod
    def of(cls, **values: object) -> Request:
        """A request from names and values, of a front or of a recorded search.

        Raises:
            QueryError: a name is not known, or see the class.
        """
        known = [parameter.name for parameter in parameters()]
        for name in values:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f"did you mean {near[0]}?" if near else f"these are: {', '.join(known)}"
                raise QueryError(f"a search has no parameter {name!r:.40}; {hint}")
        return cls(**values)  # type: ignore[arg-type]

    @property
    def used_scoring(self) -> Scoring:
        """The constants of the score, those of the mode by default."""
        return self.scoring or Scoring()

    @property
    def filter(self) -> str | None:
        """The metadata filter of `where` and `before` together."""
        if self.before is None:
            return self.where
        dated = before_text(self.before)
        return dated if self.where is None else f"({self.where}) and ({dated})"

    def leaving_out(self, *doc_ids: str) -> Request:
        """The same search, with further documents left out."""
        return replace(self, without=tuple(dict.fromkeys((*doc_ids, *self.without)))) if doc_ids else self

    def recorded(self) -> dict[str, Any]:
        """The parameters that a search of this mode reads as plain values; `of` makes the same request from them."""
        is_novelty = self.mode is Mode.NOVELTY
        return {p.name: p.plain(self) for p in parameters() if p.about.in_novelty or not is_novelty}

    def recorded_comparison(self) -> dict[str, Any]:
        """The parameters that a comparison reads as plain values."""
        return {p.name: p.plain(self) for p in parameters() if p.about.in_comparison}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A field of `Request` as the fronts read it."""

    name: str
    kind: type  # int, float, bool, str, tuple, Mapping, Mode, Explain or Scoring
    is_optional: bool
    default: Any
    about: About

    def checked(self, value: object) -> Any:  # noqa: ANN401
        """A value of this field, normalised.

        Raises:
            QueryError: it cannot be used.
        """
        if value is None and self.is_optional:
            return None
        if self.name in ("where", "before"):
            return _filter(self.name, value)
        if self.kind in (int, float):
            return value if value in self.about.choices else self._number(value)
        if self.kind is tuple:
            return self._names(value)
        if issubclass(self.kind, StrEnum):
            return self.kind(self._choice(value))
        if issubclass(self.kind, Mapping):
            return self._weights(value)
        if self.kind is Scoring and isinstance(value, Mapping):
            return Scoring(**value)
        if not isinstance(value, self.kind):
            raise QueryError(f"{self.name} is {value!r:.40}; it must be {self.kind.__name__}")
        return value

    def plain(self, request: Request) -> Any:  # noqa: ANN401
        """The value of a request as JSON can hold it."""
        value = getattr(request, self.name)
        if self.kind is tuple:
            return list(value)
        if issubclass(self.kind, StrEnum):
            return str(value)
        if issubclass(self.kind, Mapping):
            return dict(value)
        return asdict(value) if self.kind is Scoring else value

    def _number(self, value: object) -> int | float:
        if self.about.choices and isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                raise QueryError(
                    f"{self.name} is {value!r:.40}; it must be a number or {' or '.join(self.about.choices)}"
                ) from None
        is_number = isinstance(value, int if self.kind is int else int | float) and not isinstance(value, bool)
        if not is_number:
            wanted = "a whole number" if self.kind is int else "a number"
            raise QueryError(f"{self.name} is {value!r:.40}; it must be {wanted}")
        assert isinstance(value, int | float)
        least, most = self.about.least, self.about.most
        if (least is not None and not value >= least) or (most is not None and not value <= most):
            wanted = f"at least {least:g}" if most is None else f"from {least:g} to {most:g}"
            raise QueryError(f"{self.name} is {value:g}; it must be {wanted}")
        return value

    def _names(self, value: object) -> tuple[str, ...]:
        names = () if value is None else (value,) if isinstance(value, str) else value
        if not isinstance(names, Collection) or not all(isinstance(name, str) for name in names):
            wanted = "a name or a list of them" if self.about.choices else "a doc_id or a list of them, as hit.doc_id"
            raise QueryError(f"{self.name} is {value!r:.60}; pass {wanted}")
        return tuple(sorted(map(self._choice, names))) if self.about.choices else tuple(names)

    def _choice(self, value: object) -> str:
        if value not in self.about.choices:
            listed = ", ".join(self.about.choices)
            if self.kind is tuple:
                raise QueryError(f"{value!r:.40} is no kind of section that can be skipped; these are: {listed}")
            raise QueryError(f"{self.name} is {value!r:.40}; it must be one of: {listed}")
        return str(value)

    def _weights(self, value: object) -> Mapping[str, float]:
        if value is not None and not isinstance(value, Mapping):
            raise QueryError(f'the weights are {type(value).__name__}; pass a dict, as {{"claims": 3, "abstract": 0}}')
        return {} if value is None else value


def _filter(name: str, value: object) -> str | None:
    if name == "where":
        return filter_text(value)
    field, sign, date = str(value).rpartition("=")
    if (day := first_day(date)) is None or (sign and not field):
        raise QueryError(
            f"before is {str(value)!r:.40}; it must be a date, as 2019, 2019-06 or 2019-06-01, or a field and a date, "
            "as priority_date=2019-06-01"
        )
    return f"{field}{sign}{day}"


@cache
def parameters() -> tuple[Parameter, ...]:
    """The fields of `Request` in their order."""
    hints = get_type_hints(Request)
    return tuple(_parameter(declared, hints[declared.name]) for declared in fields(Request))


def _parameter(declared: Field[Any], hint: Any) -> Parameter:  # noqa: ANN401
    is_optional = type(None) in get_args(hint)
    kind = get_args(hint)[0] if is_optional else hint
    default = declared.default if declared.default_factory is MISSING else declared.default_factory()
    return Parameter(declared.name, getattr(kind, "__origin__", kind), is_optional, default, declared.metadata["about"])


def parse_weights(text: str) -> dict[str, float]:
    """Weights from a text such as "claims=3, abstract=0"; a name can contain commas, but no "=".

    Raises:
        QueryError: the text is not a list of weights.
    """
    weights: dict[str, float] = {}
    at = 0
    while at < len(text):
        entry = _ENTRY.match(text, at)
        if entry is None:
            raise QueryError(f"{text[at:].strip()!r:.60} gives no weight; write NAME=NUMBER, as claims=3,abstract=0")
        name, at = entry["name"], entry.end()
        if name in weights:
            raise QueryError(f"the section {name!r} has two weights in {text!r:.60}; give one")
        try:
            weights[name] = float(entry["weight"])
        except ValueError:
            raise QueryError(f"the weight of {name!r} is {entry['weight']!r:.40}; it must be a number") from None
    return weights
