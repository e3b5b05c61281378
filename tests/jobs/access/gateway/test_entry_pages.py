"""The way in: one ticket, one browser, one endpoint, half a minute; and only for whoever may enter."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils.timezone import now
from pytest_django import Settings

from jobs.models import Attempt, Endpoint, EndpointVisit, Job
from quotas.encryption import decrypt
from quotas.models import Membership, Role, User
from tests.factories import make_endpoint, make_membership, make_user
from tests.jobs.access.gateway.served import CONSOLE, Browser
from tests.jobs.access.gateway.served import Job as ServedJob

pytestmark = pytest.mark.django_db(transaction=True)

NewBrowser = Callable[[], Browser]


def ticket_address(browser: Browser, endpoint: Endpoint, then: str = "/") -> str:
    """The address with a fresh ticket (path and query) that the console sent this browser to."""
    started = browser.get(browser.host(endpoint), f"/.job-console/start?next={then}")
    asked = started.headers["location"].partition(f":{browser.port}")[2]
    answer = browser.get(CONSOLE, asked)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"].partition(f":{browser.port}")[2])


def owner_of(endpoint: Endpoint) -> User:
    return User.objects.get(jobs__attempts__replicas__endpoints=endpoint)


def test_job_page_link_leads_to_endpoint_and_carries_its_token(
    browser: Browser, endpoint: Endpoint, job: ServedJob
) -> None:
    answer, way = browser.follow(CONSOLE, f"/endpoints/{endpoint.slug}/open?next=/lab/tree%3Fx=1")
    assert (answer.status_code, answer.text) == (200, "hello")
    assert [stop.partition("?")[0].partition("/")[2] for stop in way] == [
        f"endpoints/{endpoint.slug}/open",
        ".job-console/start",
        f"endpoints/{endpoint.slug}/open",
        ".job-console/enter",
        "lab/tree",
    ]
    assert job.seen[-1][1].startswith("/lab/tree?x=1&token=")
    assert not [stop for stop in way[:-1] if "token=" in stop]


def test_entry_cookie_is_host_only_and_hidden_from_scripts(
    browser: Browser, endpoint: Endpoint, settings: Settings
) -> None:
    address = ticket_address(browser, endpoint)
    answer = browser.get(browser.host(endpoint), address)
    (cookie,) = answer.headers.get_list("set-cookie")
    name, _equals, attributes = cookie.partition("=")
    assert name == "job-console"
    assert attributes.partition("; ")[2] == "Path=/; HttpOnly; SameSite=Lax"
    assert (answer.headers["cache-control"], answer.headers["referrer-policy"]) == ("no-store", "no-referrer")


def test_entry_gives_token_of_ray_dashboard_as_cookie(browser: Browser, endpoint: Endpoint) -> None:
    Endpoint.objects.filter(pk=endpoint.pk).update(token_name="ray-authentication-token")
    token = decrypt(Attempt.objects.get(pk=endpoint.replica.attempt_id).endpoint_token)
    answer = browser.get(browser.host(endpoint), ticket_address(browser, endpoint))
    _visit, cookie = answer.headers.get_list("set-cookie")
    assert cookie == f"ray-authentication-token={token}; Path=/; HttpOnly; SameSite=Lax"
    assert token not in answer.headers["location"]


def test_entry_cookies_behind_tls_are_secure_and_host_bound(
    browser: Browser, endpoint: Endpoint, settings: Settings
) -> None:
    settings.CONSOLE_TLS = True
    started = browser.get(browser.host(endpoint), "/.job-console/start")
    assert started.headers["location"].startswith("https://localhost:")
    assert started.headers["set-cookie"].startswith("__Host-job-console-browser=")
    assert started.headers["set-cookie"].endswith("; Secure")


def test_ticket_works_only_once(browser: Browser, endpoint: Endpoint) -> None:
    address = ticket_address(browser, endpoint)
    assert browser.get(browser.host(endpoint), address).status_code == 303
    assert browser.get(browser.host(endpoint), address).status_code == 403


def test_ticket_expires_after_half_a_minute(browser: Browser, endpoint: Endpoint) -> None:
    address = ticket_address(browser, endpoint)
    EndpointVisit.objects.update(created_at=now() - timedelta(seconds=31))
    assert browser.get(browser.host(endpoint), address).status_code == 403


def test_ticket_opens_only_its_own_endpoint(browser: Browser, endpoint: Endpoint, job: ServedJob) -> None:
    other = make_endpoint(endpoint.replica, port=job.port, label="other")
    address = ticket_address(browser, endpoint)
    browser.cookies(browser.host(other)).update(browser.cookies(browser.host(endpoint)))
    assert browser.get(browser.host(other), address).status_code == 403
    assert browser.get(browser.host(endpoint), address).status_code == 303


def test_ticket_of_another_user_is_refused_and_stays_valid(
    browser: Browser, endpoint: Endpoint, new_browser: NewBrowser
) -> None:
    address = ticket_address(browser, endpoint)
    thief = new_browser()
    thief.sign_in(make_user())
    assert thief.get(thief.host(endpoint), address).status_code == 403
    thief.get(thief.host(endpoint), "/.job-console/start")
    assert thief.get(thief.host(endpoint), address).status_code == 403
    assert browser.get(browser.host(endpoint), address).status_code == 303


def test_ticket_fetched_by_another_browser_is_refused(
    browser: Browser, endpoint: Endpoint, new_browser: NewBrowser
) -> None:
    thief = new_browser()
    started = thief.get(thief.host(endpoint), "/.job-console/start")
    asked = started.headers["location"].partition(f":{thief.port}")[2]
    tricked = browser.get(CONSOLE, asked)
    address = tricked.headers["location"].partition(f":{browser.port}")[2]
    assert browser.get(browser.host(endpoint), address).status_code == 403
    assert not browser.cookies(browser.host(endpoint))


def test_ticket_and_cookie_are_not_interchangeable(browser: Browser, endpoint: Endpoint, host: str) -> None:
    ticket = ticket_address(browser, endpoint).partition("ticket=")[2].partition("&")[0]
    cookies = browser.cookies(host)
    entered = cookies["job-console"]
    assert browser.get(host, f"/.job-console/enter?ticket={entered}&next=/").status_code == 403
    cookies["job-console"] = ticket
    assert browser.request("GET", host, "/").status_code == 401


def test_ticket_after_lost_right_is_refused_at_entry(browser: Browser, endpoint: Endpoint) -> None:
    address = ticket_address(browser, endpoint)
    Membership.objects.update(role=Role.VIEWER)
    assert browser.get(browser.host(endpoint), address).status_code == 403


@pytest.mark.parametrize(
    ("role", "status"), [(None, 404), (Role.VIEWER, 403), (Role.DEVELOPER, 403), (Role.ADMIN, 200)]
)
def test_console_issues_tickets_only_to_permitted_roles(
    endpoint: Endpoint, new_browser: NewBrowser, role: Role | None, status: int
) -> None:
    someone, visitor = make_user(), new_browser()
    if role:
        make_membership(someone, Job.objects.get().workspace, role)
    visitor.sign_in(someone)
    assert visitor.open(endpoint).status_code == status


def test_public_job_cannot_be_entered_by_a_member(endpoint: Endpoint, new_browser: NewBrowser) -> None:
    Job.objects.update(visibility="PUBLIC")
    someone, visitor = make_user(), new_browser()
    make_membership(someone, Job.objects.get().workspace)
    visitor.sign_in(someone)
    assert visitor.open(endpoint).status_code == 403


def test_signed_out_visitor_signs_in_and_reaches_the_requested_page(
    endpoint: Endpoint, new_browser: NewBrowser, job: ServedJob
) -> None:
    visitor = new_browser()
    answer, way = visitor.follow(visitor.host(endpoint), "/lab?path=a")
    assert way[-1].startswith(f"{CONSOLE}/sign-in?next=")
    assert answer.status_code == 200
    visitor.sign_in(owner_of(endpoint))
    answer, _way = visitor.follow(visitor.host(endpoint), "/lab?path=a")
    assert answer.text == "hello"
    assert job.seen[-1][1].startswith("/lab?path=a&token=")


def test_gateway_without_a_visit_answers_scripts_and_sockets_401(
    endpoint: Endpoint, new_browser: NewBrowser, job: ServedJob
) -> None:
    visitor = new_browser()
    host = visitor.host(endpoint)
    assert visitor.request("GET", host, "/api/contents").status_code == 401
    assert visitor.request("POST", host, "/api/contents").status_code == 401
    assert visitor.socket_status(host, "/socket") == 401
    assert job.seen == []


def test_entry_redirect_never_leads_to_another_site(
    browser: Browser, endpoint: Endpoint, subtests: pytest.Subtests
) -> None:
    for then in [
        "//evil.example/",
        "https://evil.example/",
        "/\\evil.example/",
        "\\\\evil.example",
        "/%09/evil.example",
        "javascript:alert(1)",
        "/x%0d%0aSet-Cookie:%20a=b",
        "evil.example",
        "",
    ]:
        with subtests.test(then=then):
            _answer, way = browser.follow(CONSOLE, f"/endpoints/{endpoint.slug}/open?next={then}")
            assert way[-1].startswith(f"{browser.host(endpoint)}/?token=")


def test_entry_start_ignores_an_unknown_console_address(
    browser: Browser, endpoint: Endpoint, subtests: pytest.Subtests
) -> None:
    for console in ["evil.example", "evil.example:8000", "localhost@evil.example", "a/b"]:
        with subtests.test(console=console):
            answer = browser.get(browser.host(endpoint), f"/.job-console/start?console={console}")
            assert answer.headers["location"].startswith(f"http://localhost:{browser.port}/endpoints/")


def test_entry_start_returns_to_the_console_host_used_by_the_visitor(
    browser: Browser, endpoint: Endpoint
) -> None:
    console = f"127.0.0.1:{browser.port}"
    answer = browser.get(browser.host(endpoint), f"/.job-console/start?console={console}")
    assert answer.headers["location"].startswith(f"http://{console}/endpoints/")


def test_ticket_request_with_invalid_digest_is_refused(browser: Browser, endpoint: Endpoint) -> None:
    answer = browser.get(CONSOLE, f"/endpoints/{endpoint.slug}/open?browser=0&next=/")
    assert (answer.status_code, EndpointVisit.objects.count()) == (400, 0)


def test_expired_visits_are_deleted(browser: Browser, endpoint: Endpoint) -> None:
    ticket_address(browser, endpoint)
    EndpointVisit.objects.update(created_at=now() - timedelta(seconds=31))
    browser.open(endpoint)
    assert EndpointVisit.objects.get().entered_at is not None
