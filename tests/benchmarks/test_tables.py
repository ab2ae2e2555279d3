"""Tables that are drawn from runs: measures with intervals, seeds, adjusted p-values, and the lines below a table."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from benchmarks.isolation import Percentiles
from benchmarks.metrics import PRIMARY
from benchmarks.pairs.scoring import Budget, Course
from benchmarks.runs import Case, Run
from benchmarks.significance import bootstrap_interval
from benchmarks.tables.encoders import ProbeDetails
from benchmarks.tables.findings import findings_table
from benchmarks.tables.orderings import orderings_table
from benchmarks.tables.pairs import PairsDetails, pairs_table
from benchmarks.tables.peers import PeerDetails, peers_table
from benchmarks.tables.pivot import origins, p_cells
from benchmarks.tables.quality import buckets, length_table, overview_table, saw_corpus
from engine.machine import Origin
from tests.benchmarks.made_runs import made_run

N = 8


@pytest.fixture
def runs(origin: Origin) -> list[Run]:
    values = {"evidence": 0.75, "document": 0.5, "bm25": 0.25}
    return [
        made_run(system, [value] * N, origin, task, encoder="" if system == "bm25" else "mean@0f")
        for task in ("rfc", "proposals")
        for system, value in values.items()
    ]


def test_systems_not_significantly_behind_the_best_are_marked(runs: list[Run], origin: Origin) -> None:
    runs[1] = made_run("document", [1.0, 0.0] * (N // 2), origin, "rfc", encoder="mean@0f")
    assert "| document, mean |  | 0.500 | 0.500 = |" in overview_table(runs)


def test_a_system_that_misses_a_task_is_left_out(runs: list[Run]) -> None:
    assert "document" not in overview_table([run for run in runs if run is not runs[1]])
    assert "bm25" not in overview_table([*runs[:2], *runs[3:]])


@pytest.mark.parametrize(
    ("lengths", "n_buckets", "cut"),
    [
        ([50, 10, 40, 20, 30, 60], 3, [[1, 3], [2, 4], [0, 5]]),
        ([7, 7, 7, 7, 9], 4, [[0, 1, 2, 3], [4]]),
        ([3], 4, [[0]]),
    ],
)
def test_buckets_rise_and_keep_equal_lengths_together(
    lengths: list[float], n_buckets: int, cut: list[list[int]]
) -> None:
    assert [places.tolist() for places in buckets(np.array(lengths, np.float64), n_buckets)] == cut


def with_words(run: Run, words: list[float | None]) -> Run:
    facts: list[dict[str, float]] = [{} if n is None else {"target_words": n} for n in words]
    return replace(run, cases=[replace(case, facts=own) for case, own in zip(run.cases, facts, strict=True)])


def test_a_bucket_has_the_mean_of_its_queries_and_an_interval(origin: Origin) -> None:
    run = with_words(made_run("bm25", [1.0, 0.5, 0.25, 0.25], origin), [10, 2000, 30, 1000])
    rows = length_table([run]).splitlines()[2:4]
    spans = " | ".join(f"{n:,} to {n:,} (1)" for n in (10, 30, 1000, 2000))
    assert rows[0] == f"| pets, median length of the relevant targets | words (queries) | {spans} |"
    assert rows[1].startswith("|  | bm25 | 1.000 [1.000, 1.000] | 0.250 [0.250, 0.250] | 0.250 [")
    long = with_words(made_run("bm25", [1.0, 0.25], origin), [5, 5])
    low, high = bootstrap_interval([1.0, 0.25])
    assert f"| bm25 | 0.625 [{low:.3f}, {high:.3f}] |  |  |  |" in length_table([long])


def test_queries_without_a_length_are_left_out_and_counted(origin: Origin) -> None:
    run = with_words(made_run("bm25", [1.0, 0.5], origin), [None, 20])
    assert "targets (left out, all targets absent: 1) | words (queries) | 20 to 20 (1) |" in length_table([run])


@pytest.mark.parametrize(
    ("encoder", "corpus", "expected"),
    [
        ("longmatch-minilm@0", "rfc_200documents", "yes"),
        ("longmatch-minilm@0", "aila_casedocs", "no"),
        ("all-MiniLM-L6-v2@0", "rfc", "no"),
        ("mine@0", "rfc", ""),
        ("", "rfc", ""),
    ],
)
def test_a_row_says_whether_its_encoder_saw_a_corpus(encoder: str, corpus: str, expected: str, origin: Origin) -> None:
    assert saw_corpus(made_run("evidence", [1.0], origin, corpus, encoder=encoder)) == expected


def test_findings_show_the_largest_loss_and_the_encoded_share(origin: Origin) -> None:
    values = {"20 candidates": {PRIMARY: 0.49, "tokens after 10, %": 9.0}, "all": {PRIMARY: 0.5}}
    cases = [Case(id=f"rfc (3), {way}", values=own) for way, own in values.items()]
    run = Run(task="demand", dataset="rfc@0", system="encoded", origin=origin, cases=cases)
    assert "| at most 0.010; 9% to 9% |" in findings_table([run])


def test_findings_count_differing_scores_over_all_ways(origin: Origin) -> None:
    counts = {"k 10": (30, 0), "2 threads": (600, 1)}
    cases = [Case(id=way, values={"hits in common": n, "other scores": other}) for way, (n, other) in counts.items()]
    run = Run(task="stability", dataset="papers", system="way to search", origin=origin, cases=cases)
    assert "between 2 ways to search (k, pages, filters, threads, scan) | 1 of 630 |" in findings_table([run])


def test_findings_compare_longmatch_with_the_best_other_program(origin: Origin) -> None:
    values = {"longmatch": 0.5, "txtai@256": 0.25, "lancedb@256": 0.375}
    runs = [made_run(name, [value] * 3, origin, task="peers") for name, value in values.items()]
    assert "difference in nDCG@10 on pets | +0.125 |" in findings_table(runs)
    assert findings_table(runs[1:]) == ""


OURS = PeerDetails(
    shared="bert@01",
    versions={},
    dtype="bfloat16",
    threads=2,
    depth=100,
    keeps_text=True,
    n_documents=1234,
    tokens_per_document=2000.4,
    load_seconds=1.0,
    documents_per_second=123.4,
    open_seconds=0.1,
    latency=Percentiles(20.0, 30.0, 40.0),
    index_bytes=4 << 20,
    start_mib=100.0,
    build_peak_mib=300.0,
    search_peak_mib=200.0,
)
TXTAI = replace(
    OURS,
    versions={"txtai": "9.0"},
    keeps_text=False,
    documents_per_second=61.7,
    latency=Percentiles(50.0, 60.0, 70.0),
    index_bytes=1 << 20,
    build_peak_mib=450.0,
)


def peer_run(system: str, details: PeerDetails, origin: Origin) -> Run:
    return made_run(system, [1.0, 0.5], origin, task="peers", details=asdict(details))


def test_without_a_run_of_longmatch_on_the_same_machine_there_are_no_ratios(origin: Origin) -> None:
    ours, other = peer_run("longmatch", OURS, origin), peer_run("txtai", TXTAI, origin)
    alone = peers_table([other]).splitlines()[2]
    assert alone.endswith("| 0.750 |  | 2,000 | 61.7 | 50.0 / 60.0 / 70.0 | 1.0 | 450 | 200 |")
    same = replace(origin, commit="f" * 40)
    elsewhere = replace(same, machine=replace(same.machine, cores=64))
    line = peers_table([ours, replace(other, origin=elsewhere)]).splitlines()[3]
    assert line.endswith("| 1.000 | 2,000 | 61.7 | 50.0 / 60.0 / 70.0 | 1.0 | 450 | 200 |")
    assert "| 61.7 (" in peers_table([ours, replace(other, origin=same)]).splitlines()[3]


DETAILS = PairsDetails(
    protocol="aan",
    split_rule="document",
    pairs="0b1c2d3e4f5a",
    n_pairs={"train": 40, "valid": 6, "test": 6},
    n_documents={"train": 1030, "valid": 7, "test": 8},
    n_lost={"train": 0, "valid": 0, "test": 0},
    chosen={},
    budget=None,
    course=None,
    accuracy_threshold=0.5,
    f1_threshold=0.5,
)


SIX = "abcdef"  # documents of six pairs


def pairs_run(
    origin: Origin,
    system: str,
    scores: Sequence[float],
    *,
    seed: int = 0,
    groups: str = "abcdef",
    matches: str = "111000",
) -> Run:
    """Pairs of test; the threshold is 0.5. Nothing was learned."""
    cases = [
        Case(id=str(number), values={"score": score, "match": float(match)}, group=group)
        for number, (score, group, match) in enumerate(zip(scores, groups, matches, strict=True))
    ]
    where = replace(origin, seed=seed)
    return Run(task="pairs", dataset="pets@0a", system=system, details=asdict(DETAILS), origin=where, cases=cases)


def changed(run: Run, **details: Any) -> Run:  # noqa: ANN401
    """The run with other details."""
    return replace(run, details=asdict(replace(run.details_as(PairsDetails), **details)))


def learned(run: Run, budget: Budget | None = None, course: Course | None = None) -> Run:
    """The run as that of a scorer that was trained."""
    return changed(run, budget=budget or Budget(), course=course or Course(1000, 800, 0.9))


WORSE, BETTER, WORST = [0.9, 0.8, 0.1, 0.7, 0.2, 0.1], [0.9, 0.8, 0.7, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.7, 0.8, 0.9]


def rows_of(table: str) -> list[list[str]]:
    lines = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in cells] for cells in lines]
    return [cells for cells in rows if cells[0] not in ("Scorer", "---", "always a match")]


def test_p_values_are_adjusted_for_each_other(origin: Origin) -> None:
    records = [pairs_run(origin, name, scores) for name, scores in (("bm25", BETTER), ("b", WORSE), ("c", WORST))]
    lines = pairs_table(records).splitlines()
    # Two of six pairs differ from b, all six from c: p is 2 / 2^2 and 2 / 2^6, which Holm's correction doubles.
    assert [line.split(" | ")[-1].strip("| ") for line in lines[4:7]] == ["", "0.500", "0.062"]


def test_pairs_of_one_document_are_swapped_and_drawn_together(origin: Origin) -> None:
    records = [pairs_run(origin, name, scores, groups="aaabbb") for name, scores in (("bm25", BETTER), ("c", WORST))]
    # Six pairs of two documents are two groups that can be swapped: p is 2 / 2^2, not 2 / 2^6.
    assert [row[-1] for row in rows_of(pairs_table(records))] == ["", "0.500"]
    half = pairs_run(origin, "b", [0.9, 0.8, 0.7, 0.7, 0.8, 0.9], groups="aaabbb")
    assert rows_of(pairs_table([half]))[0][1] == "0.500 [0.000, 1.000]"


def test_scorers_without_training_are_in_the_table_of_every_budget(origin: Origin) -> None:
    mine = pairs_run(origin, "mine", BETTER)
    records = [
        pairs_run(origin, "bm25", WORSE),
        learned(mine),
        learned(mine, Budget(10, 8), Course(9, 0, 0.5)),
    ]
    table = pairs_table(records)
    assert [row[0] for row in rows_of(table)] == ["mine", "bm25"] * 2
    assert "Budget: 10 steps of 8 pairs." in table
    assert "Budget: 1,000 steps of 32 pairs." in table
    assert "| 9 (0) |" in table
    assert "Budget: none." in pairs_table(records[:1])


def test_seeds_are_one_row_of_means(origin: Origin) -> None:
    records = [learned(pairs_run(origin, "mine", scores, seed=n)) for n, scores in enumerate((BETTER, WORSE))]
    (row,) = rows_of(pairs_table(records))
    assert row[0] == "mine, seeds 0, 1"
    assert row[1].startswith("0.833 ± 0.236 [")
    rival = pairs_run(origin, "bm25", WORST)
    # Over both seeds four pairs are always right, and two half of the time: all six differ from the rival.
    assert rows_of(pairs_table([*records, rival]))[0][-1] == "0.031"


def test_lost_pairs_and_steps_of_pretraining_are_shown(origin: Origin) -> None:
    record = learned(pairs_run(origin, "smith-wp", BETTER), course=Course(500, 400, 0.9, pretraining_steps=500))
    table = pairs_table([changed(record, n_lost={"train": 1200, "valid": 0, "test": 0})])
    assert "train 40 of 1,030 documents (1,200 dropped), valid 6" in table
    assert "| 500 + 500 (400) |" in table


def classified_run(system: str, right: Sequence[bool], origin: Origin, **chosen: str) -> Run:
    """A run of 20 pairs of 20 documents, of which every other one matches, each classified correctly or not."""
    matches = "01" * 10
    scores = [float(is_right == (match == "1")) for is_right, match in zip(right, matches, strict=True)]
    run = pairs_run(origin, system, scores, seed=origin.seed, groups="abcdefghijklmnopqrst", matches=matches)
    return replace(learned(changed(run, chosen=dict(chosen))), dataset="clscisumm_800words@0")


def row_of(table: str, ordering: str) -> list[str]:
    (line,) = [line for line in table.splitlines() if f"| {ordering} |" in line]
    return [cell.strip() for cell in line.strip("|").split("|")]


def probe_run(encoder: str, draws: list[float], origin: Origin, *, c: float = 1.0) -> Run:
    """A run of a probe of one document, with the accuracies of draws of five labels."""
    details = asdict(ProbeDetails(False, 5, 10, 10, 0.5, {"5": {"accuracy": draws, "macro_f1": draws}}))
    given = {"task": "probe", "encoder": f"{encoder}@0", "settings": {"c": c}, "details": details}
    cases = [Case(id="a", values={"accuracy": 1.0})]
    return replace(made_run("document", [], origin, "bbc_news", **given), cases=cases)


def test_seeds_of_a_system_are_tested_as_their_mean(origin: Origin) -> None:
    good, half = [True] * 20, [True] * 10 + [False] * 10
    seeds = [replace(origin, seed=seed) for seed in range(3)]
    runs = [
        *(classified_run("colde", right, of) for right, of in zip((good, good, half), seeds, strict=True)),
        classified_run("han", half, origin),
    ]
    *_, here, n_seeds, p, verdict = row_of(orderings_table(runs), "colde above han")
    assert (here, n_seeds, verdict) == ("0.833, 0.500", "3, 1", "confirmed")
    one_seed = row_of(orderings_table([runs[0], runs[-1]]), "colde above han")
    assert p == one_seed[-2]  # the same pairs differ, all in favour of colde


def test_runs_with_other_settings_are_no_seeds(origin: Origin) -> None:
    good, bad = [True] * 20, [False] * 20
    resized = replace(
        classified_run("colde", bad, origin, size_chunk_tokens="62"), settings={"size_chunk_tokens": "62"}
    )
    runs = [resized, classified_run("colde", good, origin), classified_run("han", bad, origin)]
    assert row_of(orderings_table(runs), "colde above han")[4:6] == ["1.000, 0.000", "1, 1"]


def test_seeds_of_a_probe_may_have_other_regularisation(origin: Origin) -> None:
    seeds = [
        probe_run(f"docsplit{suffix}", [accuracy] * 10, origin, c=c)
        for suffix, accuracy, c in (("", 0.9, 1.0), ("-seed1", 0.8, 10.0), ("-seed2", 0.7, 0.1))
    ]
    table = orderings_table([*seeds, probe_run("ct", [0.6] * 10, origin)])
    assert "| probe, few labels | 0.869, 0.596 | 0.800, 0.600 | 3, 1 | 0.004 | confirmed |" in table


def measured(origin: Origin) -> Run:
    return made_run("bm25", [], origin)


def test_the_lines_below_a_table_name_each_command_and_each_origin_once(origin: Origin) -> None:
    other = replace(origin, command="python -m benchmarks study encode x", is_dirty=True)
    assert origins([measured(origin), measured(other), measured(origin)]) == [
        "Run again:",
        "",
        "- `python -m benchmarks run retrieval pets`",
        "- `python -m benchmarks study encode x`",
        "",
        "Measured: commits 0123456789, 0123456789 with changes on A Processor, 2 cores, 24 GiB.",
    ]
    assert origins([]) == []


def test_commands_that_differ_in_encoders_are_one_where_the_program_takes_several(origin: Origin) -> None:
    ranked, explained = "python -m benchmarks run architectures rfc", "python -m benchmarks run facets csfcube"
    run = [
        *(f"{ranked} --encoder a --encoder b", f"{ranked} --systems words", f"{ranked} --encoder c --encoder a"),
        *(f"{explained} --encoder a", f"{explained} --encoder b"),
    ]
    assert origins([measured(replace(origin, command=command)) for command in run])[2:-2] == [
        f"- `{ranked} --encoder a --encoder b --encoder c`",
        f"- `{ranked} --systems words`",
        f"- `{explained} --encoder a`",
        f"- `{explained} --encoder b`",
    ]


def test_a_command_whose_program_is_gone_is_repeated_at_its_commit(origin: Origin) -> None:
    gone = "python -m benchmarks study on_demand rfc"
    assert origins([measured(replace(origin, command=gone))])[:3] == [
        "Run again at a commit below, which has the program:",
        "",
        f"- `{gone}`",
    ]


def test_missing_p_values_do_not_count_in_the_adjustment() -> None:
    assert p_cells([0.01, None, 0.02, 0.0001]) == ["0.020", "", "0.020", "< 0.001"]
