"""The schema of results with no field allowed that it does not describe; readers of results are not so strict."""

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema_rs import Draft202012Validator

from engine.report.contract import result_schema

TOLERANCE = 1e-5


def strict(schema: Any) -> Any:  # noqa: ANN401
    """The same schema, closed wherever it lists the fields of an object."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items()}
    return closed | {"additionalProperties": False} if {"properties", "required"} <= schema.keys() else closed


VALIDATOR = Draft202012Validator(strict(result_schema()))


def check(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the value, after checking that it is valid and that its parts sum to the scores."""
    errors = [f"{error.instance_path}: {error.message:.200}" for error in VALIDATOR.iter_errors(value)]
    assert errors == []
    for hit in hits_of(value):
        assert abs(sum(part["contribution"] for part in hit["parts"]) - hit["score"]) <= TOLERANCE
        assert abs(sum(hit["components"].values()) - hit["score"]) <= TOLERANCE
        n_listed = sum(part["kind"] == "section_pair" for part in hit["parts"])
        assert (n_listed < hit["n_pairs"]) == any(part["kind"] == "rest" for part in hit["parts"])
    return value


def hits_of(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The hits of a result, of the sections of a novelty, or of an envelope of such."""
    for result in value.get("results", [value]):
        of_sections = [one["hit"] for one in result.get("sections", []) if one["hit"] is not None]
        yield from result.get("hits", of_sections)
