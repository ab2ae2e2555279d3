"""Opens an index and searches it once, in the process that is measured; imports nothing else of the benchmarks."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import engine.search.searcher  # noqa: F401 - imports are not measured
from engine.index import Index


def answer(path: str, doc_id: str) -> str:
    """Open an index, search it once, and return `FirstAnswers` of this process alone, as JSON; run it once."""
    before = _now()
    with Index.open(path, store=False) as index:
        opened = _now()
        index.search_id(doc_id)
        answered = _now()
    names = ("ms", "cpu_ms", "bytes")
    steps = {"open": opened, "answer": answered}
    return json.dumps(
        {
            f"{step}_{name}": round(now - then, 1)
            for step, moment in steps.items()
            for name, now, then in zip(names, moment, before, strict=True)
        }
    )


def _now() -> tuple[float, float, int]:
    """Milliseconds by the clock and of the processor, and bytes that this process read, also through mapped files."""
    n_read = 0
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("read_bytes:"):
            n_read = int(line.split()[1])
    return time.perf_counter() * 1000, time.process_time() * 1000, n_read


if __name__ == "__main__":
    print(answer(*sys.argv[1:3]))  # noqa: T201 - read by `first_answer`
