"""A plan estimates before a run what the run then takes."""

from __future__ import annotations

import random
from dataclasses import asdict
from pathlib import Path

import pytest

from engine.errors import BudgetExceeded, IndexMismatch
from engine.store.writer import Writer
from indexer.building.budget import Budget
from indexer.building.builder import build
from indexer.building.corpus import read_corpus
from indexer.generation.footprint import Footprint
from indexer.plan.estimate import EMPTY_CATALOG_BYTES, make_plan
from indexer.plan.rates import Rates
from indexer.plan.values import Disk, Memory, Plan, Seconds
from tests.fakes import FakeEncoder


def write(folder: Path, name: str, n_words: int) -> None:
    rng = random.Random(name)
    words = [f"word{rng.randrange(500)}" for _ in range(n_words)]
    half = len(words) // 2
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.md").write_text(f"# One\n\n{' '.join(words[:half])}\n\n# Two\n\n{' '.join(words[half:])}\n")


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    for number in range(30):
        write(tmp_path / "papers", f"p{number:02d}", 40 + 20 * number)
    return tmp_path / "papers"


def plan(path: Path | None, papers: Path, budget: Budget | None = None, factory: str = "auto") -> Plan:
    return make_plan(path, [str(papers)], FakeEncoder(), factory=factory, budget=budget)


@pytest.mark.slow
def test_a_plan_of_few_documents_counts_what_the_run_finds(tmp_path: Path, papers: Path) -> None:
    made = plan(tmp_path / "x.lm", papers)
    assert not (tmp_path / "x.lm").exists()
    report = build(tmp_path / "x.lm", read_corpus([str(papers)]), encoder=FakeEncoder())
    assert (made.n_new, made.n_changed, made.n_unchanged, made.is_counted) == (30, 0, 0, True)
    assert (made.n_tokens, made.n_chunks, made.n_chunks_after) == (report.n_tokens, report.n_chunks, report.n_chunks)
    assert made.factory == "Flat"
    shards = sum(file.stat().st_size for file in (tmp_path / "x.lm" / "shards").iterdir())
    generation = sum(file.stat().st_size for file in (tmp_path / "x.lm" / "ann").glob("*/*"))
    assert made.disk.shards == pytest.approx(shards, rel=0.05)
    assert made.disk.generation == pytest.approx(generation, rel=0.05)
    assert made.disk.afterwards == pytest.approx(report.disk_bytes, rel=0.15)


@pytest.mark.slow
def test_a_plan_of_an_index_counts_new_changed_and_unchanged_documents(tmp_path: Path, papers: Path) -> None:
    build(tmp_path / "x.lm", read_corpus([str(papers)]), encoder=FakeEncoder())
    write(papers, "p03", 500)
    write(papers, "q", 100)
    made = plan(tmp_path / "x.lm", papers)
    report = build(tmp_path / "x.lm", read_corpus([str(papers)]), encoder=FakeEncoder())
    assert (made.n_new, made.n_changed, made.n_unchanged) == (1, 1, 29)
    assert (made.n_tokens, made.n_chunks) == (report.n_tokens, report.n_chunks)
    assert (made.factory, made.ladder, made.memory.index) == ("", (), 0)  # the few are scanned


@pytest.mark.slow
def test_an_old_generation_stays_on_disk_until_the_new_one_is_there(tmp_path: Path, papers: Path) -> None:
    build(tmp_path / "x.lm", read_corpus([str(papers)]), encoder=FakeEncoder())
    old = sum(file.stat().st_size for file in (tmp_path / "x.lm" / "ann").glob("*/*"))
    made = plan(tmp_path / "x.lm", papers, factory="SQfp16")
    assert (made.factory, made.disk.replaced_generation) == ("SQfp16", old)
    assert made.disk.afterwards == made.disk.total - old


@pytest.mark.slow
def test_a_sample_estimates_a_corpus_of_many_lengths(tmp_path: Path) -> None:
    rng = random.Random(0)
    for number in range(300):
        write(tmp_path / "papers", f"p{number:03d}", int(20 + rng.lognormvariate(4, 1)))
    write(tmp_path / "papers", "zz-long", 20_000)
    made = plan(None, tmp_path / "papers")
    report = build(tmp_path / "x.lm", read_corpus([str(tmp_path / "papers")]), encoder=FakeEncoder())
    assert not made.is_counted
    assert made.n_new == 301
    assert made.n_tokens == pytest.approx(report.n_tokens, rel=0.05)
    assert made.n_chunks == pytest.approx(report.n_chunks, rel=0.05)


