"""Both of Alibaba's signatures at addresses that read, create and change: those accepted, those refused."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Final, cast

import pytest
from django.conf import LazySettings
from django.http import HttpResponse
from django.test import Client
from structlog.testing import capture_logs

from jobs import signatures
from jobs.live import bus
from jobs.models import Job
from jobs.signatures import SignedRequest
from quotas.accounts import access_keys, tokens
from quotas.models import AccessKey, UsedSignature, User
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.clients import HOST
from tests.jobs.api.vendors.pai_dlc.service_calls import error_of
from tests.serving import RedisServer

pytestmark = pytest.mark.django_db

ACS3: Final = signatures.ACS3
ROA: Final = signatures.ROA
EACH_SCHEME: Final = pytest.mark.parametrize("scheme", [ACS3, ROA])
EACH_CALL: Final = pytest.mark.parametrize("call", ["list", "create", "stop"])
MESSAGE_ALONE: Final = pytest.mark.once
"""Decided by the message and a key; on each database the rest of these tests looks at keys and nonces."""

EACH_CHANGE: Final = pytest.mark.parametrize("call", ["create", "stop"])

MISMATCH: Final = (400, "SignatureDoesNotMatch")
STALE: Final = (400, "InvalidTimeStamp.Expired")
REPLAYED: Final = (400, "SignatureNonceUsed")
MALFORMED: Final = (400, "IncompleteSignature")
UNKNOWN_KEY: Final = (404, "InvalidAccessKeyId.NotFound")

CREATION: Final = {
    "DisplayName": "signed",
    "JobType": "PyTorchJob",
    "JobSpecs": [
        {
            "Type": "Worker",
            "Image": "python:3.12",
            "PodCount": 1,
            "ResourceConfig": {"CPU": "1", "Memory": "1Gi"},
        }
    ],
    "UserCommand": "python train.py",
}


@dataclass(frozen=True, slots=True)
class Message:
    """A request as it goes over the wire."""

    method: str
    path: str
    query: str
    body: bytes
    headers: Mapping[str, str]

    def with_header(self, name: str, value: str) -> Message:
        """Return the message with a header set, and its signature as it was."""
        return replace(self, headers={**self.headers, name: value})

    def send(self) -> HttpResponse:
        """Return the answer to the message."""
        address = f"{self.path}?{self.query}" if self.query else self.path
        client: Any = Client(raise_request_exception=False)
        headers = dict(self.headers)
        content_type = headers.pop("content-type", "application/octet-stream")
        answer = client.generic(self.method, address, self.body, content_type, headers=headers)
        return cast("HttpResponse", answer)


Draft = Callable[..., Message]
"""Returns one of the three calls, unsigned."""


@pytest.fixture
def draft(job: Job) -> Draft:
    def make(call: str, query: str = "") -> Message:
        method, path, body = {
            "list": ("GET", "/api/v1/jobs", b""),
            "create": ("POST", "/api/v1/jobs", json.dumps(CREATION).encode()),
            "stop": ("POST", f"/api/v1/jobs/dlc{job.public_id}/stop", b""),
        }[call]
        return Message(method, path, query, body, {"host": HOST, "accept": "application/json"})

    return make


@dataclass(frozen=True)
class Signer:
    """The holder of an access key, who signs in one scheme."""

    scheme: str
    key_id: str
    secret: str

    def sign(
        self,
        message: Message,
        *,
        signed_at: datetime | None = None,
        omit: str = "",
        is_header_listed: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> Message:
        """Return the message with a signature.

        `headers` are set before it is computed; `omit` is left out of the message, or of
        the signed headers alone with `is_header_listed` false.
        """
        moment = signed_at or datetime.now(UTC)
        every = {**message.headers, "x-acs-signature-nonce": uuid.uuid4().hex}
        if self.scheme == ACS3:
            every["x-acs-date"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
            every["x-acs-content-sha256"] = hashlib.sha256(message.body).hexdigest()
        else:
            every["date"] = format_datetime(moment, usegmt=True)
        if message.body:
            every["content-type"] = "application/json; charset=utf-8"
        every |= headers or {}
        names = sorted(name for name in every if is_header_listed or name != omit)
        if is_header_listed:
            every.pop(omit, None)
        request = SignedRequest(message.method, message.path, message.query, every, message.body)
        return replace(message, headers={**every, "Authorization": self._authorize(request, names)})

    def _authorize(self, request: SignedRequest, names: list[str]) -> str:
        if self.scheme == ROA:
            return f"{ROA} {self.key_id}:{signatures.sign_roa(request, self.secret)}"
        signature = signatures.sign_acs3(request, names, self.secret)
        return f"{ACS3} Credential={self.key_id},SignedHeaders={';'.join(names)},Signature={signature}"


def signer(scheme: str, user: User, *scopes: str) -> Signer:
    issued = access_keys.issue(user, scopes=scopes or tokens.SCOPES)
    return Signer(scheme, issued.row.key_id, issued.secret)


@pytest.fixture
def owner(scheme: str, people: People) -> Signer:
    return signer(scheme, people.owner)


@pytest.fixture
def with_redis(settings: LazySettings) -> Iterator[RedisServer]:
    server = RedisServer()
    server.start()
    settings.REDIS_URL = server.url
    _forget_redis()
    yield server
    server.remove()
    _forget_redis()


@pytest.fixture
def without_redis(settings: LazySettings) -> Iterator[None]:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    _forget_redis()
    yield
    _forget_redis()


def _forget_redis() -> None:
    """Forget what a process remembers of Redis, as a restart does."""
    bus.client.cache_clear()
    bus._away_until = 0.0


def accepted(answer: HttpResponse) -> Any:
    assert answer.status_code == 200, answer.content
    return json.loads(answer.content)


# Whose signature it is


@EACH_SCHEME
@EACH_CALL
def test_signature_right_is_accepted(owner: Signer, draft: Draft, call: str) -> None:
    accepted(owner.sign(draft(call)).send())


@EACH_SCHEME
@EACH_CALL
def test_signature_with_wrong_secret_is_refused(owner: Signer, draft: Draft, call: str) -> None:
    wrong = replace(owner, secret="wrong")

    assert error_of(wrong.sign(draft(call)).send()) == MISMATCH
    assert Job.objects.count() == 1


@EACH_SCHEME
@EACH_CALL
def test_signature_of_unknown_key_is_refused(owner: Signer, draft: Draft, call: str) -> None:
    assert error_of(replace(owner, key_id="JCAKnobody").sign(draft(call)).send()) == UNKNOWN_KEY


@EACH_SCHEME
def test_signature_of_revoked_key_is_refused(owner: Signer, draft: Draft, people: People) -> None:
    access_keys.revoke_all(people.owner)

    assert error_of(owner.sign(draft("list")).send()) == UNKNOWN_KEY


@EACH_SCHEME
def test_signature_of_expired_key_is_refused(owner: Signer, draft: Draft) -> None:
    AccessKey.objects.update(expires_at=datetime.now(UTC) - timedelta(seconds=1))

    assert error_of(owner.sign(draft("list")).send()) == UNKNOWN_KEY


@EACH_SCHEME
def test_signature_of_disabled_owner_is_refused(owner: Signer, draft: Draft, people: People) -> None:
    User.objects.filter(pk=people.owner.pk).update(is_active=False)

    assert error_of(owner.sign(draft("list")).send()) == UNKNOWN_KEY


@EACH_SCHEME
@EACH_CHANGE
def test_signature_of_key_without_scope_is_refused(
    scheme: str, people: People, draft: Draft, call: str
) -> None:
    reader = signer(scheme, people.owner, "read")

    assert error_of(reader.sign(draft(call)).send()) == (403, "NoPermission")
    accepted(reader.sign(draft("list")).send())


@EACH_SCHEME
def test_signature_of_key_that_lost_scope_is_refused(owner: Signer, draft: Draft) -> None:
    AccessKey.objects.update(scopes=[])

    assert error_of(owner.sign(draft("list")).send()) == (403, "NoPermission")


@EACH_SCHEME
def test_signature_of_stranger_stops_no_job(scheme: str, people: People, draft: Draft) -> None:
    answer = signer(scheme, people.stranger).sign(draft("stop")).send()

    assert error_of(answer) == (404, "ResourceNotFound")


@EACH_SCHEME
@pytest.mark.parametrize("person", ["owner", "manager", "admin"])
def test_signature_of_whoever_may_stops_job(scheme: str, people: People, draft: Draft, person: str) -> None:
    accepted(signer(scheme, getattr(people, person)).sign(draft("stop")).send())


# When it was signed, and how often it was sent


@MESSAGE_ALONE
@EACH_SCHEME
@EACH_CALL
@pytest.mark.parametrize("minutes", [-16, 16, -600, 600])
def test_signature_of_wrong_clock_is_refused(owner: Signer, draft: Draft, call: str, minutes: int) -> None:
    moment = datetime.now(UTC) + timedelta(minutes=minutes)

    assert error_of(owner.sign(draft(call), signed_at=moment).send()) == STALE


@MESSAGE_ALONE
@EACH_SCHEME
@pytest.mark.parametrize("minutes", [-14, 14])
def test_signature_of_clock_within_window_is_accepted(owner: Signer, draft: Draft, minutes: int) -> None:
    moment = datetime.now(UTC) + timedelta(minutes=minutes)

    accepted(owner.sign(draft("list"), signed_at=moment).send())


@MESSAGE_ALONE
@EACH_SCHEME
@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "Mon, 01 Jan 2024 00:00:00 +99999999999999999999",
        f"Mon, 1 Jan {'9' * 40} 00:00:00 GMT",
        "Fri, 31 Dec 9999 23:59:59 -2359",
        "é",
    ],
)
def test_signature_of_senseless_date_is_refused(owner: Signer, draft: Draft, text: str) -> None:
    name = "x-acs-date" if owner.scheme == ACS3 else "date"

    assert error_of(owner.sign(draft("list"), headers={name: text}).send()) == STALE


@EACH_SCHEME
@EACH_CALL
def test_nonce_used_again_is_refused(owner: Signer, draft: Draft, with_redis: RedisServer, call: str) -> None:
    message = owner.sign(draft(call))
    accepted(message.send())
    recorded = UsedSignature.objects.count()
    assert bool(recorded) is (call != "list")

    assert error_of(message.send()) == REPLAYED
    assert UsedSignature.objects.count() == recorded


@EACH_SCHEME
@EACH_CALL
def test_nonce_used_again_without_redis_is_refused(
    owner: Signer, draft: Draft, without_redis: None, call: str
) -> None:
    message = owner.sign(draft(call))
    accepted(message.send())
    recorded = UsedSignature.objects.count()
    assert recorded

    assert error_of(message.send()) == REPLAYED
    assert UsedSignature.objects.count() == recorded


@EACH_SCHEME
@EACH_CHANGE
def test_nonce_of_change_stays_used_after_restart(
    owner: Signer, draft: Draft, with_redis: RedisServer, call: str
) -> None:
    message = owner.sign(draft(call))
    accepted(message.send())
    with_redis.stop()
    _forget_redis()

    assert error_of(message.send()) == REPLAYED


@EACH_SCHEME
def test_nonce_used_again_in_another_call_is_refused(owner: Signer, draft: Draft) -> None:
    nonce = uuid.uuid4().hex
    accepted(owner.sign(draft("create"), headers={"x-acs-signature-nonce": nonce}).send())

    assert error_of(owner.sign(draft("stop"), headers={"x-acs-signature-nonce": nonce}).send()) == REPLAYED


@EACH_SCHEME
def test_nonce_of_another_key_is_accepted(scheme: str, owner: Signer, people: People, draft: Draft) -> None:
    nonce = uuid.uuid4().hex
    accepted(owner.sign(draft("list"), headers={"x-acs-signature-nonce": nonce}).send())

    accepted(
        signer(scheme, people.owner).sign(draft("list"), headers={"x-acs-signature-nonce": nonce}).send()
    )


@EACH_SCHEME
def test_nonce_of_refused_signature_stays_unused(owner: Signer, draft: Draft) -> None:
    message = owner.sign(draft("create"))
    assert error_of(message.with_header("x-acs-signature-nonce", "another").send()) == MISMATCH

    assert not UsedSignature.objects.exists()
    accepted(message.send())


# What was changed on the way


@EACH_SCHEME
@EACH_CALL
def test_changed_message_is_refused(owner: Signer, draft: Draft, call: str) -> None:
    query = "PageNumber=1&DisplayName=a+b"
    signed = owner.sign(draft(call, query), headers={"x-acs-action": "Action"})
    changed = {
        "path": replace(signed, path=f"/api/v1/jobs/dlcx{'' if call == 'list' else '/stop'}"),
        "query value": replace(signed, query="PageNumber=2&DisplayName=a+b"),
        "plus": replace(signed, query="PageNumber=1&DisplayName=a%2Bb"),
        "query key": replace(signed, query="PageNumbers=1&DisplayName=a+b"),
        "more query": replace(signed, query=f"{query}&ShowOwn=True"),
        "less query": replace(signed, query="PageNumber=1"),
        "signed header": signed.with_header("x-acs-action", "Another"),
        "accept": signed.with_header("accept", "*/*"),
        "nonce": signed.with_header("x-acs-signature-nonce", uuid.uuid4().hex),
    }

    assert {name: error_of(message.send()) for name, message in changed.items()} == dict.fromkeys(
        changed, MISMATCH
    )


@EACH_SCHEME
@pytest.mark.parametrize(("call", "method"), [("list", "POST"), ("create", "GET")])
def test_changed_method_is_refused(owner: Signer, draft: Draft, call: str, method: str) -> None:
    signed = owner.sign(draft(call))

    assert error_of(replace(signed, method=method).send()) == MISMATCH


@EACH_SCHEME
def test_changed_date_is_refused(owner: Signer, draft: Draft) -> None:
    late = datetime.now(UTC) - timedelta(minutes=1)
    signed = owner.sign(draft("list"))
    dated = owner.sign(draft("list"), signed_at=late)
    name = "x-acs-date" if owner.scheme == ACS3 else "date"

    assert error_of(signed.with_header(name, dated.headers[name]).send()) == MISMATCH


@pytest.mark.parametrize("scheme", [ACS3])
@EACH_CHANGE
def test_changed_body_is_refused(owner: Signer, draft: Draft, call: str) -> None:
    signed = owner.sign(draft(call))
    changed = replace(signed, body=signed.body.replace(b"signed", b"forged") or b"{}")
    digest = hashlib.sha256(changed.body).hexdigest()

    assert error_of(changed.send()) == MISMATCH
    assert error_of(changed.with_header("x-acs-content-sha256", digest).send()) == MISMATCH
    assert error_of(signed.with_header("x-acs-content-sha256", "é" * 64).send()) == MISMATCH
    assert Job.objects.count() == 1


@pytest.mark.parametrize("scheme", [ROA])
def test_content_md5_covers_body(owner: Signer, draft: Draft) -> None:
    message = draft("create")
    digest = base64.b64encode(hashlib.md5(message.body, usedforsecurity=False).digest()).decode()
    signed = owner.sign(message, headers={"content-md5": digest})

    assert error_of(replace(signed, body=b"{}").send()) == MISMATCH
    accepted(signed.send())


@pytest.mark.parametrize("scheme", [ROA])
def test_content_type_of_request_without_body_is_not_signed(owner: Signer, draft: Draft) -> None:
    signed = owner.sign(draft("stop"))

    accepted(signed.with_header("content-type", "application/octet-stream").send())


@pytest.mark.parametrize("scheme", [ROA])
def test_content_type_of_request_with_body_is_signed(owner: Signer, draft: Draft) -> None:
    signed = owner.sign(draft("create"))

    assert error_of(signed.with_header("content-type", "application/json").send()) == MISMATCH


@pytest.mark.parametrize("scheme", [ACS3])
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("x-acs-date", STALE),
        ("x-acs-signature-nonce", MALFORMED),
        ("x-acs-content-sha256", MISMATCH),
    ],
)
def test_mandatory_header_missing_is_refused(
    owner: Signer, draft: Draft, name: str, code: tuple[int, str]
) -> None:
    assert error_of(owner.sign(draft("create"), omit=name).send()) == code
    assert Job.objects.count() == 1


@pytest.mark.parametrize("scheme", [ACS3])
@pytest.mark.parametrize("name", ["host", "x-acs-date", "x-acs-signature-nonce", "x-acs-content-sha256"])
def test_mandatory_header_unsigned_is_refused(owner: Signer, draft: Draft, name: str) -> None:
    answer = owner.sign(draft("create"), omit=name, is_header_listed=False).send()

    assert error_of(answer) == MALFORMED
    assert name in json.loads(answer.content)["Message"]
    assert Job.objects.count() == 1


@pytest.mark.parametrize("scheme", [ROA])
def test_nonce_missing_is_refused(owner: Signer, draft: Draft) -> None:
    assert error_of(owner.sign(draft("create"), omit="x-acs-signature-nonce").send()) == MALFORMED


# Odd headers


@MESSAGE_ALONE
@pytest.mark.parametrize(
    ("authorization", "status", "code"),
    [
        ("", 401, "MissingAuthorization"),
        ("ACS4-HMAC-SHA256 Credential=a,SignedHeaders=host,Signature=0", 400, "InvalidSignatureMethod"),
        ("bce-auth-v1/a/b/c", 400, "InvalidSignatureMethod"),
        ("Basic dXNlcjpwYXNz", 400, "InvalidSignatureMethod"),
        ("ä\xff", 400, "InvalidSignatureMethod"),
        ("x" * 20_000, 400, "InvalidSignatureMethod"),
        ("ACS3-HMAC-SHA256", *MALFORMED),
        ("ACS3-HMAC-SHA256 Credential=a,SignedHeaders=host", *MALFORMED),
        ("ACS3-HMAC-SHA256 Credential=a,SignedHeaders=host,Signature=" + "z" * 64, *MALFORMED),
        ("ACS3-HMAC-SHA256 Credential=a\0,SignedHeaders=host,Signature=" + "0" * 64, *MALFORMED),
        ("acs", *MALFORMED),
        ("acs a:b", *MALFORMED),
        ("acs a\0:" + "A" * 27 + "=", *MALFORMED),
        ("Bearer", 401, "MissingAuthorization"),
        ("Bearer nobody", 401, "InvalidBearerToken"),
    ],
)
@EACH_CALL
def test_authorization_header_unreadable_is_refused(
    draft: Draft, call: str, authorization: str, status: int, code: str
) -> None:
    answer = draft(call).with_header("Authorization", authorization).send()

    assert error_of(answer) == (status, code)
    assert len(answer.content) < 3000
    assert ": ." not in json.loads(answer.content)["Message"]


@MESSAGE_ALONE
@EACH_SCHEME
@pytest.mark.parametrize("nonce", ["", "n" * 201, "n" * 60_000])
def test_nonce_of_wrong_length_is_refused(owner: Signer, draft: Draft, nonce: str) -> None:
    assert error_of(owner.sign(draft("create"), headers={"x-acs-signature-nonce": nonce}).send()) == MALFORMED


@EACH_SCHEME
def test_header_values_outside_ascii_are_signed(owner: Signer, draft: Draft) -> None:
    signed = owner.sign(draft("create"), headers={"x-acs-note": "Grüße", "x-acs-signature-nonce": "ÿ" * 32})

    accepted(signed.send())
    assert error_of(signed.with_header("x-acs-note", "Grusse").send()) == MISMATCH


@pytest.mark.parametrize("scheme", [ACS3])
def test_signed_header_names_outside_ascii_are_refused(owner: Signer, draft: Draft) -> None:
    signed = owner.sign(draft("list"))
    authorization = signed.headers["Authorization"].replace("host;", "host;é\xff;")

    assert error_of(signed.with_header("Authorization", authorization).send()) == MISMATCH


# Addresses as the SDKs write them


@MESSAGE_ALONE
@EACH_SCHEME
@pytest.mark.parametrize(
    "query",
    [
        "DisplayName=a+b",
        "DisplayName=a%20b",
        "DisplayName=a*b",
        "DisplayName=a%2Ab",
        "DisplayName=a~b",
        "DisplayName=a%7Eb",
        "DisplayName=a/b?c",
        "DisplayName=a%2Bb%26c%3Dd%25",
        "DisplayName=%E8%AE%AD%E7%BB%83",
        "DisplayName=",
        "DisplayName=&Status=&JobType=",
        "ShowOwn=True&FromAllWorkspaces=False",
        "Tags=%7B%22a%22%3A%22b+c%22%7D",
        "Tags=%7B%22a%22:%22b+c%22%7D",
        "WorkspaceId=vision&PageNumber=1&DisplayName=z",
    ],
)
def test_query_as_sdk_writes_it_is_accepted(owner: Signer, draft: Draft, query: str) -> None:
    signed = owner.sign(draft("list", query))

    accepted(signed.send())


@EACH_SCHEME
def test_query_of_too_many_values_is_refused(owner: Signer, draft: Draft) -> None:
    signed = owner.sign(draft("list", "&".join(["a=1"] * 7000)))

    assert error_of(signed.send()) == (400, "InvalidParameter")


@MESSAGE_ALONE
@EACH_SCHEME
@pytest.mark.parametrize("part", ["dlc1%20x", "dlc1~x", "dlc1%2Ax", "%E8%AE%AD"])
def test_path_with_encoded_characters_is_accepted(owner: Signer, draft: Draft, part: str) -> None:
    signed = owner.sign(replace(draft("list"), path=f"/api/v1/jobs/{part}"))

    assert error_of(signed.send()) == (404, "ResourceNotFound")


# Tokens, and what is told


@EACH_CALL
def test_bearer_token_is_accepted(people: People, draft: Draft, call: str) -> None:
    token = tokens.issue(people.owner, scopes=tokens.SCOPES, lifetime=timedelta(days=1))
    message = draft(call).with_header("x-acs-signature-type", "BEARERTOKEN")

    accepted(message.with_header("x-acs-bearer-token", token).send())


@pytest.mark.parametrize(
    ("token", "code"),
    [("", "MissingAuthorization"), ("x", "InvalidBearerToken"), ("é\0", "InvalidBearerToken")],
)
def test_bearer_token_wrong_is_refused(draft: Draft, token: str, code: str) -> None:
    assert error_of(draft("list").with_header("x-acs-bearer-token", token).send()) == (401, code)


@EACH_SCHEME
def test_bearer_token_wrong_is_not_rescued_by_signature(owner: Signer, draft: Draft) -> None:
    signed = owner.sign(draft("list"), headers={"x-acs-bearer-token": "x"})

    assert error_of(signed.send()) == (401, "InvalidBearerToken")


def test_session_does_not_authenticate_api(people: People) -> None:
    client = Client()
    client.force_login(people.owner)

    answer = cast("HttpResponse", client.get("/api/v1/jobs"))

    assert error_of(answer) == (401, "MissingAuthorization")


@EACH_SCHEME
def test_refusals_reveal_neither_secret_nor_signature(
    owner: Signer, draft: Draft, caplog: pytest.LogCaptureFixture
) -> None:
    right = owner.sign(draft("create"))
    expected = right.headers["Authorization"].rpartition("Signature=" if owner.scheme == ACS3 else ":")[2]
    wrong = replace(owner, secret="wrong").sign(
        draft("create"),
        headers={name: value for name, value in right.headers.items() if name != "Authorization"},
    )
    with capture_logs() as logs:
        answers = [
            wrong.send(),
            right.with_header("x-acs-signature-nonce", "").send(),
            replace(right, body=b"{").send(),
        ]
    told = "".join([*(repr(answer.serialize()) for answer in answers), repr(logs), caplog.text])

    assert error_of(answers[0]) == MISMATCH
    assert owner.secret not in told
    assert expected not in told
