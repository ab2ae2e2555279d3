"""The `longmatch` command, also as `python -m longmatch`. An interrupt while it loads ends it without a traceback."""

import signal


def main() -> None:
    """Load and run the command line."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # not where a shell runs the command in the background
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from indexer.cli import main as command

    signal.signal(signal.SIGINT, handler)
    command(prog_name="longmatch")


if __name__ == "__main__":
    main()
