"""A replica's token for the credentials of its job's role, and jobs whose role gives none."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from jobs.backends.base import Refused
from jobs.backends.local import machine
from jobs.node.sandbox.isolation import Isolation
from jobs.node.supervisor import layout
from tests.jobs.backends.benches import LocalBench, log_of, role, wait_until_over


@pytest.mark.parametrize("mode", [Isolation.PERSONS, Isolation.NAMESPACES])
def test_token_of_role_is_a_file_of_the_jobs_user_in_every_isolation(
    bench_of: Callable[..., LocalBench], mode: Isolation
) -> None:
    if lacking := machine.network_lacks(mode):
        pytest.skip(f"networks of jobs' own need {', '.join(lacking)}")
    shows = (
        'file=$AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE; stat -c "%a %u" $file; id -u; sha1sum < $file; env; '
        "cat /proc/*/cmdline"
    )
    bench = bench_of(isolation=mode, network="own")
    asked = bench.submission(role(shows))
    token = "attempt:signature"
    spec = asked.spec.model_copy(update={"instance_role": "default"})
    handle = bench.backend.submit(replace(asked, spec=spec, role_provider="aws", role_token=token))
    wait_until_over(bench.backend, handle)
    lines = log_of(bench.backend, handle).splitlines()
    assert lines[0] == f"600 {lines[1]}"
    assert lines[2].split()[0] == hashlib.sha1(token.encode()).hexdigest()
    assert "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://169.254.170.2/v1/credentials/aws" in lines
    assert token not in "".join(lines)
    assert token not in (bench.attempt(handle) / layout.PLAN).read_text()


@pytest.mark.parametrize(
    ("network", "image", "provider", "why"),
    [("host", "any", "aws", "role_without_network"), ("own", "", "", "role_unknown")],
)
def test_job_of_role_that_gives_no_credentials_is_refused(
    bench_of: Callable[..., LocalBench], network: str, image: str, provider: str, why: str
) -> None:
    bench = bench_of(network=network, engine="podman" if image else "none")
    if network == "own" and machine.network_lacks(bench.backend.isolation()):
        pytest.skip("no networks of jobs' own here")
    asked = bench.submission(role("true", image=image))
    spec = asked.spec.model_copy(update={"instance_role": "acs:ram::1:role/x"})
    with pytest.raises(Refused) as refused:
        bench.backend.submit(replace(asked, spec=spec, role_provider=provider))
    assert refused.value.reason.params["why"] == why
