"""The view of documents in notebooks: a `Document` is a value, and the notebook registers how to draw it."""

from __future__ import annotations

import sys

from engine.text.document import Document


def show_documents() -> None:
    """Show documents as HTML in the running notebook; outside of one, do nothing."""
    shell = sys.modules["IPython"].get_ipython()
    if shell is not None:
        shell.display_formatter.formatters["text/html"].for_type_by_name(
            "engine.text.document", "Document", _document_html
        )


def _document_html(document: Document) -> str:
    # Loads Jinja, which a notebook that shows no document does without.
    from engine.report.page import document_html

    return document_html(document)
