"""Results in the formats of the command line: tables, JSON, TREC runs, references, HTML."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from engine.report.contract import envelope, result_dict
from engine.report.exports import NOVELTY_COLUMNS, PART_COLUMNS, bibtex, csv_text, novelty_rows, part_rows, ris
from engine.report.lines import Line, line
from engine.report.table import N_NOVELTY_PAIRS, N_PAIRS, joint_dict, joint_lines, no_hits, result_lines
from engine.result import JointResult, Result
from engine.text.cleaning import json_text, safe
from indexer.cli.options import typed_command
from indexer.cli.output import Output, emit, emit_lines

RUN_TAG = "longmatch"


@dataclass(frozen=True, slots=True)
class Answer:
    """A result, and of a watch the hits that were printed before they changed."""

    result: Result
    changed: tuple[str, ...] | None = None


def no_hits_notes(answers: Sequence[Answer]) -> list[str]:
    """Why results have no hits, for formats that do not show it."""
    results = [answer.result for answer in answers]
    return [f"{it.query.title}: {no_hits(it)}" for it in results if not it.hits and it.sections is None]


def print_answers(answers: Sequence[Answer], shown: Output) -> None:
    """Write answers in the format of the command to a file or to standard output."""
    if shown.form == "table":
        emit_lines(partial(_table, answers, shown.n_pairs), shown.output)
    else:
        emit(render(answers, shown.form, shown.n_pairs), shown.output)


def print_joint(result: JointResult, shown: Output) -> None:
    """Write a result of several documents as table, JSON or a line of JSON, to a file or to standard output."""
    if shown.form == "table":
        emit_lines(lambda width: joint_lines(result, n_pairs=shown.n_pairs, width=width), shown.output)
        return
    values = joint_dict(result, n_pairs=N_PAIRS if shown.n_pairs is None else shown.n_pairs)
    text = json_text(envelope([values]), indent=1) if shown.form == "json" else json_text(values)
    emit(text + "\n", shown.output)


def render(answers: Sequence[Answer], form: str, n_pairs: int | None) -> str:
    """Answers in one of `FORMATS`, as a text that ends with a newline.

    `n_pairs` has the section pairs of a hit, by default as many as a table or a report shows.
    """
    if n_pairs is None and form != "html":
        n_pairs = N_PAIRS if answers[0].result.sections is None else N_NOVELTY_PAIRS
    return FORMATS[form](answers, n_pairs)


def _table(answers: Sequence[Answer], n_pairs: int | None, width: int) -> list[Line]:
    lines: list[Line] = []
    for answer in answers:
        blocks = [result_lines(answer.result, n_pairs=n_pairs, width=width)]
        if answer.changed:
            blocks.append([line(f"changed since they were printed: {', '.join(answer.changed)}")])
        for block in blocks:
            lines += [(), *block] if lines else block
    return lines


def _as_dict(answer: Answer, n_pairs: int | None) -> dict[str, Any]:
    result = result_dict(answer.result, n_pairs=n_pairs)
    if answer.changed is not None:
        result["changed"] = list(answer.changed)
    return result


def _json(answers: Sequence[Answer], n_pairs: int | None) -> str:
    """One envelope, for one query or many; see `engine/report/result.schema.json`."""
    return json_text(envelope([_as_dict(answer, n_pairs) for answer in answers]), indent=1) + "\n"


def _jsonl(answers: Sequence[Answer], n_pairs: int | None) -> str:
    """A line for each query: a result of the same schema, even if it has no hits."""
    return "".join(json_text(_as_dict(answer, n_pairs)) + "\n" for answer in answers)


def _csv(answers: Sequence[Answer], n_pairs: int | None) -> str:
    """A row for each listed part of each hit, or for each section of a novelty, see `engine.report.exports`."""
    if answers[0].result.sections is None:
        rows = [row.values() for answer in answers for row in part_rows(_as_dict(answer, n_pairs))]
        return csv_text([PART_COLUMNS, *rows])
    n_pairs = max(1, n_pairs or 0)
    rows = [row.values() for answer in answers for row in novelty_rows(_as_dict(answer, n_pairs))]
    return csv_text([NOVELTY_COLUMNS, *rows])


def _trec(answers: Sequence[Answer], _n_pairs: int | None) -> str:
    """A TREC run: its fields are separated by blanks, so blanks in a name become underscores."""
    return "".join(
        f"{_word(answer.result.query.doc_id)} Q0 {_word(hit.doc_id)} {hit.rank} {hit.score:.8f} {RUN_TAG}\n"
        for answer in answers
        for hit in answer.result.hits
    )


def _html(answers: Sequence[Answer], n_pairs: int | None) -> str:
    """The evidence report, one file for all queries."""
    # Loads Jinja, which the other formats do not need.
    from engine.report.page import result_page

    return result_page([answer.result for answer in answers], n_pairs=n_pairs, command=typed_command())


def _word(name: str) -> str:
    return "_".join(safe(name).split())


FORMATS: dict[str, Callable[[Sequence[Answer], int | None], str]] = {
    "json": _json,
    "jsonl": _jsonl,
    "csv": _csv,
    "trec": _trec,
    "html": _html,
    "bibtex": lambda answers, _: bibtex(answer.result for answer in answers),
    "ris": lambda answers, _: ris(answer.result for answer in answers),
}
