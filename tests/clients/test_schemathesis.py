"""Schemathesis finds no server error, undocumented answer or wrong shape in the native API."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.clients import environments
from tests.scenes import MACHINE
from tests.stack import running

pytestmark = pytest.mark.once

LONGEST_S: Final = 40
"""For examples and coverage of every operation, and then as much fuzzing as there is time for."""

EXAMPLES: Final = "3"
CHECKS: Final = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,unsupported_method"
)
LEFT_OUT: Final = ("jobs_stream", "tokens_revoke")
"""A stream does not end, and the token of the test would be revoked."""


def test_schemathesis_finds_nothing_on_the_native_api(tmp_path: Path) -> None:
    program = environments.python("schemathesis").with_name("st")
    with running({**MACHINE, "CONSOLE_API_REQUESTS_PER_MINUTE": "0"}) as stack:
        scopes = ("read", "submit", "stop", "exec", "admin")
        token = json.loads(stack.manage("issue_token", "admin", "--scopes", *scopes))["token"]
        options = ["--header", f"Authorization: Bearer {token}", "--url", stack.base_url]
        options += ["--max-examples", EXAMPLES, "--generation-deterministic"]
        options += ["--checks", CHECKS, "--max-time", str(LONGEST_S), "--phases", "examples,coverage,fuzzing"]
        options += [part for each in LEFT_OUT for part in ("--exclude-operation-id", each)]
        done = subprocess.run(
            [program, "run", f"{stack.base_url}/api/console/v1/schema", *options, "--no-color"],
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "NO_PROXY": "127.0.0.1"},
            capture_output=True,
            text=True,
            timeout=3 * LONGEST_S,
            check=False,
        )
    assert done.returncode == 0, done.stdout
