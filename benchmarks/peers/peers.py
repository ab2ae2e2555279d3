"""Measures other programs beside ours in one run: the same documents, weights, threads and queries; writes a record.

The record is kept peer by peer: what fails costs no other, and the same command goes on.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path

import click
import numpy as np

from benchmarks.datasets import Dataset, Qrels, checksum, open_dataset, read_documents, read_qrels
from benchmarks.measuring.isolation import warm_up
from benchmarks.metrics import evaluate, means, rounded_per_query
from benchmarks.options import data_option, log, names_of, out_option, read_numbers
from benchmarks.peers.peer import PeerConfig
from benchmarks.peers.registry import PEERS, check_packages, versions
from benchmarks.peers.shared_weights import DTYPES, SAME_DTYPE, peer_config, token_label
from benchmarks.peers.stages import Built, Searched, build_in_process, search_in_process
from benchmarks.peers.table import PeerRun, PeersRecord, peers_table
from benchmarks.program import origin_of, program
from benchmarks.quick import Size, quick_part
from benchmarks.record_file import RESULTS, RecordError, record_path, refuse_smaller
from benchmarks.records import read_records
from benchmarks.resuming import complete, earlier, failure_text, keep, measure_parts
from engine.encoders.backbone.tokenizer import Tokenizer
from engine.encoders.backbone.weights import MINILM_NAME

QUICK = Size(n_queries=6, n_targets=3, n_documents=30, n_words=400)
_PART_TARGETS = 5  # relevant ones of a query that stand in a part of whole documents
_DEFAULT_WINDOW = str(PeerConfig.window_tokens)


def variants(names: Sequence[str], config: PeerConfig, windows: Sequence[int]) -> dict[str, PeerConfig]:
    """What is measured, by name: a peer that reads chunks once for each length of them, as NAME@LENGTH."""
    found: dict[str, PeerConfig] = {}
    for name in names:
        if PEERS[name].has_chunks:
            found |= {f"{name}@{tokens}": replace(config, window_tokens=tokens) for tokens in windows}
        else:
            found[name] = config
    return found


def measure(
    begun: PeersRecord,
    asked: Mapping[str, PeerConfig],
    dataset: Dataset,
    qrels: Qrels,
    work: Path,
    out: Path | None,
    recorded: Mapping[str, PeerRun] | None = None,
) -> PeersRecord:
    """Build and search with one peer after the other; nothing else of the run goes on meanwhile.

    Args:
        begun: the record without a peer.
        asked: as of `variants`.
        dataset: whose corpus is searched.
        qrels: of the queries that are asked.
        work: folder of what peers keep.
        out: folder of records; None to keep nothing.
        recorded: peers that stay as they were measured before.

    Raises:
        RecordError: the record of this name holds more.
    """
    recorded = recorded or {}
    names = list(dict.fromkeys([*asked, *recorded]))
    if out:
        refuse_smaller(begun, {**begun.extent, "peers": len(names)}, out)
    warm_up()
    n_tokens = _token_counts(dataset, next(iter(asked.values())))

    def one(name: str) -> PeerRun:
        peer, config = name.partition("@")[0], asked[name]
        log(f"{dataset.name}: {name} builds")
        built = build_in_process(peer, config, dataset, work / name)
        log(f"{dataset.name}: {name} built from {built.n_documents:,} documents in {built.seconds:.1f} s, searches")
        searched = search_in_process(peer, config, dataset, list(qrels), begun.k, work / name)
        return _judged(name, built, searched, qrels, n_tokens)

    def on_part(runs: Mapping[str, PeerRun], failed: Mapping[str, str]) -> None:
        if out:
            keep(replace(begun, peers=list(runs.values()), failed=dict(failed)), out)

    kept = {**recorded, **(_kept(begun, asked, out) if out else {})}
    runs, failed = measure_parts(names, kept, one, on_part)
    return replace(begun, peers=list(runs.values()), failed=failed)


def recorded_peers(begun: PeersRecord, renewed: Collection[str], out: Path) -> dict[str, PeerRun]:
    """The peers of the record of this name but those that are measured again.

    Each keeps the commit at which it was measured.

    Raises:
        RecordError: there is no such record, or it is of other documents, queries or weights.
    """
    path = record_path(begun, out)
    found = next((one for one in read_records(out) if isinstance(one, PeersRecord) and one.name == begun.name), None)
    if found is None:
        raise RecordError(f"there is no {path} to renew; run the same command without --renew")
    for field in ("dataset", "query_ids", "encoder", "k"):
        if getattr(found, field) != getattr(begun, field):
            raise RecordError(
                f"{path} is of another {field}, so its peers cannot be kept; run the command without --renew"
            )
    return {
        run.peer: replace(run, commit=run.commit or found.origin.commit)
        for run in found.peers
        if run.peer.partition("@")[0] not in renewed
    }


def _token_counts(dataset: Dataset, config: PeerConfig) -> np.ndarray:
    """(N,) tokens of each document, special ones left out."""
    tokenizer = Tokenizer(config.backbone)
    return np.array([len(tokenizer.tokenize([document.text])[0][0]) for document in read_documents(dataset)])


def _kept(begun: PeersRecord, asked: Mapping[str, PeerConfig], out: Path) -> dict[str, PeerRun]:
    """What an earlier run measured of peers that are here in the same versions, with the same weights."""
    before = earlier(begun, out, ["peers"])
    if before is None:
        return {}
    commit = before.origin.commit if before.origin.commit != begun.origin.commit else ""
    kept = {
        run.peer: replace(run, commit=run.commit or commit)
        for run in before.peers
        if run.peer in asked
        and run.encoder in (begun.encoder, token_label(asked[run.peer]))
        and run.versions == versions(run.peer.partition("@")[0])
    }
    log(f"{begun.task}: {', '.join(kept) or 'nothing'} kept from a run before")
    return kept


def _judged(name: str, built: Built, searched: Searched, qrels: Qrels, n_tokens: np.ndarray) -> PeerRun:
    rankings = {query_id: [doc_id for doc_id, _ in ranking] for query_id, ranking in searched.rankings.items()}
    values = evaluate(qrels, rankings)
    read = n_tokens if built.reads is None else np.minimum(n_tokens, built.reads)
    return PeerRun(
        peer=name,
        versions=versions(name.partition("@")[0]),
        encoder=built.encoder,
        settings=built.settings,
        keeps_text=built.keeps_text,
        metrics={metric: round(mean, 4) for metric, mean in means(values).items()},
        per_query=rounded_per_query(values),
        n_documents=built.n_documents,
        tokens_per_document=round(float(read.mean()), 1),
        load_seconds=built.load_seconds,
        build_seconds=built.seconds,
        documents_per_second=round(built.n_documents / built.seconds, 2),
        open_seconds=searched.open_seconds,
        latency=searched.latency,
        index_bytes=built.size_bytes,
        start_mib=built.start_mib,
        build_peak_mib=built.peak_mib,
        search_peak_mib=searched.peak_mib,
    )


def _part(dataset: Dataset, split: str, folder: Path, n_documents: int, seed: int) -> Dataset:
    size = Size(n_queries=n_documents // 10, n_targets=_PART_TARGETS, n_documents=n_documents, n_words=None)
    return quick_part(dataset, split, folder, seed=seed, size=size, suffix=f"_{n_documents}documents")


@contextmanager
def _folder(work: Path | None) -> Iterator[Path]:
    """A new folder for this run: inside `work`, where it stays, or a temporary one."""
    if work is None:
        with tempfile.TemporaryDirectory(prefix="longmatch-peers-") as folder:
            yield Path(folder)
    else:
        work.mkdir(parents=True, exist_ok=True)
        yield Path(tempfile.mkdtemp(prefix="peers-", dir=work))


@program
@click.argument("name", metavar="DATASET")
@click.option(
    "--peers", default=",".join(PEERS), show_default=True, callback=names_of(PEERS), help="Separated by commas."
)
@click.option(
    "--renew",
    is_flag=True,
    help="Keep the other peers of the record as they are; --peers are measured again, or added.",
)
@click.option("--encoder", default=MINILM_NAME, show_default=True, help="Whose weights all share.")
@click.option(
    "--late-interaction",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of a trained model for the peer of that name.",
)
@click.option(
    "--window-tokens",
    "windows",
    default=_DEFAULT_WINDOW,
    show_default=True,
    callback=read_numbers,
    help="Of the chunks that peers read, one or several lengths; choose among them with --split valid.",
)
@click.option(
    "--dtype",
    default=SAME_DTYPE,
    show_default=True,
    type=click.Choice(DTYPES),
    help="Precision of the weights; same: what ours takes on this machine.",
)
@click.option("--threads", default=os.cpu_count() or 1, show_default="all cores", type=click.IntRange(1))
@click.option("--split", default="test", show_default=True, help="Whose queries are asked.")
@click.option("-k", "--top", "k", default=100, show_default=True, type=click.IntRange(100), help="Depth of rankings.")
@click.option(
    "--documents",
    "n_documents",
    type=click.IntRange(20),
    help="Of a seeded part, whole, with a tenth as many queries; for corpora that would take hours.",
)
@click.option("--limit", type=click.IntRange(1), help="Ask the first N queries only; no record without --out.")
@click.option("--quick", is_flag=True, help="A few dozen shortened documents; no record without --out.")
@click.option("--seed", default=0, show_default=True, help="Of the part, of tests and intervals.")
@data_option
@click.option("--work", type=click.Path(path_type=Path), help="Folder that keeps what peers build; else it is removed.")
@out_option
@click.pass_context
def main(
    context: click.Context,
    name: str,
    peers: tuple[str, ...],
    renew: bool,
    encoder: str,
    late_interaction: Path | None,
    windows: tuple[int, ...],
    dtype: str,
    threads: int,
    split: str,
    k: int,
    n_documents: int | None,
    limit: int | None,
    quick: bool,
    seed: int,
    data: Path,
    work: Path | None,
    out: Path | None,
) -> None:
    """Measure other programs on DATASET, a task by name or a folder, and write a record of all of them.

    What fails stands in the record with its reason; the same command measures it alone again.

    \b
    Example:
        python -m benchmarks study peers proposals --quick
        python -m benchmarks study peers proposals --split valid --peers st-chunks --window-tokens 128,256
        python -m benchmarks study peers rfc --documents 400 --peers longmatch,st-chunks,txtai --threads 2
    """
    if n_documents and (quick or limit):
        raise click.UsageError("--documents goes with neither --quick nor --limit; take one of them")
    is_whole = not quick and limit is None
    out = out or (RESULTS if is_whole else None)
    check_packages(peers)
    config = peer_config(encoder, dtype=dtype, threads=threads, late_interaction=late_interaction)
    dataset = open_dataset(name, data)
    with _folder(work) as folder:
        if quick:
            dataset = quick_part(dataset, split, folder, seed=seed, size=QUICK)
        elif n_documents:
            dataset = _part(dataset, split, folder, n_documents, seed)
        qrels = dict(islice(read_qrels(dataset, split).items(), limit))
        begun = PeersRecord(
            task=dataset.name,
            dataset=f"{dataset.name}@{checksum(dataset)}",
            split=split,
            is_quick=quick,
            limit=limit or 0,
            k=k,
            n_queries=len(qrels),
            encoder=config.label,
            dtype=config.dtype,
            threads=threads,
            query_ids=list(qrels),
            peers=[],
            origin=origin_of(context, seed),
        )
        recorded = recorded_peers(begun, peers, out) if renew and out else {}
        record = measure(begun, variants(peers, config, windows), dataset, qrels, folder, out, recorded)
    if out and record.peers:
        complete(record, out)
    click.echo(peers_table([record]))
    if record.failed:
        raise click.ClickException(failure_text(record.failed, len(record.failed) + len(record.peers)))
