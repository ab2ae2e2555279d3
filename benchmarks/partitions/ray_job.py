"""Indexing runs in processes of their own, with or without Ray, which are killed or measured by `ray_kills`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import click

from engine.errors import EngineError

ENCODER, WRITER = "encode_stored", "PartitionWriter"  # names of Ray's processes while they work
_SAMPLE_SECONDS = 0.2


@dataclass(frozen=True)
class Job:
    """A run of `longmatch index` with vectors of all documents."""

    index: Path
    corpus: Path
    encoder: str
    n_workers: int  # encoders at the same time; 0 for a run without Ray
    batch_chars: int = 1 << 17

    def start(self) -> Running:
        """Start the run, or resume it."""
        command = [sys.executable, "-m", "benchmarks.partitions.ray_job", *map(str, vars(self).values())]
        path = self.index.with_suffix(".log")
        log = path.open("ab")
        return Running(subprocess.Popen(command, stdout=log, stderr=log), path)


@dataclass
class Running:
    """A run, and all processes that it has started."""

    process: subprocess.Popen[bytes]
    log: Path
    _spent: dict[int, float] = field(default_factory=dict)  # processor seconds by process id

    def workers(self, name: str) -> list[int]:
        """Ids of the processes of Ray that now run the task or actor `name`."""
        return [one for one in _family(self.process.pid) if _title(one).startswith(f"ray::{name}")]

    def finish(self, most_seconds: float) -> float:
        """Wait for the end, and return the processor seconds of all processes.

        Raises:
            EngineError: the run fails, or does not end in time.
        """
        deadline = time.monotonic() + most_seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            for one, spent in _family(self.process.pid).items():
                self._spent[one] = max(self._spent.get(one, 0.0), spent)
            time.sleep(_SAMPLE_SECONDS)
        if self.process.poll() != 0:
            self.process.kill()
            last = (self.log.read_text(errors="replace").splitlines() or [""])[-1]
            raise EngineError(f"the run ended with {self.process.poll()}: {last}; see {self.log}")
        return sum(self._spent.values())


def _family(root: int) -> dict[int, float]:
    """A process and all that descend from it, each with its processor seconds so far."""
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            values = path.read_text().rpartition(")")[2].split()  # the process name before it can contain blanks
            number = int(path.parent.name)
            parents[number] = int(values[1])
            seconds[number] = (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")
    family = {root} & parents.keys()
    while grown := {one for one, parent in parents.items() if parent in family} - family:
        family |= grown
    return {one: seconds[one] for one in sorted(family)}


def _title(process: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_text(errors="replace")
    return ""


def run(index: Path, corpus: Path, encoder: str, n_workers: int, batch_chars: int) -> None:
    """The run itself, in this process; prints its counts."""
    from indexer import read_corpus
    from indexer.building.builder import build

    documents = read_corpus([str(corpus)])
    if not n_workers:
        report = build(index, documents, encoder=encoder)
    else:
        from indexer.cluster.session import connected

        with connected("local", n_workers) as cluster:
            from indexer.cluster.job import build_on_cluster  # loads Ray, after it was set up

            report = build_on_cluster(
                index, documents, cluster, n_workers=n_workers, encoder=encoder, batch_chars=batch_chars, log=click.echo
            )
    click.echo(json.dumps({"n_encoded": report.n_encoded, "n_unchanged": report.n_unchanged}))


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
