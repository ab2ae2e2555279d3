"""A fixture that makes PDF documents."""

import pytest

from tests.readers.made import MakePdf, pdf_bytes


@pytest.fixture
def make_pdf() -> MakePdf:
    return pdf_bytes
