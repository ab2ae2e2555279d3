"""The `longmatch` command: open, call one function, print. INDEX, the folder, always comes first."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.errors import EngineError, QueryError
from indexer.budget import parse_bytes

if TYPE_CHECKING:
    from engine import Document, Index
    from engine.readers import Unreadable
    from indexer.pipeline import BuildReport

DONE, FAILED, PARTLY = 0, 1, 3  # click itself exits with 2 on wrong usage


class _Commands(click.Group):
    """Turns the errors raised on purpose into one line and exit status 1."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401
        try:
            return super().invoke(ctx)
        except EngineError as error:
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt:
            told = "interrupted; what was committed is safe, run the same command to go on"
            raise click.ClickException(told) from None


index_argument = click.argument("index", type=click.Path(file_okay=False, path_type=Path))
device_option = click.option("--device", help="cpu, cuda or cuda:N; by default a GPU where there is one.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="longmatch")
def main() -> None:
    """Find long documents with long documents, and see why.

    Exit status: 0 done, 1 error, 2 wrong usage, 3 done but some documents failed.
    """


@main.command()
@index_argument
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--prune", is_flag=True, help="Remove documents that are not under PATH... any more.")
@click.option("--dry-run", is_flag=True, help="Say what would be done and what it costs; write nothing.")
@click.option("--encoder", help="Encoder or backbone: a folder, a hub name, or the offline all-MiniLM-L6-v2.")
@click.option("--factory", default="auto", show_default=True, help="FAISS factory string, as Flat or IVF1024,PQ64x4fs.")
@click.option("--memory", type=parse_bytes, metavar="SIZE", help="Most memory of the FAISS index, as 2G or 500M.")
@device_option
@json_option
def index(
    index: Path,
    paths: tuple[str, ...],
    prune: bool,
    dry_run: bool,
    encoder: str | None,
    factory: str,
    memory: int | None,
    device: str | None,
    as_json: bool,
) -> None:
    """Create or update INDEX from files, folders or patterns ('-' reads JSON lines from stdin).

    Unchanged documents are skipped, changed ones replaced. A run that was
    stopped goes on where it was: run the same command again.

    Formats: .txt .rst .md .html .pdf .docx .xml (JATS, TEI) .tex .json .jsonl,
    each also with .gz.

    \b
    Example:
        longmatch index papers.lm ./papers notes/*.md
    """
    if dry_run:
        _show_plan(index, paths, encoder, factory, memory, device, as_json)
        return
    from indexer.builder import build
    from indexer.corpus import count_files, read_corpus
    from indexer.progress import BuildProgress

    with BuildProgress(count_files(paths)) as progress:
        report = build(
            index,
            read_corpus(paths),
            encoder=encoder,
            device=device,
            factory=factory,
            memory_bytes=memory,
            prune=prune,
            progress=progress,
            tell=progress.tell,
        )
    _tell_build(report, as_json)
    if report.failures:
        sys.exit(PARTLY if report.n_seen > len(report.failures) else FAILED)


def _show_plan(
    index: Path,
    paths: tuple[str, ...],
    encoder: str | None,
    factory: str,
    memory: int | None,
    device: str | None,
    as_json: bool,
) -> None:
    from engine.report.table import simple_table
    from indexer.builder import encoder_for
    from indexer.corpus import read_corpus
    from indexer.plan import make_plan

    loaded = encoder_for(index, encoder, device)
    plan = make_plan(index, read_corpus(paths), loaded, factory=factory, memory_bytes=memory)
    if as_json:
        click.echo(json.dumps(asdict(plan)))
        return
    rows = [
        ("new", f"{plan.n_new:,} documents"),
        ("changed", f"{plan.n_changed:,}"),
        ("unchanged", f"{plan.n_unchanged:,}"),
        ("unreadable", f"{plan.n_unreadable:,}"),
        ("to encode", f"about {plan.n_tokens:,} tokens in {plan.n_chunks:,} chunks"),
        ("time", f"about {_duration(plan.seconds)}"),
        ("disk", f"about {plan.disk_bytes / 1e6:,.1f} MB more"),
        ("FAISS index", f"{plan.factory}, about {plan.ann_bytes / 1e6:,.1f} MB of memory"),
    ]
    click.echo(simple_table(rows))


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _tell_build(report: BuildReport, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(asdict(report)))
        return
    click.echo(
        f"{report.n_added:,} added, {report.n_replaced:,} replaced, {report.n_unchanged:,} unchanged, "
        f"{report.n_removed:,} removed, {len(report.failures):,} failed; "
        f"{report.n_tokens:,} tokens in {_duration(report.seconds)}"
    )
    if report.n_sections_merged or report.n_sections_cut:
        click.echo(
            f"{report.n_sections_merged:,} tiny sections were joined with a neighbour, "
            f"{report.n_sections_cut:,} are parts of long ones"
        )
    for failure in report.failures[:20]:
        click.echo(f"failed: {failure.source}: {failure.reason}", err=True)
    if len(report.failures) > 20:
        click.echo(f"and {len(report.failures) - 20:,} more: longmatch info INDEX --failures", err=True)


@main.command()
@index_argument
@click.argument("documents", nargs=-1, metavar="[DOCUMENT]...")
@click.option("--id", "doc_ids", multiple=True, help="Ask with an indexed document; may be given again.")
@click.option("-k", "k", default=10, show_default=True, help="Hits of each query.")
@click.option("--offset", default=0, show_default=True, help="Hits to leave out first, for pages.")
@click.option("--where", help="Metadata filter, as: family = 'pep' and number >= 400")
@click.option("--exact", is_flag=True, help="Scan all vectors, so that the ranking is certified.")
@click.option("--sections", "n_pairs", default=3, show_default=True, help="Section pairs shown of each hit.")
@click.option("--matrix", is_flag=True, help="Add the cosines of all sections, for each hit.")
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "jsonl", "csv", "trec"]), default="table", show_default=True
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write here, not to stdout.")
@device_option
def query(
    index: Path,
    documents: tuple[str, ...],
    doc_ids: tuple[str, ...],
    k: int,
    offset: int,
    where: str | None,
    exact: bool,
    n_pairs: int,
    matrix: bool,
    form: str,
    output: Path | None,
    device: str | None,
) -> None:
    """Rank INDEX against whole documents ('-' reads text from stdin).

    Several documents, or a .jsonl file of them, are asked one after another.

    \b
    Example:
        longmatch query papers.lm draft.pdf -k 5 --sections 2
    """
    from indexer.output import Answer, Layout, render

    if not documents and not doc_ids:
        raise click.UsageError("nothing to ask with: name a DOCUMENT, '-' for stdin, or --id DOC_ID")
    failed: list[Unreadable] = []
    answers = []
    with _opened(index, device) as opened:
        options: dict[str, Any] = {"k": k, "offset": offset, "where": where, "exact": exact}
        for doc_id in doc_ids:
            result = opened.search_id(doc_id, **options)
            answers.append(Answer(result, _matrices(opened, doc_id, result) if matrix else ()))
        for document in _read_queries(documents, failed):
            result = opened.search(document, **options)
            answers.append(Answer(result, _matrices(opened, document, result) if matrix else ()))
    if answers:
        width = max(60, min(shutil.get_terminal_size().columns, 120)) if sys.stdout.isatty() and not output else 80
        text = render(answers, form, Layout(n_pairs, width))
        if output is not None:
            output.write_text(text, encoding="utf-8")
        else:
            click.echo(text, nl=False)
    for failure in failed:
        click.echo(f"failed: {failure.source}: {failure.reason}", err=True)
    if failed:
        sys.exit(PARTLY if answers else FAILED)


