"""The progress that a run prints while it works, and its plan."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

import indexer.cli.terminal as progress_module
from indexer.building.builder import build
from indexer.building.report import Activity, BuildReport
from indexer.cli.index import describe_plan
from indexer.cli.terminal import BuildProgress
from indexer.plan import Plan, Way
from tests.fakes import FakeEncoder, Terminal, make_document

PLAN = Plan(
    n_new=100,
    n_changed=0,
    n_unchanged=0,
    n_unreadable=0,
    n_tokens=100_000,
    n_chunks=1_000,
    is_counted=False,
    ways=(Way("none", 2, 0, 3_000_000), Way("later", 9, 15_000, 4_000_000), Way("all", 50, 100_000, 6_000_000)),
)


@pytest.fixture(autouse=True)
def every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "_SECONDS_BETWEEN_LINES", 0.0)


@pytest.mark.parametrize(
    ("n_files", "line"),
    [
        (100, "25 documents of 100, about 30 s left, 50,000 tokens, 5,000"),
        (None, "25 documents, 50,000 tokens, 5,000"),
    ],
)
@pytest.mark.parametrize("n_reused", [0, 36])
def test_the_time_left_follows_documents(n_files: int | None, line: str, n_reused: int) -> None:
    stream = io.StringIO()
    with BuildProgress(n_files, stream) as progress:
        progress(BuildReport(seconds=10, n_added=25, n_tokens=50_000, n_chunks_reused=n_reused))
    assert stream.getvalue() == f"{line} tokens/s" + (", 36 chunks reused" if n_reused else "") + "\n"


def test_a_plan_is_shown_line_by_line() -> None:
    assert describe_plan(PLAN).splitlines() == [
        "new              about 100 documents",
        "changed          about 0",
        "unchanged        about 0",
        "unreadable       about 0",
        "to encode        about 100,000 tokens in 1,000 chunks",
        "--encode none    about 2.0 s, 0 tokens encoded, 3.0 MB on disk: words alone",
        "--encode later   about 9.0 s, 15,000 tokens encoded, 4.0 MB on disk: words, and a sample of vectors; queries "
        "encode what they need",
        "--encode all     about 50 s, 100,000 tokens encoded, 6.0 MB on disk: words and all vectors",
    ]


class CountingEncoder(FakeEncoder):
    """An encoder that counts the chunks it reads, as encoders of texts do."""

    chunks_read = 0

    @property
    def n_read(self) -> int:
        return self.chunks_read


def test_a_batch_counts_by_the_share_of_its_chunks() -> None:
    encoder = CountingEncoder()
    documents = [encoder.segment(make_document(name, "fox " * 16)) for name in ("a", "b")]  # two chunks each
    activity = Activity(BuildReport())
    encoder.chunks_read = 7
    assert activity.n_being_encoded == 0
    with activity.encoding(encoder, documents):
        assert activity.n_being_encoded == 0
        encoder.chunks_read += 1
        assert activity.n_being_encoded == 0.5
        encoder.chunks_read += 5
        assert activity.n_being_encoded == 2
    assert activity.n_being_encoded == 0


def test_a_bar_moves_before_the_first_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    terminal, encoder = Terminal(), CountingEncoder()
    activity = Activity(BuildReport())
    with BuildProgress(4, terminal) as progress:
        shown = [line for line in _drawn(progress, terminal) if line]
        assert shown[-1].startswith("reading ")
        progress.begin(activity)
        activity.n_read = 3
        assert _drawn(progress, terminal)[-1].startswith("0 of 4 documents, 3 read ")
        with activity.encoding(encoder, [encoder.segment(make_document("a", "fox " * 16))] * 3):
            encoder.chunks_read += 4
            assert _drawn(progress, terminal)[-1].startswith("2 of 4 documents, 3 read ")
        activity.report.n_added, activity.report.n_encoded = 4, 1
        activity.n_to_encode = 3
        assert _drawn(progress, terminal)[-1].startswith("1 of 3 encoded ")
        progress.log("[a line] of its own")
    assert "[a line] of its own" in terminal.getvalue()


def _drawn(progress: BuildProgress, terminal: Terminal) -> list[str]:
    """The lines on the terminal after it is drawn again, without control sequences."""
    progress._bar.refresh()
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue()).replace("\r", "\n").rstrip("\n").splitlines()


def test_a_run_shows_its_bar_and_removes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    with BuildProgress(2, terminal) as progress:
        documents = [make_document(name, f"the fox {name} runs") for name in ("a", "b")]
        build(tmp_path / "x.lm", documents, encoder=FakeEncoder(), factory="scan", progress=progress)
        assert any("2 of 2 documents" in line for line in _drawn(progress, terminal))
