"""Results in the formats of the command line: tables, JSON, TREC runs, references, HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from engine.extras import check_extra
from engine.report.contract import envelope
from engine.report.matrix import matrix_table
from engine.report.rows import PART_COLUMNS, as_cell, part_rows
from engine.report.table import result_table
from engine.text.outside import json_text, safe
from engine.views import Result, SectionMatrix

RUN_TAG = "longmatch"


@dataclass(frozen=True, slots=True)
class Answer:
    """A result, and the section matrices of its hits where they were requested."""

    result: Result
    matrices: tuple[SectionMatrix, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """The number of sections and of section pairs per hit, the width in columns, and the command of a report."""

    n_pairs: int
    width: int
    command: str = ""  # as it was typed, for a report


def render(answers: Sequence[Answer], form: str, layout: Layout) -> str | bytes:
    """Answers in one of `FORMATS`: bytes for parquet and arrow, for others a text that ends with a newline."""
    return FORMATS[form](answers, layout)


def _table(answers: Sequence[Answer], layout: Layout) -> str:
    texts = []
    for answer in answers:
        texts.append(result_table(answer.result, n_pairs=layout.n_pairs, width=layout.width))
        texts += [matrix_table(matrix, width=layout.width) for matrix in answer.matrices]
    return "\n\n".join(texts) + "\n"


def _as_dict(answer: Answer, layout: Layout) -> dict[str, Any]:
    result = answer.result.to_dict(n_pairs=layout.n_pairs)
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
    return "".join(json_line(_as_dict(answer, layout)) for answer in answers)


def json_line(values: dict[str, Any]) -> str:
    """A value as JSON on one line, with the newline."""
    return json_text(values) + "\n"


def _csv(answers: Sequence[Answer], layout: Layout) -> str:
    """A row for each listed part of each hit, see `engine.report.rows`; the column `kind` names the part."""
    text = io.StringIO()
    rows = csv.DictWriter(text, PART_COLUMNS, lineterminator="\n")
    rows.writeheader()
    for answer in answers:
        for row in part_rows(_as_dict(answer, layout)):
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