@contextmanager
def _opened(path: Path, device: str | None = None) -> Iterator[Index]:
    from engine.index import Index

    with Index.open(path, device=device) as opened:
        yield opened


def _read_queries(names: tuple[str, ...], failed: list[Unreadable]) -> Iterator[Document]:
    from engine.readers import Unreadable, read_bytes, read_file

    for name in names:
        found = read_bytes(sys.stdin.buffer.read(), "stdin.txt") if name == "-" else read_file(Path(name))
        for document in found:
            if isinstance(document, Unreadable):
                failed.append(document)
            else:
                yield document


def _matrices(index: Index, query: Document | str, result: Any) -> tuple[Any, ...]:  # noqa: ANN401
    return tuple(index.section_matrix(query, hit.doc_id) for hit in result.hits)


@main.command()
@index_argument
@click.argument("doc_id", required=False)
@click.option("--text", is_flag=True, help="Print the whole text.")
@json_option
def show(index: Path, doc_id: str | None, text: bool, as_json: bool) -> None:
    """Show a document of INDEX as it was read: sections, offsets, metadata; without DOC_ID list all.

    \b
    Example:
        longmatch show papers.lm peps/pep-0484.md
    """
    from indexer.describe import describe_document, list_documents

    with _opened(index) as opened:
        click.echo(describe_document(opened, doc_id, text, as_json) if doc_id else list_documents(opened, as_json))


