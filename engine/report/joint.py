"""Results of searches with several documents, as plain values and as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from engine.report.contract import JOINT_VERSION, head_dict, hit_dicts
from engine.report.lines import Line, Run, Style, cut, line
from engine.report.shares import summary
from engine.report.table import WIDTH, hit_lines, reach_note, title_line, undated_note
from engine.result import N_SNIPPETS, JointResult
from engine.text.outside import safe

_OF_TARGET = ("rank", "id", "title")
_INDENT = 5


def joint_dict(result: JointResult, *, n_pairs: int | None = N_SNIPPETS) -> dict[str, Any]:
    """A result as plain values: the contributions of `by_query` sum to the score of a hit, to 1e-5."""
    heads = [head_dict(one) for one in result.results]
    queries = [
        {"weight": weight} | {name: head[name] for name in ("query", "encoding", "provenance", "floor")}
        for weight, head in zip(result.weights, heads, strict=True)
    ]
    return {
        "schema": JOINT_VERSION,
        "queries": queries,
        "status": result.status.value,
        "n_searched": result.n_searched,
        "n_undated": heads[0]["n_undated"],
        "seconds": round(result.seconds, 6),
        "language": heads[0]["language"],
        "reference": heads[0]["reference"],
        "copies": list(result.copies),
        "floor": None if result.floor is None else asdict(result.floor),
        "nothing_stands_out": result.nothing_stands_out,
        "hits": [*_hits(result, n_pairs)],
    }


def _hits(result: JointResult, n_pairs: int | None) -> Iterator[dict[str, Any]]:
    """The hits; the contributions of the query documents sum to their scores."""
    rows = zip(result.hits, *(hit_dicts(one, n_pairs=n_pairs) for one in result.results), strict=True)
    for hit, *by_query in rows:
        target = {name: by_query[0][name] for name in _OF_TARGET} | {"score": hit.score}
        above = None if result.floor is None else result.floor.level(hit.score)
        parts = [
            {"contribution": contribution, "hit": values}
            for contribution, values in zip(hit.contributions, by_query, strict=True)
        ]
        yield target | {"above": above, "by_query": parts}


def joint_lines(result: JointResult, *, n_pairs: int | None = None, width: int = WIDTH) -> list[Line]:
    """The hits, each with its score by query document, and the strongest sections of each of those to be like."""
    n_pairs = 1 if n_pairs is None else n_pairs
    lines = []
    for one, weight in zip(result.results, result.weights, strict=True):
        head = line(Run("like    " if weight > 0 else "unlike  ", Style.FAINT), Run(one.query.title, Style.TITLE))
        lines.append(cut(head, width))
    reach = reach_note(result.floor, result.nothing_stands_out, list(result.scores))
    notes = [
        f"{result.n_searched:,} searched{undated_note(result.results[0])}, {result.status.value}; {len(result)} hits",
        reach,
    ]
    lines += [*(cut(line(Run(f"        {note}", Style.FAINT)), width) for note in notes), line()]
    for hit in joint_dict(result, n_pairs=n_pairs)["hits"]:
        lines += title_line(hit, width)
        for part, one, weight in zip(hit["by_query"], result.results, result.weights, strict=True):
            number = Run(f"{part['contribution']:+8.4f}", Style.NUMBER)
            lines.append(
                cut(line(" " * _INDENT, number, f"  {safe(one.query.title)}: {safe(summary(part['hit']))}"), width)
            )
            if weight > 0:
                lines += (
                    hit_lines(part["hit"], n_pairs, width, is_on_demand=one.encoding is not None) if n_pairs else []
                )
        lines.append(line())
    if not len(result):
        lines += [cut(line("no hit: no document is nearer to the first than to the others"), width), line()]
    return lines[:-1]
