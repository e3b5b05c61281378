"""A lab's first day by two files, and its whole administration carried to an empty console."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from django.core.management import CommandError, call_command
from django.db import models, transaction
from django.test import Client

from console.site_yaml.export import export
from console.site_yaml.import_plan import apply
from console.site_yaml.parser import read
from jobs.models import Template, TemplateVersion
from quotas.accounts import groups, services
from quotas.models import (
    AuditEntry,
    Banner,
    Cluster,
    GpuType,
    GroupMapping,
    JobPolicy,
    LocalGroup,
    LocalGroupRole,
    Maintenance,
    Membership,
    Node,
    Quota,
    Role,
    ServiceAccount,
    Spec,
    SpotPrice,
    User,
    Workspace,
)
from tests.factories import make_cluster, make_quota, make_template, make_user, make_workspace

pytestmark = pytest.mark.django_db

WORKSPACES: Final = ("lab", "vision", "speech", "robots", "guests")

SITE: Final = """\
version: 1
groups:
  staff: {description: Everybody employed, workspaces: {lab: viewer}}
workspaces:
  vision:
    quotas:
      local: {train: {part_of: lab/research, gpus: 4}, debug: {part_of: vision/train, gpus: 1}}
  speech:
    quotas:
      local: {train: {part_of: lab/research, gpus: 3}, debug: {part_of: speech/train, gpus: 1}}
  robots: {quotas: {local: {train: {part_of: lab/research, gpus: 1}, debug: {part_of: robots/train}}}}
  guests: {quotas: {local: {guests: {part_of: lab/spare, gpus: 1}}}}
  lab:
    name: The lab
    quotas:
      local:
        all:
          gpus: 16
          accepts_jobs: false
          quotas:
            research: {gpus: 8, quotas: {shared: {}}}
            spare: {gpus: 4, idle: {warn_minutes: 30, release_minutes: 60}}
            admins: {gpus: 2}
