"""What the local backend tells of an attempt to a console that does not know it."""

from __future__ import annotations

import json
from collections.abc import Callable

from jobs.backends.base import Handle
from jobs.spec import JobSpec, RoleSpec
from tests.jobs.backends.benches import LocalBench


def test_live_attempt_tells_what_it_was_submitted_as(bench_of: Callable[..., LocalBench]) -> None:
    bench = bench_of()
    submission = bench.submission(RoleSpec(name="main", command="sleep 60"), workspace="vision")
    handle = bench.backend.submit(submission)
    assert bench.backend.list_live() == [submission.key]
    origin = bench.backend.read_origin(submission.key)
    assert origin is not None
    assert JobSpec.model_validate_json(json.dumps(origin.spec)) == submission.spec
    assert (origin.workspace, origin.person.number) == ("vision", submission.person.number)
    assert bench.backend.read_origin("no-such-1") is None
    bench.backend.stop(Handle(handle), grace_s=0, signal="KILL")
