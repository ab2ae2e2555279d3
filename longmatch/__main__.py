"""`python -m longmatch`: runs the `longmatch` command."""

from __future__ import annotations

from indexer.cli import main

main(prog_name="longmatch")