"""


def people_csv() -> str:
    """Forty people in the four workspaces below the lab, every fifth an admin, the first thirty employed."""
    lines = ["user,email,first_name,last_name,workspaces,groups"]
    for number in range(40):
        workspace = WORKSPACES[1 + number % 4]
        role = "admin" if number < 4 else "developer"
        group = "staff" if number < 30 else ""
        cell = f'"{workspace}: {role}, guests: viewer"' if workspace != "guests" else f"guests: {role}"
        lines.append(f"p{number:02},p{number:02}@example.org,Person,{number},{cell},{group}")
    return "\n".join(lines) + "\n"


def run(command: str, path: Path, text: str, *options: str) -> str:
    path.write_text(text)
    out = StringIO()
    call_command(command, str(path), *options, stdout=out)
    return out.getvalue()


def test_first_day_of_a_lab_takes_one_table_and_one_site_file(tmp_path: Path, client: Client) -> None:
    make_cluster("local")
    run("apply", tmp_path / "site.yaml", SITE)
    told = run("import_people", tmp_path / "people.csv", people_csv(), "--links", "show")
    assert User.objects.count() == 40
    assert Workspace.objects.count() == 5
    assert Quota.objects.count() == 12
    parents = {str(row.slug): row.parent and row.parent.slug for row in Quota.objects.filter(gpus__in=[3, 8])}
    assert parents == {"train": "research", "research": "all"}
    assert Membership.objects.filter(by_groups=False).count() == 70
    assert set(Membership.objects.filter(by_groups=True).values_list("workspace__slug", "role")) == {
        ("lab", "viewer")
    }
    assert Membership.objects.filter(by_groups=True).count() == 30
    links = re.findall(r"^(p\d\d): (\S+)$", told, re.MULTILINE)
    assert len(links) == 40
    page = client.get(urlsplit(links[0][1]).path, follow=True)
    assert 'name="password1"' in page.content.decode()
    assert "No changes" in run("apply", tmp_path / "site.yaml", export())
    assert "No changes" in run("import_people", tmp_path / "people.csv", people_csv(), "--links", "show")


def test_people_import_shows_all_problems_with_line_and_column_and_adds_nobody(tmp_path: Path) -> None:
    make_workspace("vision")
    text = (
        "user,email,workspaces,groups\n"
        "ann,not-an-address,vision: king,\n"
        "b/b,bob@example.org,speech: developer,\n"
        "carl,carl@example.org,vision,nowhere\n"
    )
    with pytest.raises(CommandError) as refused:
        run("import_people", tmp_path / "people.csv", text)
    told = [line.partition("people.csv:")[2] for line in str(refused.value).splitlines()]
    assert [line.partition(" ")[0] for line in told] == ["2:3", "3:3", "4:3"]
    text = text.replace("king", "admin").replace("speech", "vision").replace(",vision,", ",vision: admin,")
    with pytest.raises(CommandError) as refused:
        run("import_people", tmp_path / "people.csv", text)
    told = [line.partition("people.csv:")[2] for line in str(refused.value).splitlines()]
    assert [line.partition(": ")[0] for line in told] == [
        "2:2 /people/ann/email",
        "3:1 /people/b~1b/username",
        "4:4 /people/carl/groups",
    ]
    assert not User.objects.exists()


# --- every row, carried to an empty console --------------------------------------------------------------

CARRIED: Final = (
    *(User, LocalGroup, LocalGroupRole, GroupMapping, Membership, ServiceAccount, Workspace, Cluster, Node),
    *(Quota, JobPolicy, GpuType, Spec, SpotPrice, Banner, Maintenance, Template, TemplateVersion),
)
OF_THE_MOMENT: Final = frozenset(
    {
        *("id", "password", "last_login", "date_joined", "created_at", "updated_at", "made_at", "retired_at"),
        *("state_at", "state_by", "seen_at"),
    }
)
"""Columns that say when a row was written, or that no file may hold."""


def rows() -> dict[str, list[str]]:
    """Every carried row, with the names of what it refers to."""
    return {model.__name__: sorted(map(row_text, model._default_manager.all())) for model in CARRIED}


def row_text(row: models.Model) -> str:
    values: dict[str, Any] = {}
    for field in row._meta.concrete_fields:
        if field.name not in OF_THE_MOMENT:
            value = getattr(row, field.name)
            values[field.name] = natural(value)
    for link in row._meta.many_to_many:
        values[link.name] = sorted(map(natural, getattr(row, link.name).all()))
    return json.dumps(values, sort_keys=True, default=str)


def natural(value: Any) -> Any:
    if isinstance(value, Quota):
        return f"{value.workspace.slug}/{value.slug}"
    return str(value) if isinstance(value, models.Model) else value


def lay_ground() -> Cluster:
    """What an empty console has once its cluster was added: the cluster and its nodes."""
    cluster = make_cluster("local", backend="local")
    Node.objects.create(cluster=cluster, name="n1", gpus={"A100": 8})
    return cluster


def furnish(cluster: Cluster) -> None:
    """Everything that an admin may have made."""
    ann = make_user("ann", admin=True, email="ann@example.org", first_name="Ann", unix_name="ann1")
    bob = make_user("bob", is_active=False, disabled_by="ldap", directory_dn="uid=bob,dc=lab")
    carl = make_user("carl", break_glass=True)
    lab, vision = (
        make_workspace("lab", description="All: of it"),
        make_workspace("vision", members={ann: Role.ADMIN}),
    )
    services.make(ann, vision, "bot", role=Role.OPERATOR, contact="ann", about="nightly")
    staff = LocalGroup.objects.create(name="staff", description="Employed")
    staff.people.set([ann, carl])
    LocalGroupRole.objects.create(group=staff, workspace=lab, role=Role.VIEWER)
    GroupMapping.objects.create(source="ldap", group="cn=vision", workspace=vision, role=Role.OPERATOR)
    GroupMapping.objects.create(source="ldap", group="roots", superuser=True)
    groups.apply_to_all()
    top = make_quota(lab, cluster, "all", gpus=8, accepts_jobs=False, cpu_milli=7500, memory_mib=512)
    below = make_quota(
        vision, cluster, "train", parent=top, gpus=4, gpus_by_type={"A100": 4}, person_cpu_milli=1500
    )
    below.idle_warn_minutes, below.idle_release_minutes, below.idle_exempt_labels = (
        30,
        60,
        {"keep": "a, b: c"},
    )
    below.fair_share_weight, below.least_running_minutes, below.most_pending = 3, 0, 7
    below.save()
    JobPolicy.objects.create(quota=below, role=Role.DEVELOPER, highest_priority=5, gpu_types="A100, V100")
    JobPolicy.objects.create(quota=below, user=carl, waiting_jobs=0, time_limit_minutes=90, default_minutes=9)
    JobPolicy.objects.create(quota=below, by_workspace=True, job_gpus=2, running_jobs=4)
    below.idle_exempt_people.set([carl])
    make_quota(lab, cluster, "shared", parent=below, kind="lingjun", period="week", gpu_hours=9)
    Cluster.objects.update(region="here", cordon_percent=20, cordons_faulty=True, shows_addresses=True)
    Node.objects.update(state="draining", state_why="new disks")
    GpuType.objects.create(name="A100", aliases=["NVIDIA-A100"])
    Spec.objects.create(name="g1", cpu_milli=7500, memory_mib=512, gpus={"A100": 1}, price_micro=1_230_001)
    Spec.objects.create(
        name="g1", cpu_milli=1000, memory_mib=1024, workspace=vision, cluster=cluster, offered=False
    )
    SpotPrice.objects.create(
        cluster=cluster, gpu_type="A100", market_micro=3_000_000, price_micro=1, from_hour=22, until_hour=6
    )
    noon = datetime(2026, 11, 27, 12, 0, 0, 250_000, tzinfo=UTC)
    Banner.objects.create(text="Welcome: all", text_ja="ようこそ", level="warn", until_at=noon)
    Banner.objects.create(text="Hello", workspace=vision)
    Banner.objects.create(text="Hello", person=bob, from_at=noon)
    Maintenance.objects.create(
        text="Disks", cluster=cluster, from_at=noon, until_at=noon.replace(hour=14), lead_hours=3
    )
    make_template(ann, vision, "Training")
    private = make_template(carl, name="Private")
    TemplateVersion.objects.create(
        template=private,
        number=2,
        dialect="dlc",
        content=private.versions.get().content,
        notes="again",
        made_by=ann,
    )
    Template.objects.filter(pk=private.pk).update(latest_number=2, proposed_to=vision)


def test_export_applied_to_an_empty_console_gives_every_row_back() -> None:
    with transaction.atomic():
        furnish(lay_ground())
        before, text = rows(), export()
        transaction.set_rollback(True)
    assert not User.objects.exists()
    lay_ground()
    applied = apply(read(text))
    after = rows()
    for name, expected in before.items():
        assert after[name] == expected, name
    assert {row.username for row in applied.people} == {"ann", "bob", "carl"}
    assert not any(row.has_usable_password() for row in User.objects.all())
    assert not apply(read(text), dry=True, prune=True).changes
    assert export() == text


def test_diff_shows_drift_of_part_of_idle_policies_and_prices_in_units_of_the_file(tmp_path: Path) -> None:
    furnish(lay_ground())
    text = export()
    train = Quota.objects.get(slug="train")
    Quota.objects.filter(pk=train.pk).update(parent=None, cpu_milli=1500, idle_percent=50)
    Spec.objects.filter(workspace=None).update(price_micro=2_500_000)
    path = tmp_path / "site.yaml"
    path.write_text(text)
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("apply", str(path), "--diff", stdout=out)
    told = out.getvalue()
    assert "idle.percent 50 → 5" in told
    assert "cores 1.5 → –" in told
    assert "part_of – → lab/all" in told
    assert "price 2.5 → 1.230001" in told
    assert "micro" not in told
    assert "milli" not in told


def test_policies_of_a_quota_are_as_its_list_says_and_stay_without_one(tmp_path: Path) -> None:
    lay_ground()
    make_user("ann")
    quota = make_quota(make_workspace("vision"), Cluster.objects.get(), "train")

    def site(policies: str) -> str:
        return f"version: 1\nworkspaces: {{vision: {{quotas: {{local: {{train: {{{policies}}}}}}}}}}}\n"

    def stored() -> list[tuple[str, str, int | None]]:
        rows = quota.policies.all()
        return sorted((row.role, row.user.username if row.user else "", row.job_gpus) for row in rows)

    run("apply", tmp_path / "a", site("policies: [{job_gpus: 4}, {person: ann, job_gpus: 8}]"))
    assert stored() == [("", "", 4), ("", "ann", 8)]
    run("apply", tmp_path / "a", site("gpus: 3"))
    assert stored() == [("", "", 4), ("", "ann", 8)]
    told = run("apply", tmp_path / "a", site("policies: [{person: ann, job_gpus: 2}, {role: viewer}]"))
    assert "job_gpus 8 → 2" in told
    assert stored() == [("", "ann", 2), ("viewer", "", None)]
    run("apply", tmp_path / "a", site("policies: []"))
    assert stored() == []


def test_policies_that_contradict_themselves_are_named_at_their_place(tmp_path: Path) -> None:
    lay_ground()
    make_user("ann")
    make_quota(make_workspace("vision"), Cluster.objects.get(), "train")
    text = """\
