"""The names of the fields of records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.errors import DocumentError


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a record that hold text, title and id; None is the usual name."""

    text: str | None = None
    title: str | None = None
    id: str | None = None

    def named(self, record: dict[str, Any]) -> dict[str, Any]:
        """The record with these fields under the usual names.

        Raises:
            DocumentError: it has no such field.
        """
        names = {"text": self.text, "title": self.title, "id": self.id}
        for usual, name in names.items():
            if name is None:
                continue
            if name not in record:
                found = ", ".join(map(str, [*record][:20])) or "none"
                raise DocumentError(f'it has no field "{name}"; its fields are {found}')
            others = ("sections",) if usual == "text" else ("_id",) if usual == "id" else ()
            record = {key: value for key, value in record.items() if key not in (name, *others)} | {usual: record[name]}
        return record


USUAL = Fields()
