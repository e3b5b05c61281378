"""Compressed answers: which ones, and what stays as it is."""

from __future__ import annotations

import gzip

import pytest
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.test import RequestFactory

from console.middleware.compression import compress_answers
from tests.factories import make_job
from tests.jobs.web.conftest import People, browser, people

__all__ = ["people"]

GZIP = {"Accept-Encoding": "gzip, deflate"}
LONG = "a line\n" * 500


Answer = HttpResponse | StreamingHttpResponse


def answered(response: Answer, **headers: str) -> HttpResponseBase:
    def view(_request: HttpRequest) -> Answer:
        return response

    return compress_answers(view)(RequestFactory().get("/", headers=headers or GZIP))


def test_page_is_compressed_for_browsers_that_accept_it(people: People) -> None:
    plain, compressed = browser(people.owner).get("/jobs/"), browser(people.owner).get("/jobs/", headers=GZIP)
    assert "Content-Encoding" not in plain.headers
    assert compressed.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in plain.headers["Vary"]
    assert len(compressed.content) < len(plain.content) / 2
    assert "<h1" in gzip.decompress(compressed.content).decode()


@pytest.mark.parametrize(
    "response",
    [
        HttpResponse("short"),
        HttpResponse(LONG, content_type="application/octet-stream"),
        HttpResponse(LONG, headers={"Cache-Control": "no-transform"}),
        StreamingHttpResponse(["data: 1\n\n"] * 500, content_type="text/event-stream"),
    ],
    ids=["short", "binary", "no-transform", "stream"],
)
def test_other_answers_are_sent_as_they_are(response: Answer) -> None:
    assert "Content-Encoding" not in answered(response).headers


def test_versioned_object_keeps_a_tag_that_if_match_takes(people: People) -> None:
    job = make_job(owner=people.owner, quota=people.quota, description="long " * 1000)
    client, address = browser(people.owner), f"/api/console/v1/jobs/{job.public_id}"
    read = client.get(address, headers=GZIP)
    assert len(read.content) > len(LONG)
    changed = client.patch(
        address,
        {"description": "short"},
        content_type="application/json",
        headers={**GZIP, "If-Match": read.headers["ETag"]},
    )
    assert changed.status_code == 200
