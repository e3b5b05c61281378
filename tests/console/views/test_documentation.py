"""The documentation as pages of the console."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from console.documentation import pages
from tests.factories import make_user
from tests.jobs.web.conftest import browser, seen

pytestmark = pytest.mark.django_db


Answers = dict[str, tuple[int, str]]
"""Status and text by address; no text of what is no page."""


@pytest.fixture(scope="module")
def answers() -> Answers:
    """What was answered before: many pages lead to one."""
    return {}


@pytest.mark.parametrize("name", pages.list_pages())
def test_documentation_links_and_images_all_resolve(answers: Answers, name: str) -> None:
    client = browser(make_user("alice"))

    def ask(address: str) -> tuple[int, str]:
        if address not in answers:
            answer = client.get(address)
            is_page = answer.headers["Content-Type"].startswith("text/html")
            answers[address] = answer.status_code, seen(answer) if is_page else ""
        return answers[address]

    _status, page = ask(pages.page_url(name))
    body = page.partition("<article")[2].partition("</article>")[0]
    for target in set(re.findall(r'(?:href|src)="(/[^"]*)"', body)):
        address, _hash, anchor = target.partition("#")
        status, text = ask(address)
        assert status == 200, target
        assert not anchor or f'id="{anchor}"' in text, target


def test_reference_page_is_made_from_the_code_and_its_name_is_a_link() -> None:
    client = browser(make_user("alice"))
    page = seen(client.get(pages.page_url("compatible-apis")))
    assert '<a href="/help/vendor-apis"><code>vendor-apis.md</code></a>' in page
    assert "<code>CreateJob</code>" in seen(client.get("/help/vendor-apis"))


def test_file_named_by_a_page_is_sent_as_a_download() -> None:
    client = browser(make_user("alice"))
    assert "/help/monitoring/alerts.yaml" in seen(client.get(pages.page_url("monitoring")))
    answer = client.get("/help/monitoring/alerts.yaml")
    assert answer["Content-Disposition"] == 'attachment; filename="alerts.yaml"'
    assert b"ClusterSilent" in answer.content


def test_raw_html_in_documentation_is_shown_as_text(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "DOCS", tmp_path)
    pages.DOCS.joinpath("README.md").write_text("# A <script>\n\n<b onclick=x>b</b>\n")
    shown = pages.render.__wrapped__("README")
    assert "<b" not in shown.html
    assert shown.title == "A <script>"


def test_unknown_page_is_not_found() -> None:
    client = browser(make_user("alice"))
    for name in ("nothing", "../README", "images/job"):
        assert client.get(f"/help/{name}").status_code == 404


def test_documentation_without_sign_in_redirects_to_sign_in() -> None:
    assert browser().get(reverse("documentation")).status_code == 302