@main.command()
@index_argument
@click.option("--failures", is_flag=True, help="List the documents that could not be indexed, and why.")
@json_option
def info(index: Path, failures: bool, as_json: bool) -> None:
    """Show what INDEX holds: counts, coverage, encoder, generation and its measured recall.

    \b
    Example:
        longmatch info papers.lm
    """
    from indexer.describe import describe_index, list_failures

    with _opened(index) as opened:
        click.echo(list_failures(opened, as_json) if failures else describe_index(opened, as_json))


@main.command()
@index_argument
@click.argument("doc_ids", nargs=-1, required=True, metavar="DOC_ID...")
def remove(index: Path, doc_ids: tuple[str, ...]) -> None:
    """Remove documents from INDEX; their space comes back with `compact`.

    \b
    Example:
        longmatch remove papers.lm peps/pep-0484.md
    """
    from engine.store.writer import Writer

    _must_exist(index)
    with Writer(index) as writer:
        known = writer.indexed(doc_ids)
        if absent := [doc_id for doc_id in doc_ids if doc_id not in known]:
            raise QueryError(f"no document {absent[0]!r} in {index}; nothing was removed: longmatch show {index}")
        writer.remove([there.id for there in known.values()])
    click.echo(f"{len(known)} removed")


@main.command()
@index_argument
@json_option
def verify(index: Path, as_json: bool) -> None:
    """Check INDEX completely: seal, pages, every checksum, every text. Exit status 1 on damage.

    \b
    Example:
        longmatch verify papers.lm
    """
    from indexer.verify import verify as check

    findings = check(index)
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings]))
    for finding in findings if not as_json else []:
        click.echo(f"{finding.damage.value}: {finding.where}: {finding.what}")
    harmful = [finding for finding in findings if not finding.is_harmless]
    if not as_json:
        click.echo(f"{len(harmful)} damaged; mend it: longmatch repair {index}" if harmful else "all is well")
    if harmful:
        sys.exit(FAILED)


@main.command()
@index_argument
@click.option("--encode", is_flag=True, help="Encode documents whose vectors are lost again, from their stored text.")
@device_option
def repair(index: Path, encode: bool, device: str | None) -> None:
    """Mend INDEX: rebuild what is derived, name what is lost. Exit status 3 if documents were lost.

    \b
    Example:
        longmatch repair papers.lm --encode
    """
    from indexer.repair import repair as mend

    report = mend(index, encode=encode, device=device, tell=_to_stderr)
    for line in report.mended:
        click.echo(line)
    if report.reencoded:
        click.echo(f"{len(report.reencoded)} documents encoded again from their stored text")
    for doc_id in report.lost:
        click.echo(f"lost: {doc_id}")
    click.echo("all is well" if not report.lost else "index the lost documents again: longmatch index INDEX PATH...")
    if report.lost:
        sys.exit(PARTLY)


@main.command()
@index_argument
def compact(index: Path) -> None:
    """Rewrite INDEX without the vectors of removed documents, and join small shards.

    \b
    Example:
        longmatch compact papers.lm
    """
    from indexer.compact import compact as shrink

    _must_exist(index)
    report = shrink(index, tell=_to_stderr)
    click.echo(
        f"{report.n_shards_before} shards of {report.bytes_before / 1e6:,.1f} MB became "
        f"{report.n_shards_after} of {report.bytes_after / 1e6:,.1f} MB"
    )


@main.command()
@json_option
def doctor(as_json: bool) -> None:
    """Tell which FAISS, torch, device and weights are in use, and whether they work.

    \b
    Example:
        longmatch doctor
    """
    from engine.doctor import examine

    checks = []
    for check in examine():
        checks.append(check)
        if not as_json:
            click.echo(f"{'ok  ' if check.is_well else 'FAIL'}  {check.name:<10} {check.told}")
    if as_json:
        click.echo(json.dumps([asdict(check) for check in checks]))
    if not all(check.is_well for check in checks):
        sys.exit(FAILED)


def _must_exist(index: Path) -> None:
    from engine.store.catalog import CATALOG_FILE

    if not (index / CATALOG_FILE).exists():
        raise QueryError(f"{index} holds no index; make one: longmatch index {index} PATH...")


def _to_stderr(line: str) -> None:
    click.echo(line, err=True)
