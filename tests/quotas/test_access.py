"""Who may see and do what."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from django.contrib.auth.models import AnonymousUser

from quotas.access import Verb, Visitor, can, may_submit, role_in, workspaces_of
from quotas.models import Membership, Role, User, Workspace

pytestmark = pytest.mark.django_db


@dataclass
class Thing:
    """Something of alice's in a workspace."""

    owner_id: int
    workspace_id: int
    is_public: bool = False


@dataclass
class Cast:
    """One of each."""

    workspace: Workspace
    people: dict[str, Visitor]
    thing: Thing


@pytest.fixture
def cast() -> Cast:
    workspace = Workspace.objects.create(slug="vision", name="Vision")
    people: dict[str, Visitor] = {"anonymous": AnonymousUser(), "stranger": User.objects.create_user("eve")}
    roles = {"owner": Role.DEVELOPER, "member": Role.DEVELOPER, "viewer": Role.VIEWER}
    roles |= {"operator": Role.OPERATOR, "workspace_admin": Role.ADMIN}
    for name, role in roles.items():
        user = User.objects.create_user(name)
        Membership.objects.create(workspace=workspace, user=user, role=role)
        people[name] = user
    people["superuser"] = User.objects.create_superuser("root")
    gone = User.objects.create_user("gone", is_active=False)
    Membership.objects.create(workspace=workspace, user=gone, role=Role.ADMIN)
    people["disabled"] = gone
    owner = people["owner"]
    assert isinstance(owner, User)
    return Cast(workspace, people, Thing(owner.pk, workspace.pk))


ALL = {Verb.LIST, Verb.READ, Verb.CONTROL, Verb.ENTER}
PRIVATE = {
    "owner": ALL,
    "operator": ALL,
    "workspace_admin": ALL,
    "superuser": ALL,
    "member": {Verb.LIST},
    "viewer": {Verb.LIST},
    "stranger": set(),
    "disabled": set(),
    "anonymous": set(),
}


@pytest.mark.parametrize("who", PRIVATE)
def test_private_object_is_limited_to_owner_and_admins(cast: Cast, who: str) -> None:
    assert {verb for verb in Verb if can(cast.people[who], verb, cast.thing)} == PRIVATE[who]


@pytest.mark.parametrize("who", PRIVATE)
def test_public_object_is_readable_by_members_only(cast: Cast, who: str) -> None:
    cast.thing.is_public = True
    expected = PRIVATE[who] | ({Verb.READ} if PRIVATE[who] else set())
    assert {verb for verb in Verb if can(cast.people[who], verb, cast.thing)} == expected


def test_owner_outside_the_workspace_has_no_access(cast: Cast) -> None:
    owner = cast.people["owner"]
    Membership.objects.filter(user=owner).delete()  # type: ignore[misc]
    assert not any(can(owner, verb, cast.thing) for verb in Verb)


def test_owner_as_viewer_may_read_but_not_submit(cast: Cast) -> None:
    owner = cast.people["owner"]
    Membership.objects.filter(user=owner).update(role=Role.VIEWER)  # type: ignore[misc]
    assert {verb for verb in Verb if can(owner, verb, cast.thing)} == {Verb.LIST, Verb.READ}
    assert not may_submit(owner, cast.workspace.pk)


def test_workspaces_of_a_user_are_those_of_their_memberships(cast: Cast) -> None:
    Workspace.objects.create(slug="other", name="Other")
    seen = {who: workspaces_of(person).count() for who, person in cast.people.items()}
    expected = dict.fromkeys(PRIVATE, 1) | {"stranger": 0, "disabled": 0, "anonymous": 0, "superuser": 2}
    assert seen == expected


def test_role_is_determined_per_workspace(cast: Cast) -> None:
    other = Workspace.objects.create(slug="other", name="Other")
    assert role_in(cast.people["owner"], cast.workspace.pk) is Role.DEVELOPER
    assert role_in(cast.people["owner"], other.pk) is None
    assert role_in(cast.people["superuser"], other.pk) is Role.ADMIN
