"""Pointers of a JobSpec's fields as the pointers of what says them in a text."""

from __future__ import annotations

import json

import pytest

from jobs.dialects.document import Document

REQUEST = {
    "DisplayName": "mnist",
    "JobType": "TFJob",
    "JobSpecs": [
        {"Type": "PS", "PodCount": 1, "Image": "i", "ResourceConfig": {"CPU": "1"}},
        {"Type": "Worker", "PodCount": 2, "Image": "i", "ResourceConfig": {"CPU": "1", "GPU": "2"}},
    ],
    "UserCommand": "true",
    "CodeSource": {"CodeSourceId": "c"},
}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    ("path", "pointer"),
    [
        ("/name", "/DisplayName"),
        ("/code/id", "/CodeSource/CodeSourceId"),
        ("/roles/1/resources/gpus", "/JobSpecs/1/ResourceConfig/GPU"),
        ("/roles/0/resources/gpus", "/JobSpecs/0/ResourceConfig"),
        ("/roles/1/image", "/JobSpecs/1/Image"),
        ("/JobSpecs/0/Image", "/JobSpecs/0/Image"),
        ("/nothing", "/nothing"),
        ("", ""),
    ],
)
def test_pointer_of_field_is_that_of_the_text(path: str, pointer: str, indent: int | None) -> None:
    document = Document(json.dumps(REQUEST, indent=indent), "dlc")
    assert document.places.pointer_of(path) == pointer
