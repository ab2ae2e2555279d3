"""The view of documents in notebooks: a `Document` is a value, and the notebook registers how to draw it."""

from __future__ import annotations

import sys

from engine.report.document_html import document_html


def show_documents() -> None:
    """Show documents as HTML in the running notebook; outside of one, do nothing."""
    shell = sys.modules["IPython"].get_ipython()
    if shell is not None:
        shell.display_formatter.formatters["text/html"].for_type_by_name(
            "engine.text.document", "Document", document_html
        )
