"""The navigation and the workspaces around every page."""

from __future__ import annotations

from tests.factories import make_membership, make_workspace
from tests.jobs.web.conftest import People, browser


def test_navigation_marks_current_item_and_shows_administration_to_admins(people: People) -> None:
    context = browser(people.owner).get("/jobs/").context
    assert [item["label"] for item in context["nav"] if item["active"]] == ["Jobs"]
    assert "Administration" not in [item["label"] for item in context["nav"]]
    assert "Administration" in [item["label"] for item in browser(people.admin).get("/").context["nav"]]


def test_single_workspace_is_active_without_a_choice(people: People) -> None:
    [only] = browser(people.owner).get("/").context["workspaces"]
    assert (only["name"], only["active"]) == ("Vision", True)


def test_requested_workspace_of_several_is_active(people: People) -> None:
    make_membership(people.owner, make_workspace("speech", name="Speech"))
    client = browser(people.owner)
    active = [each["name"] for each in client.get("/jobs/").context["workspaces"] if each["active"]]
    assert active == ["All workspaces"]
    asked = client.get("/jobs/?workspace=speech").context["workspaces"]
    assert [each["name"] for each in asked if each["active"]] == ["Speech"]


def test_navigation_is_empty_before_sign_in(db: None) -> None:
    response = browser().get("/nowhere")
    assert "nav-item-link" not in response.content.decode()