version: 1
workspaces:
  vision:
    quotas:
      local:
        train:
          policies:
            - {role: viewer, person: ann}
            - {person: nobody}
            - {time_limit_minutes: 5, default_minutes: 6}
            - {time_limit_minutes: 5, by_workspace: true}
            - {by_workspace: true}
"""
    with pytest.raises(CommandError) as refused:
        run("apply", tmp_path / "a", text)
    told = str(refused.value).splitlines()
    assert [line.partition("a:")[2].partition(":")[0] for line in told] == ["8", "9", "10", "12"]
    assert not JobPolicy.objects.exists()


def test_site_file_that_names_no_person_adds_nobody_and_tells_of_groups(tmp_path: Path) -> None:
    ann = make_user("ann")
    make_workspace("vision")
    text = "version: 1\npeople: {ann: {groups: [eyes]}}\ngroups: {eyes: {workspaces: {vision: operator}}}\n"
    told = run("apply", tmp_path / "site.yaml", text)
    assert "! 1 more membership by groups." in told
    assert Membership.objects.get(user=ann).by_groups
    assert AuditEntry.objects.filter(content_type__model="localgroup").exists()
    told = run("apply", tmp_path / "site.yaml", "version: 1\npeople: {ann: {groups: []}}\n")
    assert "~ /people/ann/groups: groups ['eyes'] → –" in told
    assert not Membership.objects.exists()