def test_unreadable_documents_are_counted(papers: Path) -> None:
    (papers / "bad.pdf").write_bytes(b"no pdf at all")
    made = plan(None, papers)
    assert (made.n_new, made.n_unreadable) == (30, 1)


def test_parts_sum_to_the_totals(papers: Path) -> None:
    values = plan(None, papers).to_dict()
    for name in ("seconds", "memory", "disk"):
        total = values[name].pop("total")
        assert total == pytest.approx(sum(values[name].values()))
        assert total > 0
    assert values["vram"] is None


def test_a_total_is_the_sum_of_all_parts() -> None:
    assert Seconds(1, 2, 3, 4).total == 10
    assert Memory(1, 2, 3, 4, 5, 6).total == 21
    assert (Disk(1, 2, 3, 4, 5).total, Disk(1, 2, 3, 4, 5).afterwards) == (15, 10)


@pytest.mark.slow
def test_the_plan_stays_within_the_memory_and_lists_the_rejected_types(papers: Path) -> None:
    usual = plan(None, papers)
    held = Footprint().own_bytes()
    for limit in range(held, held + 60_000_000, 4_000_000):
        try:
            made = plan(None, papers, Budget(memory_bytes=limit))
        except BudgetExceeded:
            continue
        assert made.memory.total <= limit
        assert len(made.ladder) > 1 or made.factory == usual.factory
    assert made.factory == "Flat"


def test_an_impossible_memory_is_refused_before_the_corpus_is_read(tmp_path: Path) -> None:
    with pytest.raises(BudgetExceeded, match=r"--memory allows 5 MB: allow at least \d+M"):
        plan(None, tmp_path / "none", Budget(memory_bytes=5_000_000))


@pytest.mark.slow
def test_a_disk_that_is_too_small_is_refused(tmp_path: Path, papers: Path) -> None:
    needed = plan(None, papers).disk.total
    plan(None, papers, Budget(disk_bytes=int(needed) + 1))
    with pytest.raises(BudgetExceeded, match=r"the index would take .* --disk allows 0\.0 MB"):
        plan(None, papers, Budget(disk_bytes=1000))
    with pytest.raises(BudgetExceeded, match="would grow by"):
        plan(tmp_path / "x.lm", papers, Budget(disk_bytes=1000))
    assert not (tmp_path / "x.lm").exists()


@pytest.mark.slow
def test_unchanged_documents_take_time_only_to_read(tmp_path: Path, papers: Path) -> None:
    build(tmp_path / "x.lm", read_corpus([str(papers)]), encoder=FakeEncoder())
    made = plan(tmp_path / "x.lm", papers)
    seconds = asdict(made.seconds)
    assert seconds.pop("reading") > 0
    assert set(seconds.values()) == {0.0}
    assert (made.n_unchanged, made.n_tokens) == (30, 0)


@pytest.mark.slow
def test_documents_that_join_a_generation_are_planned_as_such(
    tmp_path: Path, papers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.generation.new_generation.FRESH_CHUNKS", 0)
    build(tmp_path / "x.lm", read_corpus([str(papers)]), encoder=FakeEncoder(), factory="IVF4,Flat", recall_floor=0.5)
    monkeypatch.setattr(
        "indexer.plan.estimate.measure_rates", lambda _: Rates(1.0, 1e12)
    )  # comparisons are all that counts
    monkeypatch.setattr("indexer.plan.rates.EXTENSION_QUERIES", 24)  # fewer than there are documents
    write(papers, "one-more", 200)
    joined, built = (plan(tmp_path / "x.lm", papers, factory=factory) for factory in ("IVF4,Flat", "IVF5,Flat"))
    added = joined.n_chunks
    n_query_chunks = round(24 * joined.n_chunks_after / 31)
    assert joined.seconds.generation == pytest.approx(4 * added + n_query_chunks * joined.n_chunks_after, rel=1e-6)
    assert built.seconds.generation > joined.seconds.generation


def test_a_factory_that_faiss_does_not_know_is_refused(papers: Path) -> None:
    with pytest.raises(IndexMismatch, match="FAISS cannot build factory 'Nonsense'"):
        plan(None, papers, factory="Nonsense")


def test_an_empty_catalog_takes_as_many_bytes_as_a_plan_counts(tmp_path: Path) -> None:
    with Writer(tmp_path / "empty.lm") as writer:
        writer.claim({"name": "made", "fingerprint": "m", "width": 4})
    assert (tmp_path / "empty.lm" / "catalog.sqlite").stat().st_size == EMPTY_CATALOG_BYTES
