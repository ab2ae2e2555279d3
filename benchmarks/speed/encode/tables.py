"""Tables that compare ways to encode the same chunks, and compare them with the machine's limit; from records alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.markdown import markdown, origins
from benchmarks.speed.encode.ways import BFLOAT16, DEFAULTS, ENCODER_ALONE, END_TO_END, OUR_SETTINGS
from benchmarks.speed.records import ThroughputRecord, WayRun

_TITLES = {
    END_TO_END: "longmatch, documents to index",
    ENCODER_ALONE: "longmatch, encoder alone",
    DEFAULTS: "sentence-transformers, defaults",
    OUR_SETTINGS: "sentence-transformers, our settings of torch",
    BFLOAT16: "sentence-transformers, bfloat16 weights",
}
_WITH_GENERATION = "longmatch, documents to index with its FAISS index"
_NOTE = (
    "All ways encode the same chunks with the same weights and threads, each in a fresh process, in turn within each "
    "round; loading and a first pass over a few chunks are not counted. Documents to index: reading, segmenting, "
    "tokenizing, encoding, storing. Encoder alone: documents read, segmented and tokenized beforehand. Defaults: "
    "`encode` with float32 weights in batches of 32 sorted by length, torch and its idle threads as they come; our "
    "settings: torch multiplies float32 by oneDNN where that rounds nothing, and idle threads sleep. Ratio: how many "
    "times as fast as the defaults in the same round, median [lowest, highest]. Cores: processor time by time. Memory: "
    "the most resident, libraries and weights included."
)
_LIMIT_NOTE = (
    "Operations: layers (8 L H^2 + 4 L H I + 4 L^2 H) for each chunk of L tokens, special ones counted, padding not, "
    "for width H and inner width I. Limit: the quickest product in the precision of the weights, of the encoder's own "
    "shapes and of two square matrices, in the same round. Share of it: median [lowest, highest] over rounds. GELU "
    "that is applied as products are written counts among the linear layers."
)


@dataclass(frozen=True)
class Spread:
    """Median and range of a quantity over rounds."""

    middle: float  # median
    lowest: float
    highest: float


def _spread(values: Sequence[float]) -> Spread:
    return Spread(median(values), min(values), max(values))


def ratios(record: ThroughputRecord, seconds: Sequence[float]) -> Spread:
    """How many times as fast as sentence-transformers' defaults are the seconds of each round."""
    rival = record.ways[DEFAULTS].passes
    return _spread([other.seconds / own for other, own in zip(rival, seconds, strict=True)])


def limit_shares(record: ThroughputRecord, run: WayRun) -> Spread:
    """Share of the quickest product that a way reached, round by round, in [0, 1] except for noise."""
    return _spread(
        [record.gflop / one.seconds / limit for one, limit in zip(run.passes, limits(record, run.dtype), strict=True)]
    )


def limits(record: ThroughputRecord, dtype: str) -> list[float]:
    """GFLOP/s of the quickest product in a precision, by round."""
    return [
        max(gflops for name, gflops in products.items() if name.startswith(f"{dtype} ")) for products in record.products
    ]


def overheads(record: ThroughputRecord) -> dict[str, Spread]:
    """Share of indexing that is not encoding, in three ways, round by round.

    "waited" is the share of the time in which the encoder was not at work; "time" and "processor
    time" compare indexing with the encoder alone, so that reading beside a busy encoder is
    not hidden. Noise can make both of these negative.
    """
    whole, alone = record.ways[END_TO_END].passes, record.ways[ENCODER_ALONE].passes
    pairs = list(zip(whole, alone, record.indexing, strict=True))
    return {
        "waited": _spread([1 - parts.encode_seconds / one.seconds for one, _, parts in pairs]),
        "time": _spread([1 - other.seconds / one.seconds for one, other, _ in pairs]),
        "processor time": _spread([1 - other.cpu_seconds / one.cpu_seconds for one, other, _ in pairs]),
    }


def throughput_table(records: Sequence[ThroughputRecord]) -> str:
    """A row a way, and one for documents to index with the FAISS index."""
    head = ["Task (documents, chunks)", "Way", "Weights", "Documents/s", "Chunks/s", "Tokens/s", "Ratio", "Cores"]
    rows = [row for record in records for row in _rows(record)]
    conditions = [_conditions(record) for record in records]
    return "\n".join([*markdown([*head, "Memory, MiB"], rows), "", _NOTE, "", *conditions, "", *origins(records)])


