"""Make the demo: a corpus of PEPs and EIPs in ten formats, two queries, and PROVENANCE.md.

Reads the "proposals" data folder (corpus.jsonl.gz, unmask.jsonl.gz, qrels.tsv) and writes the same bytes on
every run. Needs two packages beyond those of longmatch: pip install reportlab python-docx

Example, from the folder above this one:
    python -m demo.make_corpus DATA demo
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from pathlib import Path

import click

from demo.proposals import read_citations, read_proposals
from demo.provenance import provenance
from demo.selection import FORMATS, choices


@click.command(help=__doc__)
@click.argument("data", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
def main(data: Path, out: Path) -> None:
    """Replace corpus, queries and PROVENANCE.md in the folder OUT."""
    chosen = list(choices())
    proposals = read_proposals(data, {choice.id for choice in chosen})
    files: defaultdict[str, bytes] = defaultdict(bytes)
    for choice in chosen:
        files[choice.path(proposals[choice.id])] += FORMATS[choice.ending].write(proposals[choice.id])
    of_choice = {choice: proposals[choice.id] for choice in chosen}
    files["PROVENANCE.md"] = provenance(of_choice, read_citations(data)).encode()
    for folder in ("corpus", "queries"):
        shutil.rmtree(out / folder, ignore_errors=True)
    for path, content in files.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_bytes(content)
    click.echo(f"{len(files) - 1} files, {sum(map(len, files.values())):,} bytes in {out}")


if __name__ == "__main__":
    main()
