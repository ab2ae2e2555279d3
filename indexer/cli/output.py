"""Results in the formats of the command line: tables, JSON, TREC runs, references, HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from engine.environment import check_extra
from engine.report.contract import envelope, result_dict
from engine.report.lines import plain
from engine.report.rows import NOVELTY_COLUMNS, PART_COLUMNS, as_cell, novelty_rows, part_rows
from engine.report.table import (
    N_NOVELTY_PAIRS,
    N_PAIRS,
    matrix_lines,
    matrix_table,
    no_hits,
    result_lines,
    result_table,
)
from engine.result import JointResult, Result, SectionMatrix
from engine.text.outside import json_text, safe
from indexer.cli.options import typed_command
from indexer.cli.output_file import Shown, write_output
from indexer.cli.terminal import PIPE_WIDTH, echo_text, has_styles, show, width

RUN_TAG = "longmatch"


@dataclass(frozen=True, slots=True)
class Answer:
    """A result, and the section matrices of its hits where they were requested."""

    result: Result
    matrices: tuple[SectionMatrix, ...] = ()
    changed: tuple[str, ...] | None = None  # of a watch: hits that were printed before they changed


@dataclass(frozen=True, slots=True)
class Layout:
    """The number of section pairs per hit, the width in columns, and the command of a report."""

    n_pairs: int | None  # None: as many as a table or a report shows by default
    width: int
    command: str = ""  # as it was typed, for a report


def no_hits_notes(answers: Sequence[Answer]) -> list[str]:
    """Why results have no hits, for formats that do not show it."""
    results = [answer.result for answer in answers]
    return [f"{it.query.title}: {no_hits(it)}" for it in results if not it.hits and it.sections is None]


def print_answers(answers: Sequence[Answer], shown: Shown) -> None:
    """Write answers in one of `FORMATS` to a file or to standard output, in styles where a terminal shows them."""
    form, n_pairs, output = shown.form, shown.n_pairs, shown.output
    if output is not None:
        write_output(output, render(answers, form, Layout(n_pairs, PIPE_WIDTH, typed_command())))
    elif form == "table" and has_styles():
        for number, answer in enumerate(answers):
            lines = result_lines(answer.result, n_pairs=n_pairs, width=width())
            for matrix in answer.matrices:
                lines += [(), *matrix_lines(matrix, width=width())]
            show([(), *lines] if number else lines)
    else:
        text = render(answers, form, Layout(n_pairs, width(), typed_command()))
        assert isinstance(text, str), "a binary format needs a file"
        echo_text(text, nl=False)


def print_joint(result: JointResult, shown: Shown) -> None:
    """Write a result of several documents as table, JSON or a line of JSON, to a file or to standard output."""
    from engine.report.joint import joint_dict, joint_lines

    if shown.form == "table" and shown.output is None and has_styles():
        show(joint_lines(result, n_pairs=shown.n_pairs, width=width()))
        return
    if shown.form == "table":
        at = PIPE_WIDTH if shown.output else width()
        text = plain(joint_lines(result, n_pairs=shown.n_pairs, width=at))
    else:
        values = joint_dict(result, n_pairs=N_PAIRS if shown.n_pairs is None else shown.n_pairs)
        text = json_text(envelope([values]), indent=1) if shown.form == "json" else json_text(values)
    if shown.output is None:
        echo_text(text)
    else:
        write_output(shown.output, text + "\n")


def render(answers: Sequence[Answer], form: str, layout: Layout) -> str | bytes:
    """Answers in one of `FORMATS`: bytes for parquet and arrow, for others a text that ends with a newline."""
    if layout.n_pairs is None and form != "html":
        layout = replace(layout, n_pairs=N_PAIRS if answers[0].result.sections is None else N_NOVELTY_PAIRS)
    return FORMATS[form](answers, layout)


def _table(answers: Sequence[Answer], layout: Layout) -> str:
    texts = []
    for answer in answers:
        texts.append(result_table(answer.result, n_pairs=layout.n_pairs, width=layout.width))
        if answer.changed:
            texts.append(f"changed since they were printed: {', '.join(map(safe, answer.changed))}")
        texts += [matrix_table(matrix, width=layout.width) for matrix in answer.matrices]
    return "\n\n".join(texts) + "\n"


def _as_dict(answer: Answer, layout: Layout) -> dict[str, Any]:
    result = result_dict(answer.result, n_pairs=layout.n_pairs)
    if answer.changed is not None:
        result["changed"] = list(answer.changed)
    if answer.matrices:
        for hit, matrix in zip(result["hits"], answer.matrices, strict=True):
            hit["section_matrix"] = [[round(float(cosine), 4) for cosine in row] for row in matrix.cosines]
    return result


def _json(answers: Sequence[Answer], layout: Layout) -> str:
    """One envelope, for one query or many; see `engine/report/result.schema.json`."""
    results = envelope([_as_dict(answer, layout) for answer in answers])
    return json_text(results, indent=1) + "\n"


def _jsonl(answers: Sequence[Answer], layout: Layout) -> str:
    """A line for each query: a result of the same schema, even if it has no hits."""
    return "".join(json_text(_as_dict(answer, layout)) + "\n" for answer in answers)


def _csv(answers: Sequence[Answer], layout: Layout) -> str:
    """A row for each listed part of each hit, or for each section of a novelty, see `engine.report.rows`."""
    is_novelty = answers[0].result.sections is not None
    text = io.StringIO()
    rows = csv.DictWriter(text, NOVELTY_COLUMNS if is_novelty else PART_COLUMNS, lineterminator="\n")
    rows.writeheader()
    for answer in answers:
        values = _as_dict(answer, replace(layout, n_pairs=max(1, layout.n_pairs or 0)) if is_novelty else layout)
        for row in (novelty_rows if is_novelty else part_rows)(values):
            rows.writerow({name: as_cell(value) for name, value in row.items()})
    return text.getvalue()


def _trec(answers: Sequence[Answer], layout: Layout) -> str:
    """A TREC run: its fields are separated by blanks, so blanks in a name become underscores."""
    return "".join(
        f"{_word(answer.result.query.doc_id)} Q0 {_word(hit.doc_id)} {hit.rank} {hit.score:.8f} {RUN_TAG}\n"
        for answer in answers
        for hit in answer.result.hits
    )


def _html(answers: Sequence[Answer], layout: Layout) -> str:
    """The evidence report, one file for all queries."""
    # Loads Jinja, which the other formats do not need.
    from engine.report.page import result_page

    return result_page([answer.result for answer in answers], n_pairs=layout.n_pairs, command=layout.command)


def _bibtex(answers: Sequence[Answer], _layout: Layout) -> str:
    from engine.report.citations import bibtex

    return bibtex(answer.result for answer in answers)


def _ris(answers: Sequence[Answer], _layout: Layout) -> str:
    from engine.report.citations import ris

    return ris(answer.result for answer in answers)


def _columns(answers: Sequence[Answer], layout: Layout, form: Literal["parquet", "arrow"]) -> bytes:
    """The rows of `_csv` with typed columns."""
    check_extra("pyarrow", f"the format {form}", "pyarrow", "arrow")
    # Loads pyarrow, which the other formats do not need.
    from engine.report.arrow import part_export

    file = io.BytesIO()
    part_export([answer.result for answer in answers], n_pairs=layout.n_pairs).write(file, form)
    return file.getvalue()


def _word(name: str) -> str:
    return "_".join(safe(name).split())


FORMATS: dict[str, Callable[[Sequence[Answer], Layout], str | bytes]] = {
    "table": _table,
    "json": _json,
    "jsonl": _jsonl,
    "csv": _csv,
    "trec": _trec,
    "html": _html,
    "bibtex": _bibtex,
    "ris": _ris,
    "parquet": partial(_columns, form="parquet"),
    "arrow": partial(_columns, form="arrow"),
}