def _rows(record: ThroughputRecord) -> list[list[str]]:
    rows = []
    for name, run in record.ways.items():
        seconds = [one.seconds for one in run.passes]
        cores = f"{median([one.cpu_seconds / one.seconds for one in run.passes]):.2f}"
        memory = f"{max(one.peak_mib for one in run.passes):,.0f}"
        rows.append(_row(record, _TITLES[name], run.dtype, seconds, cores, memory))
        if name == END_TO_END:
            more = [one + parts.generation_seconds for one, parts in zip(seconds, record.indexing, strict=True)]
            rows.append(_row(record, _WITH_GENERATION, run.dtype, more, "", memory))
    return rows


def _row(
    record: ThroughputRecord, title: str, dtype: str, seconds: Sequence[float], cores: str, memory: str
) -> list[str]:
    middle = median(seconds)
    ratio = ratios(record, seconds)
    return [
        f"{record.task} ({record.n_documents:,}, {record.n_chunks:,})",
        title,
        dtype,
        f"{record.n_documents / middle:,.2f}",
        f"{record.n_chunks / middle:,.1f}",
        f"{record.n_tokens / middle:,.0f}",
        f"{ratio.middle:.2f} [{ratio.lowest:.2f}, {ratio.highest:.2f}]",
        cores,
        memory,
    ]


def _conditions(record: ThroughputRecord) -> str:
    device = f"{record.device}, " if record.device != "cpu" else ""
    quick = "; a quick run: it shows that all works, not how fast it is" if record.is_quick else ""
    return (
        f"- {record.task}: {record.encoder}, {device}{record.threads} threads, {record.n_rounds} rounds, "
        f"{record.n_tokens:,} tokens{quick}."
    )


def limit_table(records: Sequence[ThroughputRecord]) -> str:
    """A row a way: operations a second and the limit; then the time of our encoder by operators, and its fidelity."""
    head = ["Task", "Way", "Weights", "MFLOP a token", "GFLOP/s", "Limit, GFLOP/s", "Share of the limit"]
    rows = [
        [
            record.task,
            _TITLES[name],
            run.dtype,
            f"{1000 * record.gflop / record.n_tokens:.2f}",
            f"{record.gflop / median([one.seconds for one in run.passes]):,.0f}",
            f"{median(limits(record, run.dtype)):,.0f}",
            _percent(limit_shares(record, run)),
        ]
        for record in records
        for name, run in record.ways.items()
    ]
    lines = [line for record in records for line in _account(record)]
    return "\n".join([*markdown(head, rows), "", _LIMIT_NOTE, "", *lines, "", *origins(records)])


def _account(record: ThroughputRecord) -> list[str]:
    outside, fidelity = overheads(record), record.fidelity
    operators = []
    if total := sum(record.operator_seconds.values()):
        groups = sorted(record.operator_seconds.items(), key=lambda item: -item[1])
        shares = ", ".join(f"{group} {100 * own / total:.1f} %" for group, own in groups if own)
        title = "time of our encoder by operators (torch.profiler, one thread, a pass of its own)"
        operators.append(f"- {record.task}, {title}: {shares}.")
    return [
        *operators,
        f"- {record.task}, indexing outside of the encoder: {_percent(outside['waited'])} of the time, while the "
        f"encoder was not at work; beyond what the encoder alone takes, {_percent(outside['time'])} of the time and "
        f"{_percent(outside['processor time'])} of the processor time.",
        f"- {record.task}, cosine of {fidelity.n_chunks:,} stored chunk vectors to the model in float32: mean "
        f"{fidelity.mean:.5f}, lowest {fidelity.lowest:.5f}; of {fidelity.rival_chunks:,} of sentence-transformers' "
        f"from the chunks' texts: mean {fidelity.rival_mean:.5f}, lowest {fidelity.rival_lowest:.5f}.",
    ]


def _percent(share: Spread) -> str:
    return f"{100 * share.middle:.1f} % [{100 * share.lowest:.1f}, {100 * share.highest:.1f}]"
