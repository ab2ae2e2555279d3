"""The README's lines on exactness, kills, damage and memory, each drawn from its record."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.durability.records import DamageRecord, KillRecord, MemoryRecord
from benchmarks.records import ExactnessRecord, Record


def promise_lines(records: Sequence[Record]) -> list[str]:
    """One Markdown list item a promise and record, with the counts that keep or break it."""
    lines = []
    for record in records:
        if isinstance(record, ExactnessRecord):
            lines.append(_exactness(record))
        elif isinstance(record, KillRecord):
            lines.append(_kill(record))
        elif isinstance(record, DamageRecord):
            lines += _damage(record)
        elif isinstance(record, MemoryRecord):
            lines += _memory(record)
    return lines


def _exactness(record: ExactnessRecord) -> str:
    told = (
        f"- `{record.index}` under {record.factory}: {record.n_queries} queries, {record.n_hits:,} hits, contributions "
        f"sum to the score within {record.largest_sum_error:.0e}"
    )
    if not record.n_certified:
        return f"{told}."
    return (
        f"{told}; {record.n_certified} certified rankings, {record.n_ranked_otherwise} of them other than a double "
        f"loop over documents and chunks gives, scores within {record.largest_score_error:.0e}."
    )


_KILLED = {
    "all": "of indexing {} documents",
    "later": "of indexing {} documents, words first and vectors then",
    "queries": "of queries that encode some of {} documents, and of encoding the rest",
}


def _kill(record: KillRecord) -> str:
    killed = _KILLED[record.way].format(record.n_documents)
    return (
        f"- {record.n_timed_kills} kills at random moments {killed}, "
        f"{record.n_fault_point_kills} before and after each durable step and {record.n_second_kills} of runs that "
        f"went on: {record.n_lost} documents lost, {record.n_encoded_twice} encoded twice, "
        f"{record.n_different_vectors} with another vector in the end, "
        f"{record.n_different_hits} other hits, {record.n_unclean} indexes unclean."
    )


def _damage(record: DamageRecord) -> list[str]:
    counts = record.counts.values()
    wrong, crashed = sum(one.n_wrong for one in counts), sum(one.n_crashed for one in counts)
    lines = [f"- {record.n_cases} copies with a damaged file: {wrong} wrong answers, {crashed} crashes."]
    for kind, one in record.counts.items():
        if one.n_verified:
            mended = one.n_mended + one.n_reencoded
            lines.append(
                f"  - {kind}: {one.n_cases} cases, {one.n_refused} refused before parsing, {one.n_verified} found by "
                f"`verify`, {mended} mended."
            )
    return lines


def _memory(record: MemoryRecord) -> list[str]:
    return [
        f"- {run.n_documents:,} documents ({run.corpus}; {run.encoder} encoder): {run.rss_start_mib:,.0f} MiB before, "
        f"{run.rss_peak_mib:,.0f} at most, {run.tokens_per_second:,.0f} tokens/s."
        for run in record.runs
    ]
