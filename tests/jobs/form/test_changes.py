"""Changes of fields said in a JobSpec: what is changed is found again, nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given

from jobs.form.changes import RowActions, apply_changes
from jobs.form.dialect_support import SAMPLES
from jobs.form.fields import FIELDS, ROWS
from jobs.form.values import fields_of, form_name, lists_of, values_of
from jobs.spec import After, CodeSource, JobSpec, Mount, PodContainer, Port, RoleSpec, SecretRef, When
from tests.jobs.dialects.dlc_strategies import dlc_specs

PLAIN = JobSpec(name="job", roles=(RoleSpec(name="Worker", command="true"),))

NEW = {
    "name": "other",
    "description": "two\nlines",
    "workspace": "77",
    "visibility": "public",
    "roles-*-image": "registry.example.com/team/new:2",
    "registry-registry": "r.example.com",
    "registry-username": "me",
    "registry-secret": "MINE",
    "registry-file": "/auth",
    "roles-*-command": "python train.py\n",
    "roles-*-shared-paths": "/a\n/b",
    "libraries": "numpy\ntorch==2",
    "libraries-folder": "/root/code",
    "modules": "cuda/12.4\ngcc/13",
    "conda": "/opt/conda/envs/train",
    "venv": "/home/me/venv",
    "code-id": "code-1",
    "code-uri": "https://git.example.com/a.git",
    "code-branch": "main",
    "code-commit": "abc",
    "code-path": "/root/x",
    "code-submodules": "on",
    "quota": "q",
    "priority": "7",
    "framework": "ray",
    "roles-*-name": "Head",
    "roles-*-replicas": "3",
    "roles-*-spec": "ecs.g6.large",
    "roles-*-gpus": "2",
    "roles-*-gpu-type": "A100",
    "roles-*-cpu": "2.5",
    "roles-*-memory": "12",
    "roles-*-shm": "512 MiB",
    "roles-*-disk": "5",
    "roles-*-rdma": "on",
    "roles-*-min-failed": "2",
    "roles-*-restart-condition": "never",
    "roles-*-restart-limit": "2",
    "roles-*-min-succeeded": "1",
    "roles-*-bid-discount": "40",
    "roles-*-bid-price": "1.25",
    "roles-*-nodes-only": "n1\nn2",
    "roles-*-nodes-never": "n3",
    "roles-*-nodes-labels": "kind=fast",
    "options": "createSvcForAllWorkers=true\ncustomPortNumPerWorker=100",
    "idle": "accept",
    "cpu-affinity": "on",
    "time-limit": "30",
    "end-signal": "USR2",
    "end-signal-before": "60",
    "grace": "45",
    "keep-for": "10",
    "keep-when": "failed",
    "keep-failed": "5",
    "hold": "on",
    "not-before": "2027-01-31T22:00:00+08:00",
    "vpc": "vpc-1",
    "switch": "vsw-1",
    "security-group": "sg-1",
    "cidrs": "10.0.0.0/8",
    "gateway": "eth1",
    "retries": "3",
    "fault-tolerance": "on",
    "fault-arguments": "--enable-job-restart=True",
    "fault-patterns": "lost shard [0-9]+",
    "fault-scope": "replica",
    "sanity-check": "on",
    "sanity-arguments": "--x=y",
    "alert": "cpu",
    "alert-comparison": "above",
    "alert-value": "90",
    "alert-minutes": "5",
    "tensorboard": "on",
    "tensorboard-path": "/root/logs",
    "instance-role": "default",
}
"""Another value for every field that stands by itself and has a path."""

NEW |= {
    key: each.options[-1][0] if each.options else "3"
    for key, each in FIELDS.items()
    if each.subfield is not None
}

ALERT = ("alert-comparison", "alert-value", "alert-minutes")

WITH = {
    "end-signal-before": {"end-signal": "USR1"},
    "keep-when": {"keep-for": "10"},
    **{key: {"alert": "gpu"} for key in ALERT},
    "code-branch": {"code-uri": "u"},
    "code-commit": {"code-uri": "u"},
    "code-path": {"code-uri": "u"},
    "code-submodules": {"code-uri": "u"},
}
"""Fields that say nothing without another."""


def test_sample_values_cover_every_field() -> None:
    assert set(NEW) == {key for key, each in FIELDS.items() if each.path}


@given(dlc_specs())
def test_form_without_changes_keeps_job(spec: JobSpec) -> None:
    assert apply_changes(spec, values_of(spec)).spec == spec


@pytest.mark.parametrize("sample", SAMPLES)
def test_form_values_rebuild_the_job(sample: JobSpec) -> None:
    bare = JobSpec(name="bare", roles=(RoleSpec(name="x", command="x"),))
    made = apply_changes(bare, values_of(sample), values_of(bare))
    assert made.problems == {}
    assert made.spec == sample


def same_value(key: str) -> set[str]:
    """The fields that show the same value, or parts of it."""
    path = FIELDS[key].path
    return {other for other, each in FIELDS.items() if each.path == path and other != key}


@pytest.mark.parametrize("key", sorted(NEW))
def test_form_field_is_set_and_read_back(key: str) -> None:
    name = form_name(key, 0)
    made = apply_changes(PLAIN, {name: NEW[key], **WITH.get(key, {})})
    assert made.problems == {}
    shown = values_of(made.spec)
    assert shown[name] == NEW[key]
    before = values_of(PLAIN)
    others = {other for other in shown if other not in (name, *WITH.get(key, {}))} - same_value(key)
    untold = {
        "end-signal-before",
        "keep-when",
        "tensorboard",
        *ALERT,
    }  # these come with a part that is there at all
    assert {other for other in others - untold if shown[other] != before.get(other)} == set()


@pytest.mark.parametrize("key", sorted(set(NEW) - {"name", "roles-*-name", "roles-*-command"}))
def test_form_field_can_be_reset(key: str) -> None:
    name = form_name(key, 0)
    full = apply_changes(PLAIN, {name: NEW[key], **WITH.get(key, {})}).spec
    back = apply_changes(full, {name: values_of(PLAIN)[name]}).spec
    assert values_of(back)[name] == values_of(PLAIN)[name]


def test_form_reports_all_problems_together_and_takes_the_rest() -> None:
    posted = {
        "name": " ",
        "roles-0-cpu": "many",
        "roles-0-gpus": "1.5",
        "priority": "12",
        "roles-0-image": "a b",
        "roles-0-memory": "0",
        "description": "taken",
        "time-limit": "1e400",
    }
    made = apply_changes(PLAIN, posted)
    assert {name: each.code for name, each in made.problems.items()} == {
        "name": "needed",
        "roles-0-cpu": "no_number",
        "roles-0-gpus": "not_whole",
        "priority": "too_great",
        "roles-0-image": "no_image_name",
        "roles-0-memory": "too_small",
        "time-limit": "no_number",
    }
    assert made.spec == PLAIN.model_copy(update={"description": "taken"})


def test_code_branch_without_repository_is_rejected() -> None:
    made = apply_changes(PLAIN, {"code-branch": "main", "description": "taken"})
    assert {name: each.code for name, each in made.problems.items()} == {"code-branch": "code_needs_place"}
    assert made.spec.description == "taken"
    whole = apply_changes(made.spec, {"code-branch": "main", "code-uri": "https://git.example.com/a.git"})
    assert whole.spec.code == CodeSource(uri="https://git.example.com/a.git", branch="main")


def test_form_changes_only_fields_differing_from_shown_values() -> None:
    shown = values_of(PLAIN)
    meanwhile = PLAIN.model_copy(update={"name": "renamed-in-the-file"})
    made = apply_changes(meanwhile, {**shown, "description": "typed"}, shown)
    assert made.spec == meanwhile.model_copy(update={"description": "typed"})


def test_variables_are_rows_with_values_or_secrets() -> None:
    posted = {
        "env-0-name": "A",
        "env-0-value": " 1 ",
        "env-1-name": "TOKEN",
        "env-1-secret": "HF_TOKEN",
        "env-2-name": "",
        "env-2-value": "",
    }
    made = apply_changes(PLAIN, posted).spec
    assert made.env == {"A": " 1 "}
    assert made.secret_env == {"TOKEN": SecretRef(name="HF_TOKEN")}
    gone = apply_changes(made, values_of(made), acts=RowActions(remove="env-0")).spec
    assert (gone.env, gone.secret_env) == ({}, made.secret_env)


def test_variable_list_with_wrong_row_stays_unchanged() -> None:
    posted = {
        "env-0-name": "1A",
        "env-0-value": "x",
        "env-1-value": "y",
        "env-2-name": "B",
        "env-3-name": "B",
    }
    made = apply_changes(PLAIN, posted)
    assert {name: each.code for name, each in made.problems.items()} == {
        "env-0-name": "no_variable",
        "env-1-name": "needed",
        "env-3-name": "repeats",
    }
    assert made.spec == PLAIN


MOUNTED = PLAIN.model_copy(
    update={
        "mounts": (
            Mount(uri="oss://b.e/x/", path="/x", options={"mountType": "ossfs"}),
            Mount(id="d-1", path="/d", read_only=True),
            Mount(uri="nas://1.r/", path="/n"),
        )
    }
)


def test_datasets_and_mounts_share_one_list_and_keep_positions() -> None:
    posted = {
        **values_of(MOUNTED),
        "datasets-0-path": "/data",
        "mounts-1-path": "/nas",
        "mounts-2-uri": "cpfs://c.r/",
        "mounts-2-path": "/c",
        "mounts-2-purpose": "output",
    }
    made = apply_changes(MOUNTED, posted, values_of(MOUNTED), RowActions(remove="mounts-0"))
    assert made.problems == {}
    assert [(each.id or each.uri, each.path) for each in made.spec.mounts] == [
        ("d-1", "/data"),
        ("nas://1.r/", "/nas"),
        ("cpfs://c.r/", "/c"),
    ]
    assert made.spec.mounts[2].purpose == "output"
    assert made.spec.mounts[0].read_only


def test_blank_new_row_is_ignored() -> None:
    blank = {"mounts-0-uri": "", "mounts-0-purpose": "data", "datasets-0-id": "", "roles-0-ports-0-count": ""}
    assert apply_changes(PLAIN, blank).spec == PLAIN
    assert apply_changes(PLAIN, {**blank, "mounts-0-path": "/x"}).problems.keys() == {"mounts-0-uri"}


def test_blank_row_leaves_list_changed_in_file_untouched() -> None:
    posted = {**values_of(PLAIN), "mounts-0-uri": "", "mounts-0-purpose": "data", "mounts-0-read-only": ""}
    assert apply_changes(MOUNTED, posted, values_of(PLAIN)).spec == MOUNTED


def test_ports_belong_to_their_role() -> None:
    made = apply_changes(PLAIN, {"roles-0-ports-0-label": "web", "roles-0-ports-0-begin": "8080"}).spec
    assert made.roles[0].ports == (Port(label="web", begin_at=8080),)
    assert apply_changes(made, values_of(made), acts=RowActions(remove="roles-0-ports-0")).spec == PLAIN


def test_containers_keep_what_their_rows_do_not_show() -> None:
    fetch = PodContainer(name="fetch", command=("sh", "-c"), args=("get $FROM",), working_dir="/data")
    role = PLAIN.roles[0].model_copy(update={"sidecars": (fetch, PodContainer(args=("--all",)))})
    spec = PLAIN.model_copy(update={"roles": (role,)})
    shown = values_of(spec)
    assert shown["roles-0-sidecars-0-command"] == "get $FROM"
    assert shown["roles-0-sidecars-1-command"] == ""
    posted = {
        **shown,
        "roles-0-sidecars-0-env": "FROM=a,b=c\nKEY=$SECRET:MINE",
        "roles-0-sidecars-2-name": "agent",
        "roles-0-sidecars-2-command": '["agent", "--port", "1"]',
    }
    made = apply_changes(spec, posted, shown)
    assert made.problems == {}
    assert made.spec.roles[0].sidecars == (
        fetch.model_copy(update={"env": {"FROM": "a,b=c", "KEY": "$SECRET:MINE"}}),
        PodContainer(args=("--all",)),
        PodContainer(name="agent", command=("agent", "--port", "1")),
    )
    other = {"roles-0-sidecars-0-command": "[ -f x ] && get"}
    left = apply_changes(made.spec, other, acts=RowActions(remove="roles-0-sidecars-1")).spec
    assert [(each.command, each.args) for each in left.roles[0].sidecars] == [
        (("sh", "-c", "[ -f x ] && get"), ()),
        (("agent", "--port", "1"), ()),
    ]


def test_wrong_container_row_is_reported_at_its_cell() -> None:
    posted = {
        "roles-0-init-containers-0-name": "fetch",
        "roles-0-init-containers-0-env": "1A=x",
        "roles-0-init-containers-1-name": "fetch",
        "roles-0-init-containers-2-command": '["open"',
        "roles-0-init-containers-3-env": "open",
    }
    made = apply_changes(PLAIN, posted)
    assert {
        name.removeprefix("roles-0-init-containers-"): each.code for name, each in made.problems.items()
    } == {
        "0-env": "no_variable",
        "1-name": "repeats",
        "2-command": "no_words",
        "3-env": "no_pair",
    }
    assert made.spec == PLAIN


def test_role_is_added_like_the_last_one_and_removed() -> None:
    more = apply_changes(PLAIN, {}, acts=RowActions(add="roles")).spec
    assert [role.name for role in more.roles] == ["Worker", "Worker-2"]
    assert apply_changes(more, {}, acts=RowActions(remove="roles-1")).spec == PLAIN
    assert apply_changes(PLAIN, {}, acts=RowActions(remove="roles-0")).spec == PLAIN


def test_duplicate_role_name_is_reported_at_its_name() -> None:
    more = apply_changes(PLAIN, {}, acts=RowActions(add="roles")).spec
    made = apply_changes(more, {"roles-1-name": "Worker", "roles-1-cpu": "3"})
    assert {name: each.code for name, each in made.problems.items()} == {"roles-1-name": "repeats"}
    assert made.spec.roles[1].resources.cpu_milli == 3000


def test_accelerated_image_edition_is_set_by_its_tag() -> None:
    image = "team-registry.cn-hangzhou.cr.aliyuncs.com/team/train:1.0"
    made = apply_changes(PLAIN, {"roles-0-image": image}).spec
    turned = apply_changes(made, {"roles-0-accelerated": "on"}).spec
    assert turned.roles[0].image == f"{image}_accelerated"
    assert values_of(turned)["roles-0-accelerated"] == "on"
    assert apply_changes(turned, {"roles-0-accelerated": ""}).spec == made
    assert apply_changes(PLAIN, {"roles-0-accelerated": "on"}).spec == PLAIN


def test_form_names_are_unique() -> None:
    names = [name for name, _field, _number in fields_of(PLAIN)]
    names += [form_name(rows.key, number) for rows, number in lists_of(PLAIN)]
    assert len(set(names)) == len(names) == len(FIELDS) + len(ROWS)


def test_job_with_conda_rejects_venv() -> None:
    made = apply_changes(PLAIN, {"conda": "/opt/conda/envs/train"}).spec
    both = apply_changes(made, {"venv": "/home/me/venv"})
    assert {name: each.code for name, each in both.problems.items()} == {"venv": "no_fit"}
    assert both.spec == made


def test_job_dependencies_are_rows() -> None:
    posted = {"after-0-job": "abc", "after-0-when": "failed", "after-1-job": "", "after-1-when": "succeeded"}
    made = apply_changes(PLAIN, posted).spec
    assert made.after == (After(job="abc", when=When.FAILED),)
    assert apply_changes(made, {}, acts=RowActions(remove="after-0")).spec == PLAIN
    twice = apply_changes(made, {"after-1-job": "abc", "after-1-when": "ended"})
    assert {name: each.code for name, each in twice.problems.items()} == {"after-1-job": "repeats"}
