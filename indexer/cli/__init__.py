"""The `longmatch` command: open, call one function, print. INDEX, the folder, always comes first."""

from indexer.cli.group import main

__all__ = ["main"]
