"""The `longmatch` command: each subcommand opens an index, calls one function and prints the result.

The argument INDEX comes first, except in `restore`.
"""

from indexer.cli.group import main

__all__ = ["main"]
