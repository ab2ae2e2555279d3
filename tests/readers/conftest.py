"""Fixtures that make PDF and Word documents."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.readers.made import MakePdf, docx_bytes, pdf_bytes


@pytest.fixture
def make_pdf() -> MakePdf:
    return pdf_bytes


@pytest.fixture
def make_docx() -> Callable[..., bytes]:
    return docx_bytes
