"""Which dialect a text is written in."""

import json
import subprocess
import sys
import time
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import dialects
from jobs.dialects.base import MAX_BYTES, Refused
from jobs.dialects.document import Document

JOB = '{"jobName": "a", "image": "i", "taskRoles": [{"name": "m", "command": "c"}]}'


def code(text: str) -> str:
    with pytest.raises(Refused) as caught:
        dialects.parse(text)
    return caught.value.problems[0].code


@pytest.mark.parametrize("name", dialects.NAMES)
def test_dialect_is_found_by_name_and_has_valid_schema(name: str) -> None:
    dialect = dialects.get(name)
    assert dialect.name == name
    jsonschema.Draft202012Validator.check_schema(dict(dialect.schema()))


def test_unknown_dialect_name_raises_key_error() -> None:
    with pytest.raises(KeyError):
        dialects.get("cobol")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (JOB, "job_name_and_roles"),
        ("// mine\n" + JOB, "job_name_and_roles"),
        ('{"taskRoles": []}', "roles_listed"),
        ('{"jobName": "a"}', "job_name"),
        (JOB.replace('"a",', '"a"'), "keys_seen"),
    ],
)
def test_openpai_v1_file_is_recognised_with_reason(text: str, why: str) -> None:
    assert Document(text).dialect == "openpai-v1"
    assert Document(text).candidates[0].why == why


def test_protocol_v2_json_is_not_recognised_as_v1() -> None:
    text = json.dumps({"protocolVersion": 2, "jobName": "a", "taskRoles": []})
    assert "openpai-v1" not in [found.name for found in Document(text).candidates]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello", "unknown_dialect"),
        ("{}", "unknown_dialect"),
        ('{"a": 1', "unclosed_bracket"),
        ("x" * (MAX_BYTES + 1), "too_large"),
        ("[" * 10_000 + "]" * 10_000, "too_deep"),
    ],
)
def test_text_without_job_file_is_refused_with_nearest_cause(text: str, expected: str) -> None:
    assert code(text) == expected


@given(st.text())
def test_sniffing_never_raises(text: str) -> None:
    for found in Document(text).candidates:
        assert 1 <= found.confidence <= 100


def test_file_parsing_is_fast_and_imports_little() -> None:
    """In a process of its own: no Django, and the smaller seed in some ms once everything is there."""
    seed = Path(__file__).parents[2] / "data" / "seeds" / "helloworld.json"
    program = """
import sys, time
from pathlib import Path
from jobs import dialects
text = Path(sys.argv[1]).read_text()
dialect = dialects.get(dialects.Document(text).dialect)
dialect.parse(dialects.Document(text))
times = []
for _ in range(20):
    begun = time.process_time()
    dialect.parse(dialects.Document(text))
    times.append(time.process_time() - begun)
assert min(times) < 0.01, times
assert not any(name.split(".")[0] == "django" for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", program, str(seed)], check=True, cwd=Path(__file__).parents[3])


def test_file_with_five_hundred_roles_is_read_soon() -> None:
    role = json.loads(JOB)["taskRoles"][0] | {"portList": [{"label": "a", "beginAt": 0, "portNumber": 1}]}
    text = json.dumps(
        json.loads(JOB) | {"taskRoles": [role | {"name": f"r{n}"} for n in range(500)]}, indent=2
    )
    begun = time.process_time()
    assert len(dialects.get("openpai-v1").parse(Document(text)).spec.roles) == 500
    assert time.process_time() - begun < 5
