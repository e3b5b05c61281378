"""Credentials of a job's role: who gets them, from moto's STS and from a stand-in for Alibaba's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from django.conf import LazySettings
from django.utils import timezone
from moto.server import ThreadedMotoServer
from structlog.testing import capture_logs

from jobs.access.attempt_tokens import Purpose, make_token
from jobs.access.instance_roles import credentials, sts
from jobs.access.instance_roles.credentials import CredentialCache
from jobs.models import AssetKind, AssetUse, Attempt, Job, RamRole
from jobs.node.network.service import ALIBABA_PATH, AWS_PATH
from jobs.states import State
from tests.alibaba_sts import KEY_ID, SECRET, AlibabaSts, alibaba_sts
from tests.factories import attempt_of, make_job, make_workspace
from tests.jobs.access.test_job_service import ask

__all__ = ["alibaba_sts"]

pytestmark = pytest.mark.django_db(transaction=True)

POLICY: Final = '{"Version": "1", "Statement": [{"Effect": "Allow", "Action": "oss:Get*", "Resource": "*"}]}'


@pytest.fixture
def moto_sts() -> Iterator[str]:
    """The address of moto's STS."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch) -> CredentialCache:
    fresh = CredentialCache()
    monkeypatch.setattr(credentials, "CACHE", fresh)
    return fresh


def make_role(job: Job, provider: str, endpoint: str, **columns: Any) -> RamRole:
    """A role of the job's workspace, which the job was accepted with."""
    arn = "arn:aws:iam::123456789012:role/trainer" if provider == "aws" else "acs:ram::123:role/trainer"
    key = "AKIAROLECONSOLE" if provider == "aws" else KEY_ID
    values = {"workspace": job.workspace, "name": "trainer", "provider": provider, "arn": arn}
    role = RamRole(**{**values, "access_key_id": key, "endpoint": endpoint, **columns})
    role.encrypt(SECRET)
    role.full_clean()
    role.save()
    AssetUse.objects.create(job=job, kind=AssetKind.ROLE, key=role.key)
    return role


@pytest.fixture
def alibaba(alibaba_sts: AlibabaSts, settings: LazySettings) -> RamRole:
    """The role of a running job, at the stand-in."""
    settings.CONSOLE_EGRESS_HOSTS = [alibaba_sts.url]
    return make_role(make_job(State.RUNNING), "alibaba", alibaba_sts.url, policy=POLICY, session_s=2400)


def attempt() -> Attempt:
    return attempt_of(Job.objects.get())


def get(of: Attempt, path: str = ALIBABA_PATH, token: str = "") -> tuple[int, Any]:
    return ask({"attempt": of.key, "replica": "0"}, path, authorization=token)


def test_aws_credentials_are_given_for_the_token_of_the_attempt(
    moto_sts: str, settings: LazySettings
) -> None:
    settings.CONSOLE_EGRESS_HOSTS = [moto_sts]
    job = make_job(State.RUNNING)
    make_role(job, "aws", moto_sts, session_s=2400)
    mine = attempt_of(job)
    token = make_token(mine.key, Purpose.ROLE_CREDENTIALS)
    status, found = get(mine, AWS_PATH, token)
    assert status == 200
    assert sorted(found) == ["AccessKeyId", "Expiration", "SecretAccessKey", "Token"]
    assert all(found.values())
    left = datetime.fromisoformat(found["Expiration"]) - datetime.now(UTC)
    assert timedelta(seconds=2380) < left <= timedelta(seconds=2400)
    assert get(mine, AWS_PATH, token) == (200, found)
    other = attempt_of(make_job(State.RUNNING, quota=job.quota))
    for wrong in ("", mine.key, f"{token}x", make_token(other.key, Purpose.ROLE_CREDENTIALS)):
        assert get(mine, AWS_PATH, wrong) == (401, {"error": "Unauthorized"})
    assert get(other, AWS_PATH, make_token(other.key, Purpose.ROLE_CREDENTIALS)) == (
        404,
        {"error": "Not Found"},
    )
    assert get(mine) == (404, {"error": "Not Found"})


def test_alibaba_credentials_are_those_of_the_session_policy(
    alibaba: RamRole, alibaba_sts: AlibabaSts
) -> None:
    status, found = get(attempt())
    assert status == 200
    assert found.pop("Expiration").endswith("Z")
    assert found == {
        "Code": "Success",
        "AccessKeyId": "STS.key1",
        "AccessKeySecret": "alibaba-secret-1",
        "SecurityToken": "alibaba-token-1",
    }
    assert alibaba_sts.calls == [
        {
            "RoleArn": alibaba.arn,
            "RoleSessionName": f"{attempt().job.public_id}-1",
            "DurationSeconds": "2400",
            "Policy": POLICY,
        }
    ]
    assert "alibaba-secret" not in repr(credentials.CACHE.find(attempt(), alibaba))


