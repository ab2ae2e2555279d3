"""`longmatch index`: create or update."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.report.durations import duration
from indexer.cli.corpus import Corpus, echo_left_out, failed_corpus, named_corpus
from indexer.cli.options import FAILED, PARTLY, device_option, index_argument, json_option
from indexer.cli.plan import (
    describe_outcome,
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
    from indexer.building.budget import Budget
    from indexer.building.builder import EncodeNow
    from indexer.building.report import BuildReport
    from indexer.plan.values import Plan
    from indexer.reading.reader import ReadLimits

_WAYS = {  # said before a run
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
    "document now. [default: later; all without PATH; none with --retry-failures in an index of words alone]",
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
@click.option("--dry-run", is_flag=True, help="Print what would be done and its estimated cost; write nothing.")
@encoder_option
@click.option(
    "--language", metavar="NAME", help="Language of the documents, for stems and stop words; detected by default."
)
@factory_option
@memory_option
@vram_option
@disk_option
@read_seconds_option
@read_memory_option
@device_option
@json_option
def index(
    index: Path,
    paths: tuple[str, ...],
    encode: EncodeNow | None,
    prune: bool,
    id_prefix: str,
    replace: bool,
    retry_failures: bool,
    dry_run: bool,
    encoder: str | None,
    language: str | None,
    factory: str,
    memory: int | None,
    vram: int | None,
    disk: int | None,
    read_seconds: float,
    read_memory: int,
    device: str | None,
    as_json: bool,
) -> None:
    """Create or update INDEX from files, folders or patterns ('-' reads JSON lines from stdin).

    Unchanged documents are skipped, changed documents are replaced. To continue a
    run that was interrupted, run the same command again. With --memory, --vram or
    --disk the run is planned first, and refused if the budget is too small.

    The words of all documents are indexed at once. Vectors take most of the time:
    with --encode later a query encodes only its best candidates. Without PATH the
    documents that have no vectors yet are encoded, beginning with those that
    queries needed.

    The doc_id of a file is its path below PATH, or its name if PATH is the file.
    If files of several folders would get the same doc_id, the doc_ids include the
    names of the folders. A file that is already in INDEX keeps its doc_id. A file
    that would get the doc_id of another existing file fails; use --id-prefix or
    --replace.

    Formats: .txt .rst .md .html .pdf .docx .odt .epub .xml (JATS, TEI, patents)
    .tex .json .jsonl, each also with .gz.

    \b
    Example:
        longmatch index papers.lm ./papers notes/*.md
        longmatch index papers.lm ./2022 --id-prefix 2022/
    """
    _check_arguments(index, paths, prune=prune, dry_run=dry_run, retry_failures=retry_failures)
    corpus = failed_corpus(index) if retry_failures else named_corpus(index, paths, id_prefix)
    if retry_failures and not corpus.requests:
        sys.exit(PARTLY if echo_left_out(corpus) else 0)
    from engine.words.languages import check_language
    from indexer.building.budget import Budget
    from indexer.reading.reader import ReadLimits

    if language is not None:
        check_language(language)
    budget, read_limits = Budget(memory, vram, disk), ReadLimits(read_seconds, read_memory)
    way = encode or _default_way(index, corpus)
    settings = _Settings(way, budget, read_limits, encoder, language, factory, device, prune, replace)
    used: str | Encoder | None = settings.encoder
    made: Plan | None = None
    if dry_run or (settings.is_planned and paths and STDIN not in paths):
        used, made = _planned(index, corpus, settings)
    if dry_run:
        assert made is not None
        show_plan(made, as_json)
        return
    report = _built(index, corpus, settings, used, made)
    _print_build(index, report, made, as_json)
    _exit_by(report, n_left_out=echo_left_out(corpus))


@dataclass(frozen=True)
class _Settings:
    """The options of a run."""

    encode: EncodeNow
    budget: Budget
    read_limits: ReadLimits
    encoder: str | None
    language: str | None
    factory: str
    device: str | None
    prune: bool
    replace: bool

    @property
    def is_planned(self) -> bool:
        """Whether the run is compared with a budget before it begins."""
        return self.budget.is_limited and self.encode != "none"


def _default_way(index: Path, corpus: Corpus) -> EncodeNow:
    """Which documents get vectors where nothing else is said; a retry adds none to an index of words alone."""
    from engine.store.presence import stored_meta

    if corpus.requests and "encoder" not in stored_meta(index):
        return "none"
    return "later" if corpus.sources else "all"


def _planned(index: Path, corpus: Corpus, settings: _Settings) -> tuple[Encoder, Plan]:
    """The encoder of a run, and its plan."""
    from indexer.building.builder import encoder_for
    from indexer.plan.estimate import make_plan

    used = encoder_for(index, settings.encoder, settings.device)
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
        return build(
            index,
            corpus.read(reader),
            encoder=encoder,
            device=settings.device,
            factory=settings.factory,
            memory_bytes=budget.memory_bytes,
            vram_bytes=budget.vram_bytes,
            disk_bytes=budget.disk_bytes,
            language=settings.language,
            encode=settings.encode,
            prune=settings.prune,
            replace_files=settings.replace,
            progress=progress,
            log=progress.log,
        )


def _exit_by(report: BuildReport, *, n_left_out: int) -> None:
    """End with the exit status of a run in which documents failed, if any did."""
    if report.failures:
        sys.exit(PARTLY if report.n_seen > len(report.failures) else FAILED)
    if n_left_out:
        sys.exit(PARTLY)


def _check_arguments(index: Path, paths: tuple[str, ...], *, prune: bool, dry_run: bool, retry_failures: bool) -> None:
    """Whether arguments and options go together.

    Raises:
        click.UsageError: PATH is missing or one too much, or there is no index.
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


def _print_build(index: Path, report: BuildReport, plan: Plan | None, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(asdict(report) | ({} if plan is None else {"plan": plan.to_dict()})))
        return
    click.echo(
        f"{report.n_added:,} added, {report.n_replaced:,} replaced, {report.n_unchanged:,} unchanged, "
        f"{report.n_removed:,} removed, {len(report.failures):,} failed; "
        f"{report.n_encoded:,} encoded: {report.n_tokens:,} tokens in {duration(report.seconds)}"
    )
    if report.n_missing:
        click.echo(_missing_line(index, report))
    if report.n_sections_merged or report.n_sections_cut:
        click.echo(
            f"{report.n_sections_merged:,} tiny sections were joined with a neighbour, "
            f"{report.n_sections_cut:,} are parts of long ones"
        )
    if plan is not None:
        click.echo(describe_outcome(plan, report))
    for failure in report.failures[:20]:
        click.echo(f"failed: {failure.source}: {failure.reason}", err=True)
    if len(report.failures) > 20:
        click.echo(f"and {len(report.failures) - 20:,} more: longmatch info INDEX --failures", err=True)


def _missing_line(index: Path, report: BuildReport) -> str:
    """What is left to encode, by the speed of this run where it encoded."""
    left = f"{report.n_missing:,} documents have no vectors yet: about {report.tokens_missing:,} tokens"
    if report.n_tokens and report.encode_seconds:
        left += f", {duration(report.tokens_missing / report.n_tokens * report.encode_seconds)}"
    return f"{left}; queries encode what they need, this encodes all: longmatch index {index}"
