"""Signatures of Baidu's own clients, and those that are refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from django.conf import LazySettings
from django.http import HttpResponse
from django.test import Client
from django.urls import resolve

from jobs import signatures
from jobs.live import bodies
from jobs.models import Job
from jobs.signatures import SignedRequest
from quotas.accounts import access_keys
from quotas.models import ReadOnly, User
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.aihc.conftest import BODY, HOST, Aihc, as_user, read, refused

pytestmark = pytest.mark.django_db
QUERY = "action=DescribeJobs&resourcePoolId=local"


DATE = "2026-11-24T06:49:08Z"
CLI_DATE = "2026-11-24T06:49:12Z"
JSON = {"host": "127.0.0.1:8765", "content-type": "application/json"}

VECTORS = {
    "SDK 0.9.79, CreateJob, no listed headers": (
        SignedRequest(
            "POST",
            "/",
            "action=CreateJob&queueID=vision%2Flocal%2Fdefault&resourcePoolId=local",
            {**JSON, "content-length": "135", "x-bce-date": DATE, "x-api-version": "v2"},
            b"",
        ),
        f"bce-auth-v1/JCAKexample/{DATE}/1800//e1b2cd06a4a5fe76e70457e4889a20e2bdfa03018e9294012052b286e22af13f",
    ),
    "SDK 0.9.79, DescribeResourcePools, host alone": (
        SignedRequest(
            "GET",
            "/",
            "action=DescribeResourcePools&keyword=a%20b%2A~%C3%A9%2F&resourcePoolType=common",
            {**JSON, "content-length": "0", "x-bce-date": DATE, "version": "v2"},
            b"",
        ),
        (
            f"bce-auth-v1/JCAKexample/{DATE}/1800/host/"
            "61dd7519572946a3960e4bc82198119725daf748b93225e21e8c5d543bc1ad54"
        ),
    ),
    "aihc 1.1.1, list of pools": (
        SignedRequest(
            "GET", "/api/v1/resourcepools", "pageSize=20&pageNo=1", {**JSON, "x-bce-date": CLI_DATE}, b""
        ),
        (
            f"bce-auth-v1/JCAKexample/{CLI_DATE}/1800/content-type;host;x-bce-date/"
            "637ad6abe30b842a23f30b02b88b49fd7a0afc272fc35b2d1d0a32b10bd34f5a"
        ),
    ),
    "aihc 1.1.1, new job": (
        SignedRequest(
            "POST",
            "/api/v1/aijobs",
            "resourcePoolId=local",
            {**JSON, "content-length": "362", "x-bce-date": CLI_DATE},
            b"",
        ),
        (
            f"bce-auth-v1/JCAKexample/{CLI_DATE}/1800/content-type;host;x-bce-date/"
            "6ddcae1e3b92abca31bb2c574732d2678099a2b3bca12987c5ccba9cbe617a81"
        ),
    ),
}
"""Requests of the real clients, recorded at a socket, with the secret `secret/+example`."""


@pytest.mark.parametrize("name", VECTORS)
def test_sign_bce_computes_signatures_of_real_clients(name: str) -> None:
    request, authorization = VECTORS[name]
    claim = signatures.parse_bce(authorization)

    assert claim is not None
    assert signatures.sign_bce(request, claim, "secret/+example") == claim.signature
    assert signatures.sign_bce(request, claim, "another") != claim.signature


def call(
    owner: Aihc, authorization: str, query: str = QUERY, body: str = "{}", **headers: str
) -> HttpResponse:
    answer = owner._client.generic(
        "POST",
        f"/?{query}",
        body,
        content_type="application/json",
        headers={"Host": HOST, "Authorization": authorization, **headers},
    )
    return cast("HttpResponse", answer)


def test_signature_right_is_accepted(owner: Aihc) -> None:
    read(owner.v2("DescribeJobs", {}, resourcePoolId="local"))


def test_signature_tampered_query_is_refused(owner: Aihc) -> None:
    signature = owner.authorization("POST", "/", QUERY)

    refused(call(owner, signature, "action=DescribeJobs&resourcePoolId=other"), 400, "SignatureDoesNotMatch")


@pytest.mark.parametrize(
    ("shift", "seconds"),
    [
        (timedelta(hours=-2), 1800),
        (timedelta(minutes=20), 1800),
        (timedelta(minutes=-1), 5),
        (timedelta(hours=-2), 10**8),
    ],
)
def test_signature_stale_is_refused(owner: Aihc, shift: timedelta, seconds: int) -> None:
    signature = owner.authorization("POST", "/", QUERY, signed_at=datetime.now(UTC) + shift, seconds=seconds)

    refused(call(owner, signature), 403, "RequestTimeTooSkewed")


@pytest.mark.parametrize("year", [1, 9999])
def test_signature_of_senseless_date_is_refused(owner: Aihc, year: int) -> None:
    signature = owner.authorization("POST", "/", QUERY, signed_at=datetime(year, 1, 1, tzinfo=UTC))
    signature = signature.replace("/1-01-01T", "/0001-01-01T")

    refused(call(owner, signature), 403, "RequestTimeTooSkewed")


def test_signature_of_unknown_key_is_refused(owner: Aihc) -> None:
    stranger = Aihc("JCAKnobody", owner.secret)

    refused(stranger.v2("DescribeJobs", {}, resourcePoolId="local"), 403, "InvalidAccessKeyId")


def test_signature_with_wrong_secret_is_refused(owner: Aihc) -> None:
    refused(
        Aihc(owner.key_id, "x").v2("DescribeJobs", {}, resourcePoolId="local"), 400, "SignatureDoesNotMatch"
    )


def test_signature_of_revoked_key_is_refused(owner: Aihc, people: People) -> None:
    access_keys.revoke_all(people.owner)

    refused(owner.v2("DescribeJobs", {}, resourcePoolId="local"), 403, "InvalidAccessKeyId")


def test_signature_of_inactive_person_is_refused(owner: Aihc) -> None:
    User.objects.update(is_active=False)

    refused(owner.v2("DescribeJobs", {}, resourcePoolId="local"), 403, "InvalidAccessKeyId")


def test_signature_without_host_is_refused(owner: Aihc) -> None:
    signature = owner.authorization("POST", "/", QUERY, headers=("x-bce-date",))

    refused(call(owner, signature), 400, "InvalidHTTPAuthHeader")


@pytest.mark.parametrize("authorization", ["bce-auth-v1/", "bce-auth-v1/a/b/c/d/e", "bce-x", "Bearer x"])
def test_signature_malformed_is_refused(owner: Aihc, authorization: str) -> None:
    refused(call(owner, authorization, **{"X-API-Version": "v2"}), 400, "InvalidHTTPAuthHeader")


def test_request_without_signature_is_refused(db: None) -> None:
    answer = Client().post(
        f"/?{QUERY}", "{}", content_type="application/json", headers={"X-API-Version": "v2"}
    )

    refused(cast("HttpResponse", answer), 403, "AccessDenied")


def test_session_does_not_authenticate_api(people: People) -> None:
    client = Client()
    client.force_login(people.owner)

    answer = client.post(f"/?{QUERY}", "{}", content_type="application/json", headers={"X-API-Version": "v2"})

    refused(cast("HttpResponse", answer), 403, "AccessDenied")


@pytest.mark.parametrize("path", ["/", "/api/v1/aijobs"])
def test_query_of_too_many_values_is_refused(owner: Aihc, path: str) -> None:
    query = "&".join(["action=DescribeJobs", *["a=1"] * 7000])
    answer = owner._client.get(
        f"{path}?{query}",
        headers={"Host": HOST, "Authorization": owner.authorization("GET", path, query)},
    )

    refused(cast("HttpResponse", answer), 400, "InvalidParam")


@pytest.mark.parametrize("is_strict", [True, False])
def test_home_page_of_browser_is_no_api(people: People, is_strict: bool) -> None:
    client = Client(enforce_csrf_checks=is_strict)
    client.force_login(people.owner)

    assert client.get(f"/?{QUERY}").status_code == 200
    assert client.get("/").headers["Content-Type"].startswith("text/html")
    assert client.post(f"/?{QUERY}").status_code in {403, 405}


def test_unknown_action_is_refused_as_vendor_does(owner: Aihc) -> None:
    refused(owner.v2("DescribeEverything", {}), 404, "NoSuchAction")
    refused(owner.v2("CreateJob"), 404, "NoSuchAction")


@pytest.mark.parametrize("path", ["/api/v1/aijobs/x/y", "/api/v1/resourcepools/x/y/z"])
def test_unknown_address_is_refused_as_vendor_does(owner: Aihc, path: str) -> None:
    refused(owner.send("GET", path), 404, "NoSuchAction")


def test_read_only_console_refuses_without_503(owner: Aihc) -> None:
    ReadOnly.objects.create(why="maintenance")

    answer = owner.v2("CreateJob", BODY, resourcePoolId="local", queueID="default")

    refused(answer, 403, "ServiceReadOnly")
    assert not Job.objects.exists()
    read(owner.v2("DescribeJobs", {}, resourcePoolId="local"))


def test_body_too_large_is_refused(owner: Aihc) -> None:
    big = {**BODY, "command": "x" * (20 * 2**20)}

    answer = owner.v2("CreateJob", big, resourcePoolId="local", queueID="default")

    refused(answer, 413, "EntityTooLarge")


def test_key_of_member_reads_only_own_rights(people: People) -> None:
    read(as_user(people.member, "read").v2("DescribeJobs", {}, resourcePoolId="local"))


def test_root_body_limit_is_small_without_signature(settings: LazySettings) -> None:
    view = resolve("/").func
    signed = [(b"authorization", b"bce-auth-v1/a/b/c//d")]

    assert bodies.most_of(view, []) == bodies.ANONYMOUS_BYTES
    assert bodies.most_of(view, signed) == settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    assert not bodies.is_taken(view, "POST")
