"""The table of servers under load."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.load.record import LoadRecord
from benchmarks.load.requests import HOSTILE_SHARE
from benchmarks.markdown import markdown, origins

_HEAD = [
    "Clients",
    "Seconds",
    "Answered",
    "Refused: hostile",
    "Refused: busy",
    "Wrong",
    "p50, ms",
    "p99, ms",
    "Memory, MiB",
]
_NOTE = (
    "Clients on the same machine, each with one request after another: {share:.0%} hostile (bad, nested and mistyped "
    "JSON, bad filters, unknown ids, noise as PDF, bodies over the limit, paths, other sites), the others searches "
    "with a doc_id, a text or a file, and lists of documents. The first row is one client with valid requests alone. "
    "Wrong: another status than the expected one, or a body that is not JSON. Latency is of valid requests with their "
    "result. Memory is resident, at the end of the row; when the server was ready it was {memory:,.0f} MiB. "
    "{documents:,} documents of {index}; {threads} threads, {concurrency} requests admitted."
)


def load_table(records: Sequence[LoadRecord]) -> str:
    """A row for each number of clients, for each index."""
    lines = []
    for record in records:
        rows = [
            [
                f"{row.n_clients:,}",
                f"{row.seconds:.0f}",
                f"{row.n_answered:,}",
                f"{row.n_refused:,}",
                f"{row.n_busy:,}",
                f"{row.n_wrong:,}",
                f"{row.latency.p50_ms:,.0f}",
                f"{row.latency.p99_ms:,.0f}",
                f"{row.memory_mib:,.0f}",
            ]
            for row in record.rows
        ]
        note = _NOTE.format(
            share=HOSTILE_SHARE,
            memory=record.memory_mib,
            documents=record.n_documents,
            index=record.index,
            threads=record.threads,
            concurrency=record.concurrency,
        )
        lines += [*markdown(_HEAD, rows), "", note, ""]
    return "\n".join([*lines, *origins(records)])
