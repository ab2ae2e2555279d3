"""Results in the formats of the command line: table, JSON, JSON lines, CSV, TREC run."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.report.table import matrix_table, result_table
from engine.result import Result, SectionMatrix, hit_to_dict

RUN_TAG = "longmatch"


@dataclass(frozen=True, slots=True)
class Answer:
    """A result, and the section matrices of its hits where they were asked for."""

    result: Result
    matrices: tuple[SectionMatrix, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """How much is shown, and how wide."""

    n_pairs: int
    width: int


def render(answers: Sequence[Answer], form: str, layout: Layout) -> str:
    """Write answers in one of `FORMATS`; ends with a newline."""
    return FORMATS[form](answers, layout)


def _table(answers: Sequence[Answer], layout: Layout) -> str:
    texts = []
    for answer in answers:
        texts.append(result_table(answer.result, n_pairs=layout.n_pairs, width=layout.width))
        texts += [matrix_table(matrix, width=layout.width) for matrix in answer.matrices]
    return "\n\n".join(texts) + "\n"


def _as_dict(answer: Answer, layout: Layout) -> dict[str, Any]:
    told = answer.result.to_dict(n_pairs=layout.n_pairs)
    for hit, matrix in zip(told["hits"], answer.matrices, strict=False):
        hit["section_matrix"] = [[round(float(cosine), 4) for cosine in row] for row in matrix.cosines]
    return told


def _json(answers: Sequence[Answer], layout: Layout) -> str:
    told = [_as_dict(answer, layout) for answer in answers]
    return json.dumps(told[0] if len(told) == 1 else told, ensure_ascii=False, indent=1) + "\n"


def _jsonl(answers: Sequence[Answer], layout: Layout) -> str:
    lines = [
        {
            "query_id": answer.result.query.doc_id,
            "status": answer.result.status.value,
            **hit_to_dict(hit, answer.result.query, n_pairs=layout.n_pairs),
        }
        for answer in answers
        for hit in answer.result.hits
    ]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _csv(answers: Sequence[Answer], layout: Layout) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["query_id", "rank", "score", "doc_id", "title", "status"])
    for answer in answers:
        for hit in answer.result.hits:
            row = [answer.result.query.doc_id, hit.rank, f"{hit.score:.6f}", hit.doc_id, hit.title]
            rows.writerow([*row, answer.result.status.value])
    return text.getvalue()


def _trec(answers: Sequence[Answer], layout: Layout) -> str:
    """Fields are parted by blanks there, so blanks inside a name become underscores."""
    return "".join(
        f"{_word(answer.result.query.doc_id)} Q0 {_word(hit.doc_id)} {hit.rank} {hit.score:.8f} {RUN_TAG}\n"
        for answer in answers
        for hit in answer.result.hits
    )


def _word(name: str) -> str:
    return "_".join(name.split())


FORMATS: dict[str, Callable[[Sequence[Answer], Layout], str]] = {
    "table": _table,
    "json": _json,
    "jsonl": _jsonl,
    "csv": _csv,
    "trec": _trec,
}