def test_credentials_are_renewed_at_half_of_their_time_and_stay_while_sts_fails(
    alibaba: RamRole, alibaba_sts: AlibabaSts, cache: CredentialCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = attempt().key

    def pass_time(seconds: float) -> None:
        issue = cache._entries[key].issue
        assert issue is not None
        gone = timedelta(seconds=seconds)
        ends = issue.credentials.expires_at - gone
        aged = replace(issue.credentials, expires_at=ends)
        cache._entries[key].issue = replace(issue, credentials=aged, renew_at=issue.renew_at - gone)

    def number() -> str:
        status, found = get(attempt())
        return str(found["AccessKeyId"]) if status == 200 else str(status)

    assert [number(), number()] == ["STS.key1", "STS.key1"]
    pass_time(1180)
    assert number() == "STS.key1"
    pass_time(30)
    assert [number(), number()] == ["STS.key2", "STS.key2"]
    alibaba_sts.failing = True
    pass_time(1210)
    assert number() == "STS.key2"
    pass_time(1140)
    assert number() == "503"
    alibaba_sts.failing = False
    assert number() == "503", "asked again too soon"
    monkeypatch.setattr(credentials, "RETRY_S", 0.0)
    assert number() == "STS.key3"


def test_role_that_was_changed_or_taken_away_gives_no_earlier_credentials(
    alibaba: RamRole, alibaba_sts: AlibabaSts
) -> None:
    assert get(attempt())[1]["AccessKeyId"] == "STS.key1"
    alibaba.policy = ""
    alibaba.save()
    assert get(attempt())[1]["AccessKeyId"] == "STS.key2"
    assert "Policy" not in alibaba_sts.calls[-1]
    rows, mine = RamRole.objects.filter(pk=alibaba.pk), alibaba.workspace
    for change, before in (
        ({"workspace": make_workspace("other")}, {"workspace": mine}),
        ({"workspace": None}, {"workspace": mine}),
        ({"retired_at": timezone.now()}, {"retired_at": None}),
        ({"access_key_id": ""}, {"access_key_id": KEY_ID}),
    ):
        rows.update(**change)
        assert get(attempt()) == (404, {"error": "Not Found"}), change
        rows.update(**before)
    assert get(attempt())[0] == 200


def test_attempt_that_has_ended_gets_nothing(alibaba: RamRole, alibaba_sts: AlibabaSts) -> None:
    mine = attempt()
    assert get(mine)[0] == 200
    Attempt.objects.filter(pk=mine.pk).update(ended_at=timezone.now())
    assert get(mine) == (403, {"error": "Forbidden"})
    assert len(alibaba_sts.calls) == 1
    assert alibaba.workspace == mine.job.workspace


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"access_key_id": "LTAIother"}, "404 InvalidAccessKeyId.NotFound"),
        ({"endpoint": "http://127.0.0.1:9/"}, "http"),
        ({"endpoint": "https://169.254.169.254/"}, "address 169.254.169.254"),
        ({"ciphertext": "gAAAAAxx"}, "unreadable"),
    ],
)
def test_refused_request_is_logged_without_secrets(
    alibaba: RamRole, columns: Mapping[str, str], problem: str
) -> None:
    RamRole.objects.filter(pk=alibaba.pk).update(**columns)
    with capture_logs() as logs:
        assert get(attempt()) == (503, {"error": "Service Unavailable"})
    (line,) = (line for line in logs if line["event"] == "role_not_assumed")
    assert line["problem"] == problem
    assert SECRET not in json.dumps(logs, default=str)


@pytest.mark.parametrize(
    ("provider", "region", "endpoint"),
    [
        ("aws", "", "https://sts.us-east-1.amazonaws.com/"),
        ("aws", "cn-north-1", "https://sts.cn-north-1.amazonaws.com.cn/"),
        ("alibaba", "", "https://sts.aliyuncs.com/"),
        ("alibaba", "cn-hangzhou", "https://sts.cn-hangzhou.aliyuncs.com/"),
    ],
)
def test_endpoint_without_setting_is_the_providers(provider: str, region: str, endpoint: str) -> None:
    assert sts.endpoint_of(RamRole(provider=provider, region=region)) == endpoint
