"""Fields without effect: what a job sets and a backend does not use is found, whatever it is."""

from __future__ import annotations

from itertools import groupby

import pytest

from jobs.backends import registry
from jobs.backends.effects import find_unused_fields
from jobs.backends.support import MOUNT_OPTION_REASONS, Fate, find_row
from jobs.dialects.base import Note
from jobs.messages.notes import note_message
from jobs.spec import JobSpec
from tests.reference_pages.probes import probes, spec

TABLES = {name: registry.find(name).support for name in registry.names()}


def unused(backend: str, job: JobSpec) -> set[str]:
    return {each.pointer for each in find_unused_fields(job, TABLES[backend])}


@pytest.mark.parametrize("backend", TABLES)
def test_unused_fields_are_those_that_the_support_table_keeps(backend: str) -> None:
    for path, group in groupby(probes(), key=lambda probe: probe.path):
        row = find_row(TABLES[backend], path)
        assert row is not None, path
        support = TABLES[backend][row]
        is_kept = support.fate is Fate.KEPT
        last = row.replace("[]", "").split(".")[-1]
        for probe in group:
            found = {pointer for pointer in unused(backend, probe.spec) if last in pointer.split("/")}
            assert bool(found) == is_kept or support.members is not None, (path, found)
    assert unused(backend, spec({})) == set()


@pytest.mark.parametrize("backend", TABLES)
def test_unused_members_of_maps_are_named_one_by_one(backend: str) -> None:
    options = {"mountType": "ossfs", "nconnect": "4", "sizeLimit": "1Gi"}
    mount = {"uri": "oss://bucket/x/", "path": "/data", "options": options}
    job = spec({"mounts": [mount, mount | {"path": "/other"}], "framework_options": {"A": "1", "B": "2"}})
    assert unused(backend, job) == {
        "/mounts/0/options/mountType",
        "/mounts/0/options/nconnect",
        "/framework_options/A",
        "/framework_options/B",
    }
    whys = {each.pointer: each.why for each in find_unused_fields(job, TABLES[backend])}
    assert whys["/mounts/0/options/mountType"] == MOUNT_OPTION_REASONS["mountType"]
    assert whys["/mounts/0/options/nconnect"] == MOUNT_OPTION_REASONS["nconnect"]


def test_unused_field_of_many_roles_is_found_once() -> None:
    roles = [{"name": f"r{index}", "command": "true", "resources": {"disk_mib": 1024}} for index in range(3)]
    assert unused("slurm", spec({"roles": roles})) == {"/roles/0/resources/disk_mib"}


def test_unused_object_is_found_once_at_its_first_field() -> None:
    assert unused("local", spec({"network": {"vpc": "v", "switch": "s"}})) == {"/network/vpc"}


def test_note_without_effect_names_field_and_reason() -> None:
    (found,) = find_unused_fields(spec({"network": {"vpc": "vpc-1"}}), TABLES["local"])
    note = Note("no_effect", found.pointer, {"why": found.why})
    assert note_message(note) == (
        "Network: No effect on this cluster (kept for export). "
        "Specific to the vendor's cloud; kept for export."
    )
    option = Note("no_effect", "/framework_options/RayRedisAddress", {"why": ""})
    assert note_message(option).startswith("RayRedisAddress: No effect")
