"""HTTP through the gateway is what the browser asked and what the job answered."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterator

import httpx
import pytest
from pytest_django import Settings

from jobs.models import Endpoint, Replica
from jobs.states import ReplicaState
from tests.jobs.access.gateway.served import Browser, Job, Served
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


def test_gateway_passes_each_http_method_unchanged(
    browser: Browser, host: str, subtests: pytest.Subtests
) -> None:
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]:
        with subtests.test(method=method):
            answer = browser.request(method, host, "/anything", content=b"body" if method != "GET" else None)
            assert answer.headers["x-method"] == method
            assert answer.content == (b"hello" if method == "GET" else b"body")


def test_gateway_head_response_has_headers_and_no_body(browser: Browser, host: str) -> None:
    answer = browser.request("HEAD", host, "/bytes/1000")
    assert (answer.status_code, answer.headers["content-length"], answer.content) == (200, "1000", b"")


def test_gateway_neither_decodes_nor_normalizes_path_and_query(
    browser: Browser, host: str, job: Job, subtests: pytest.Subtests
) -> None:
    for target in [
        "/a/b?x=1&x=2&y=%2F",
        "/%E4%BD%A0%E5%A5%BD/%2e%2e/a%20b",
        "//double//slash",
        "/a/../b/./c",
        "/;p=1?",
        "/x?next=http://elsewhere/&a=b+c",
        "/%00%0d%0aX-Evil:1",
    ]:
        with subtests.test(target=target):
            browser.request("GET", host, target)
            assert job.seen[-1][1] == target.removesuffix("?")


def test_gateway_streams_large_bodies_both_ways(browser: Browser, host: str) -> None:
    block = os.urandom(1 << 20)

    def upload() -> Iterator[bytes]:
        for _number in range(48):
            yield block

    assert browser.request("POST", host, "/length", content=upload()).text == str(48 << 20)
    answer = browser.request("GET", host, f"/bytes/{48 << 20}")
    assert hashlib.sha256(answer.content).digest() == hashlib.sha256(b"x" * (48 << 20)).digest()


def test_gateway_refuses_body_over_the_limit(browser: Browser, host: str, settings: Settings) -> None:
    settings.CONSOLE_GATEWAY_BODY_MIB = 1
    told = browser.request("POST", host, "/length", content=b"x" * (2 << 20))
    counted = browser.request("POST", host, "/length", content=iter([b"x" * (1 << 20)] * 2))
    assert (told.status_code, counted.status_code) == (413, 413)


def test_gateway_streams_events_and_ends_them_with_the_browser(
    browser: Browser, host: str, job: Job, served: Served
) -> None:
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies(host).items())
    with (
        httpx.Client(trust_env=False, timeout=60) as client,
        client.stream(
            "GET",
            f"http://127.0.0.1:{served.port}/events",
            headers={"Host": f"{host}:{served.port}", "Cookie": cookie},
        ) as answer,
    ):
        assert next(answer.iter_lines()) == "data: first"
        assert not job.left.is_set()
    assert wait_for(job.left.is_set)


def test_gateway_response_cut_short_is_an_error(browser: Browser, host: str) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        browser.request("GET", host, "/broken")


def test_gateway_not_modified_response_has_no_body_and_keeps_connection(browser: Browser, host: str) -> None:
    assert browser.request("GET", host, "/not-modified").status_code == 304
    assert browser.request("GET", host, "/page").status_code == 200


def test_gateway_rewrites_job_redirects_to_its_public_address(
    browser: Browser, host: str, job: Job, served: Served, subtests: pytest.Subtests
) -> None:
    for to, arrives in [
        ("/elsewhere?a=b", "/elsewhere?a=b"),
        ("http://localhost:{job}/lab?x=1", "http://{host}:{console}/lab?x=1"),
        ("http://127.0.0.1:{job}//evil/", "http://{host}:{console}//evil/"),
        ("https://example.com/login", "https://example.com/login"),
    ]:
        with subtests.test(to=to, arrives=arrives):
            names = {"job": job.port, "host": host, "console": served.port}
            answer = browser.request("GET", host, f"/redirect?to={to.format(**names)}")
            assert answer.headers["location"] == arrives.format(**names)


def test_gateway_sends_the_job_its_local_host_and_its_public_one(
    browser: Browser, host: str, job: Job, served: Served
) -> None:
    origin = f"http://{host}:{served.port}"
    browser.request(
        "POST",
        host,
        "/",
        {
            "Origin": origin,
            "Referer": f"{origin}/lab?x=1",
            "X-Forwarded-Host": "evil.example",
            "X-Forwarded-For": "1.2.3.4",
            "Forwarded": "host=evil.example",
            "Connection": "close, X-Mine",
            "X-Mine": "dropped",
            "Upgrade": "h2c",
            "Authorization": "token abc",
        },
    )
    told = job.headers()
    assert told["host"] == f"localhost:{job.port}"
    assert told["referer"] == f"http://localhost:{job.port}/lab?x=1"
    assert told["x-forwarded-host"] == f"{host}:{served.port}"
    assert (told["x-forwarded-for"], told["x-forwarded-proto"]) == ("127.0.0.1", "http")
    assert told["authorization"] == "token abc"
    assert not {"origin", "forwarded", "x-mine", "upgrade", "user-agent "} & set(told)


def test_gateway_response_has_policies_of_the_job_and_the_gateway(browser: Browser, host: str) -> None:
    answer = browser.request("GET", host, "/page")
    policies = answer.headers.get_list("content-security-policy")
    assert policies == ["default-src 'self'", "frame-ancestors 'self'"]
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert "alt-svc" not in answer.headers
    assert len(answer.headers.get_list("date")) == 1


def test_gateway_port_not_yet_listening_shows_a_refreshing_page(browser: Browser, endpoint: Endpoint) -> None:
    Endpoint.objects.update(ready=False)
    answer = browser.open(endpoint)
    assert answer.status_code == 503
    assert 'http-equiv="refresh"' in answer.text
    assert answer.headers["retry-after"] == "2"


def test_gateway_refuses_an_ended_replica(browser: Browser, endpoint: Endpoint, job: Job) -> None:
    Replica.objects.update(state=ReplicaState.FAILED)
    answer = browser.open(endpoint)
    assert (answer.status_code, job.seen) == (410, [])


def test_gateway_reports_a_port_without_response(browser: Browser, endpoint: Endpoint) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        Endpoint.objects.update(port=nobody.getsockname()[1])
        answer = browser.open(endpoint)
    assert answer.status_code == 502
    assert "No response" in answer.text


def test_gateway_pages_are_in_the_language_of_the_user(browser: Browser, endpoint: Endpoint) -> None:
    Replica.objects.update(state=ReplicaState.FAILED)
    browser.open(endpoint)
    answer = browser.get(browser.host(endpoint), "/", Accept_Language="zh-CN,zh;q=0.9")
    assert '<html lang="zh-hans">' in answer.text
