"""`longmatch index`: create or update an index."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from indexer.cli.build_report import print_build
from indexer.cli.cluster import check_ray_options, ray_option, workers_option
from indexer.cli.corpus import Corpus, echo_left_out, failed_corpus, named_corpus
from indexer.cli.options import FAILED, PARTLY, device_option, index_argument, json_option
from indexer.cli.plan import (
    describe_plan,
    disk_option,
    encoder_option,
    factory_option,
    memory_option,
    show_plan,
    vram_option,
)
from indexer.cli.reading import STDIN, document_reader, read_memory_option, read_seconds_option

if TYPE_CHECKING:
    from engine.encoders.encoder import Encoder
    from engine.readers import Unreadable
    from engine.text.document import Document
    from indexer.building.budget import Budget
    from indexer.building.builder import EncodeNow
    from indexer.building.report import BuildReport
    from indexer.plan.values import Plan
    from indexer.reading.reader import ReadLimits

_WAYS = {  # logged before a run
    "none": "words alone: no vectors, no model (--encode later adds vectors as queries need them)",
    "later": "words now, vectors of a sample now and others as queries need them (--encode all: all vectors now)",
    "all": "words and vectors of all documents (--encode later: first answers much sooner)",
}


@click.command()
@index_argument
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--encode",
    type=click.Choice(["none", "later", "all"]),
    help="Which documents get vectors: none; later: a sample now, others when queries need them; all: every "
    "document now. [default: later; all without PATH; none for PATHs of an index of words alone]",
)
@click.option("--prune", is_flag=True, help="Remove documents whose files are no longer under PATH.")
@click.option(
    "--id-prefix", default="", metavar="TEXT", help="Put TEXT in front of each new doc_id, for example 2022/."
)
@click.option(
    "--replace",
    is_flag=True,
    help="Let a file replace another file with the same doc_id; by default the new file fails.",
)
@click.option(
    "--retry-failures", is_flag=True, help="Read only the documents that failed in earlier runs; takes no PATH."
)
@click.option(
    "--reencode",
    is_flag=True,
    help="Encode the stored texts again with --encoder, or with the encoder of INDEX whose files have changed; "
    "searches use the old vectors until all new ones are there. Takes no PATH.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be done and its estimated cost; write nothing.")
@encoder_option
@click.option(
    "--language", metavar="NAME", help="Language of the documents, for stems and stop words; detected by default."
)
@click.option(
    "-p",
    "--partitions",
    type=click.IntRange(1),
    metavar="N",
    help="Spread the documents of a new INDEX over N partitions; see longmatch upkeep partition.",
)
@factory_option
@memory_option
@vram_option
@disk_option
@read_seconds_option
@read_memory_option
@device_option
@ray_option("Encode on")
@workers_option
@json_option
def index(
    index: Path,
    paths: tuple[str, ...],
    encode: EncodeNow | None,
    prune: bool,
    id_prefix: str,
    replace: bool,
    retry_failures: bool,
    reencode: bool,
    dry_run: bool,
    encoder: str | None,
    language: str | None,
    partitions: int | None,
    factory: str,
    memory: int | None,
    vram: int | None,
    disk: int | None,
    read_seconds: float,
    read_memory: int,
    device: str | None,
    ray_address: str | None,
    n_workers: int | None,
    as_json: bool,
) -> None:
    """Create or update INDEX from files, folders or patterns ('-' reads JSON lines from stdin).

    Unchanged documents are skipped, changed documents are replaced. To continue a
    run that was interrupted, run the same command again. With --memory, --vram or
    --disk the run is planned first, and refused if the budget is too small.

    The words of all documents are indexed at once. Vectors take most of the time:
    with --encode later a query encodes only its best candidates. Without PATH the
    documents that have no vectors yet are encoded, beginning with those that
    queries needed. Of a changed document only the changed chunks are encoded.

    The doc_id of a file is its path below PATH, or its name if PATH is the file.
    If files of several folders would get the same doc_id, the doc_ids include the
    names of the folders. A file that is already in INDEX keeps its doc_id. A file
    that would get the doc_id of another existing file fails; use --id-prefix or
    --replace.

    With --ray the documents are encoded by a Ray cluster, and each partition of
    INDEX has a writer process on this machine; vectors of all documents are made.

    Formats: .txt .rst .md .html .pdf .docx .odt .epub .xml (JATS, TEI, patents)
    .tex .json .jsonl, each also with .gz.

    \b
    Example:
        longmatch index papers.lm ./papers notes/*.md
        longmatch index papers.lm ./2022 --id-prefix 2022/
        longmatch index papers.parts ./papers --partitions 4
        longmatch index papers.lm --reencode --encoder ./my-encoder
    """
    if reencode:
        others = (prune, replace, retry_failures, encode, partitions, ray_address, n_workers)
        _check_reencode(index, paths, is_alone=not any(others))
        _print_reencoded(index, encoder, device, dry_run=dry_run, as_json=as_json)
        return
    _check_arguments(index, paths, prune=prune, dry_run=dry_run, retry_failures=retry_failures)
    is_other = encode not in (None, "all")
    check_ray_options(ray_address, n_workers, encode=is_other, dry_run=dry_run, memory=memory, vram=vram, disk=disk)
    corpus = failed_corpus(index) if retry_failures else named_corpus(index, paths, id_prefix)
    if retry_failures and not corpus.requests:
        sys.exit(PARTLY if echo_left_out(corpus) else 0)
    from engine.words.languages import check_language
    from indexer.building.budget import Budget
    from indexer.reading.reader import ReadLimits

    if language is not None:
        check_language(language)
    budget, read_limits = Budget(memory, vram, disk), ReadLimits(read_seconds, read_memory)
    way = encode or ("all" if ray_address else _default_way(index, corpus, encoder))
    where = _Where(device, ray_address, n_workers)
    settings = _Settings(way, budget, read_limits, encoder, language, factory, where, prune, replace, partitions)
    used: str | Encoder | None = settings.encoder
    made: Plan | None = None
    if dry_run or (settings.is_planned and paths and STDIN not in paths):
        used, made = _planned(index, corpus, settings)
    if dry_run:
        assert made is not None
        show_plan(made, as_json)
        return
    report = _built(index, corpus, settings, used, made)
    print_build(index, report, made, corpus.unsupported_files, as_json=as_json)
    _exit_by(report, n_left_out=echo_left_out(corpus))


@dataclass(frozen=True)
class _Where:
    """Where documents are encoded."""

    device: str | None
    ray_address: str | None
    n_workers: int | None


@dataclass(frozen=True)
class _Settings:
    """The options of a run."""

    encode: EncodeNow
    budget: Budget
    read_limits: ReadLimits
    encoder: str | None
    language: str | None
    factory: str
    where: _Where
    prune: bool
    replace: bool
    partitions: int | None

    @property
    def is_planned(self) -> bool:
        """Whether the run is compared with a budget before it begins."""
        return self.budget.is_limited and self.encode != "none"


def _default_way(index: Path, corpus: Corpus, encoder: str | None) -> EncodeNow:
    """The default of --encode; an index of words alone stays one when documents are added."""
    from engine.store.presence import stored_meta

    if not corpus.sources:
        return "all"
    stored = stored_meta(index)
    is_of_words = "encoder" not in stored and bool(stored or corpus.requests)
    return "none" if is_of_words and encoder is None else "later"


def _planned(index: Path, corpus: Corpus, settings: _Settings) -> tuple[Encoder, Plan]:
    """The encoder of a run, and its plan."""
    from indexer.building.builder import encoder_for
    from indexer.plan.estimate import make_plan

    used = encoder_for(index, settings.encoder, settings.where.device)
    made = make_plan(
        index,
        corpus.paths,
        used,
        factory=settings.factory,
        budget=settings.budget,
        read_limits=settings.read_limits,
        id_prefix=corpus.ids.prefix if corpus.ids else "",
    )
    return used, made


def _built(
    index: Path, corpus: Corpus, settings: _Settings, encoder: Encoder | str | None, plan: Plan | None
) -> BuildReport:
    """Read the corpus and write the index, with progress."""
    from indexer.building.builder import build
    from indexer.cli.progress import BuildProgress

    limits, budget = settings.read_limits, settings.budget
    with (
        document_reader(corpus.sources, limits.seconds, limits.memory_bytes) as reader,
        BuildProgress(corpus.n_files, plan=plan) as progress,
    ):
        progress.log(_WAYS[settings.encode])
        if plan is not None:
            progress.log(describe_plan(plan))
        common: dict[str, Any] = {
            "device": settings.where.device,
            "factory": settings.factory,
            "language": settings.language,
            "partitions": settings.partitions,
            "prune": settings.prune,
            "replace_files": settings.replace,
            "progress": progress,
            "log": progress.log,
        }
        with _named_cost(index, encoder, settings):
            if settings.where.ray_address is not None:
                return _built_on_cluster(index, corpus.read(reader), settings, common)
            return build(
                index,
                corpus.read(reader),
                encoder=encoder,
                memory_bytes=budget.memory_bytes,
                vram_bytes=budget.vram_bytes,
                disk_bytes=budget.disk_bytes,
                encode=settings.encode,
                **common,
            )


@contextmanager
def _named_cost(index: Path, encoder: Encoder | str | None, settings: _Settings) -> Iterator[None]:
    """If the index has another encoder, add the cost of encoding the index again to the error."""
    from engine.errors import IndexMismatch
    from engine.store.manifest import is_partitioned
    from engine.store.presence import stored_meta

    try:
        yield
    except IndexMismatch as error:
        is_single = not is_partitioned(index)
        bound = stored_meta(index).get("encoder") if is_single and settings.encode != "none" else None
        if bound is None:
            raise
        from indexer.building.builder import encoder_for
        from indexer.building.reencoding import reencoding_cost

        used = (
            encoder_for(index, encoder, settings.where.device)
            if encoder is None or isinstance(encoder, str)
            else encoder
        )
        if used.fingerprint == bound["fingerprint"]:
            raise
        raise IndexMismatch(f"{error}; {reencoding_cost(index, used)}") from error


def _built_on_cluster(
    index: Path, documents: Iterator[Document | Unreadable], settings: _Settings, common: dict[str, Any]
) -> BuildReport:
    """Write the index with the encoders of a Ray cluster."""
    from indexer.cluster.session import connected

    address, n_workers = settings.where.ray_address, settings.where.n_workers
    assert address is not None
    with connected(address, n_workers) as cluster:
        from indexer.cluster.job import build_on_cluster  # imports Ray, which was set up by `connected`

        return build_on_cluster(index, documents, cluster, n_workers=n_workers, encoder=settings.encoder, **common)


def _exit_by(report: BuildReport, *, n_left_out: int) -> None:
    """Exit with the status of a run in which documents failed or were left out, if there are any."""
    if report.failures:
        sys.exit(PARTLY if report.n_seen > len(report.failures) else FAILED)
    if n_left_out:
        sys.exit(PARTLY)


def _check_arguments(index: Path, paths: tuple[str, ...], *, prune: bool, dry_run: bool, retry_failures: bool) -> None:
    """Check that arguments and options go together.

    Raises:
        click.UsageError: PATH or an option is missing or not allowed, or there is no index.
    """
    given = [name for name, is_given in (("--prune", prune), ("--dry-run", dry_run)) if is_given]
    if retry_failures and (paths or given):
        raise click.UsageError(f"--retry-failures reads what failed before; leave out {' '.join([*paths, *given])}")
    if given and not paths:
        raise click.UsageError(f"{given[0]} needs PATH...: the corpus as it is now")
    if paths:
        return
    from engine.store.manifest import holds_index

    if not holds_index(index):
        raise click.UsageError(f"{index} holds no index; name what to index: longmatch index {index} PATH...")


def _check_reencode(index: Path, paths: tuple[str, ...], *, is_alone: bool) -> None:
    """Check that arguments go with --reencode.

    Raises:
        click.UsageError: PATH or another option is not allowed, or there is no index.
    """
    if paths or not is_alone:
        raise click.UsageError("--reencode reads the stored texts; leave out PATH and the options of other runs")
    _check_arguments(index, paths, prune=False, dry_run=False, retry_failures=False)


def _print_reencoded(index: Path, encoder: str | None, device: str | None, *, dry_run: bool, as_json: bool) -> None:
    """Encode an index again, with progress, or print the cost of doing so."""
    from indexer.building.builder import encoder_for
    from indexer.building.reencoding import reencode, reencoding_cost
    from indexer.cli.progress import BuildProgress

    used = encoder_for(index, encoder, device)
    if dry_run:
        cost = reencoding_cost(index, used)
        click.echo(json.dumps(asdict(cost)) if as_json else str(cost))
        return
    with BuildProgress(0) as progress:
        report = reencode(index, encoder=used, progress=progress, log=progress.log)
    print_build(index, report, None, {}, as_json=as_json)
    _exit_by(report, n_left_out=0)
