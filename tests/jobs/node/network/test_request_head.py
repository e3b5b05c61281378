"""Heads of jobs' requests: one meaning each, for whoever reads them next."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.node.network.request_head import END, BadRequest, RequestHead

IDENTITY = ((b"job-console-attempt", b"i-job-1"),)


def head(first: bytes, *headers: bytes) -> RequestHead:
    return RequestHead.parse(b"\r\n".join((first, b"Host: x", *headers)) + END)


def test_head_keeps_what_the_console_needs() -> None:
    parsed = head(b"POST /v1/x?a=%20b HTTP/1.1", b"Content-Length: 3", b"Accept:  */* ", b"Connection: close")
    assert parsed.render(IDENTITY) == (
        b"POST /v1/x?a=%20b HTTP/1.1\r\nhost: job-console\r\nconnection: close\r\ncontent-length: 3\r\n"
        b"job-console-attempt: i-job-1\r\naccept: */*\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("first", "headers", "status"),
    [
        (b"GET / HTTP/1.0", [], 505),
        (b"GET / HTTP/2.0", [], 505),
        (b"GET /", [], 400),
        (b" GET / HTTP/1.1", [], 400),
        (b"GET  / HTTP/1.1", [], 400),
        (b"GET / HTTP/1.1 ", [], 400),
        (b"get / HTTP/1.1", [], 501),
        (b"CONNECT / HTTP/1.1", [], 501),
        (b"GET http://x/ HTTP/1.1", [], 400),
        (b"GET * HTTP/1.1", [], 400),
        (b"GET /\x00 HTTP/1.1", [], 400),
        (b"GET /%s HTTP/1.1" % (b"x" * 5000), [], 414),
        (b"GET / HTTP/1.1", [b"Host: y"], 400),
        (b"GET / HTTP/1.1", [b"Content-Length: 1", b"Content-Length: 1"], 400),
        (b"GET / HTTP/1.1", [b"Content-Length: 1, 1"], 400),
        (b"GET / HTTP/1.1", [b"Content-Length: +1"], 400),
        (b"GET / HTTP/1.1", [b"Content-Length: 1_0"], 400),
        (b"GET / HTTP/1.1", [b"Content-Length:"], 400),
        (b"GET / HTTP/1.1", [b"Content-Length: 1048577"], 413),
        (b"GET / HTTP/1.1", [b"Content-Length: 99999999999"], 400),
        (b"GET / HTTP/1.1", [b"Transfer-Encoding: chunked"], 411),
        (b"GET / HTTP/1.1", [b"Transfer-Encoding: identity", b"Content-Length: 1"], 411),
        (b"GET / HTTP/1.1", [b"Content-Length : 1"], 400),
        (b"GET / HTTP/1.1", [b"A: b", b" folded"], 400),
        (b"GET / HTTP/1.1", [b"A: b\nContent-Length: 5"], 400),
        (b"GET / HTTP/1.1", [b"A: b\rContent-Length: 5"], 400),
        (b"GET / HTTP/1.1", [b"A: \x00"], 400),
        (b"GET / HTTP/1.1", [b"no colon"], 400),
        (b"GET / HTTP/1.1", [b": none"], 400),
        (b"GET / HTTP/1.1", [b"A: b"] * 100, 431),
    ],
)
def test_unusual_head_is_refused(first: bytes, headers: list[bytes], status: int) -> None:
    with pytest.raises(BadRequest) as refused:
        head(first, *headers)
    assert refused.value.status == status


def test_head_without_host_is_refused() -> None:
    with pytest.raises(BadRequest):
        RequestHead.parse(b"GET / HTTP/1.1" + END)


@pytest.mark.parametrize(
    "name",
    [
        b"Job-Console-Attempt",
        b"JOB-CONSOLE-REPLICA",
        b"Job_Console_Attempt",
        b"job-console_other",
        b"X-Forwarded-For",
        b"Forwarded",
        b"Upgrade",
        b"Keep-Alive",
        b"Content_Length",
    ],
)
def test_head_passes_on_no_claim_of_identity(name: bytes) -> None:
    assert head(b"GET / HTTP/1.1", name + b": forged").headers == ()


WORDS = st.sampled_from(
    [
        *(
            b"GET / HTTP/1.1",
            b"\r\n",
            b"\r\n\r\n",
            b"\n",
            b"\r",
            b":",
            b": ",
            b" ",
            b"\t",
            b"\x00",
            b"Host: x",
        ),
        *(b"Content-Length: 5", b"Content-Length", b"Transfer-Encoding: chunked", b"0", b"5", b",", b"\xff"),
        *(b"Job-Console-Attempt: forged", b"job-console-replica", b"_", b"POST", b"HTTP/1.1", b"/"),
    ]
)


@given(st.lists(WORDS, max_size=12).map(b"".join) | st.binary(max_size=80))
def test_rendered_head_is_one_request_with_one_identity(tail: bytes) -> None:
    try:
        parsed = RequestHead.parse(b"GET / HTTP/1.1\r\nHost: x\r\n" + tail.replace(END, b"") + END)
    except BadRequest:
        return
    rendered = parsed.render(IDENTITY)
    assert rendered.count(END) == 1
    lines = rendered.removesuffix(END).split(b"\r\n")
    assert all(re.fullmatch(rb"[^\r\n\0]+", line) for line in lines)
    names = [line.partition(b":")[0].replace(b"_", b"-") for line in lines[1:]]
    assert [names.count(name) for name in (b"host", b"content-length", b"job-console-attempt")] == [1, 1, 1]
    assert b"transfer-encoding" not in names
    assert not [name for name in names if name.startswith(b"job-console-") and name != b"job-console-attempt"]
