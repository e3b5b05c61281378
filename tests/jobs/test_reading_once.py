"""One request reads a job file once and sniffs it once, in whatever syntax it comes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import pytest
from django.test import Client
from django.urls import reverse

from jobs import dialects
from jobs.dialects import source
from jobs.dialects.aihc import Aihc
from jobs.dialects.base import Guess, Parsed
from jobs.dialects.dlc import Dlc
from jobs.dialects.dlc_params import DlcParams
from jobs.dialects.document import Document
from jobs.dialects.kubeflow import Kubeflow
from jobs.dialects.openpai_v1 import OpenPaiV1
from jobs.dialects.openpai_v2 import OpenPaiV2
from jobs.dialects.pasted.dialect import Pasted
from jobs.dialects.sbatch import Sbatch
from jobs.dialects.yaml_text.values import YamlReader
from jobs.models import Job
from quotas.accounts import tokens
from quotas.models import Role, User
from tests.factories import make_cluster, make_quota, make_user, make_workspace

pytestmark = pytest.mark.django_db

DIALECTS: Final = (Aihc, Dlc, DlcParams, Kubeflow, OpenPaiV1, OpenPaiV2, Sbatch)

DLC: Final = json.dumps(
    {
        "DisplayName": "first",
        "JobType": "PyTorchJob",
        "UserCommand": "true",
        "JobSpecs": [
            {"Type": "Worker", "Image": "", "PodCount": 1, "ResourceConfig": {"CPU": "1", "Memory": "2Gi"}}
        ],
    }
)
V1: Final = json.dumps(
    {
        "jobName": "first",
        "image": "i",
        "taskRoles": [{"name": "m", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 512, "command": "true"}],
    }
)
FILES: Final = {"dlc": DLC, "openpai-v1": V1}
YAML: Final = "openpai-v2"
SBATCH: Final = "#!/bin/bash\n#SBATCH --job-name=first\n#SBATCH --ntasks=1\ntrue\n"


@dataclass
class Count:
    """How often each text was read, by which reader, and sniffed, for which dialect."""

    read: Counter[tuple[str, str]] = field(default_factory=Counter)
    sniffed: Counter[tuple[str, str]] = field(default_factory=Counter)
    parsed: Counter[tuple[str, str]] = field(default_factory=Counter)

    def judge(self, text: str, most: int = 1) -> None:
        """Some reader met `text`, each `most` times at most; it was parsed once, and sniffed once."""
        read = {times for (_reader, found), times in self.read.items() if found == text}
        assert read <= set(range(1, most + 1)), self.read
        assert [times for (_name, found), times in self.parsed.items() if found == text] == [1]
        sniffed = {name: times for (name, found), times in self.sniffed.items() if found == text}
        assert sniffed == dict.fromkeys(dialects.NAMES, 1)


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Count:
    """Counts what the real readers do."""
    found = Count()
    load, begin, sniff = source._Reader.load, YamlReader.__init__, Pasted.sniff

    def loading(reader: Any, text: str, *, strict: bool = True) -> object:
        if not getattr(reader, "is_second", False):  # what is tolerated is taken out of the text first
            found.read["json", text] += 1
        reader.is_second = True
        return load(reader, text, strict=strict)

    def beginning(reader: Any, text: str, rules: Any) -> None:
        found.read["yaml", text] += 1
        begin(reader, text, rules)

    def sniffing(dialect: Pasted, document: Document) -> Guess | None:
        found.sniffed[dialect.name, document.text] += 1
        return sniff(dialect, document)

    monkeypatch.setattr(source._Reader, "load", loading)
    monkeypatch.setattr(YamlReader, "__init__", beginning)
    monkeypatch.setattr(Pasted, "sniff", sniffing)
    for dialect in DIALECTS:
        parse = dialect.parse

        def parsing(document: Document, name: str = dialect.name, parse: Any = parse) -> Parsed:
            found.parsed[name, document.text] += 1
            parsed: Parsed = parse(document)
            return parsed

        monkeypatch.setattr(dialect, "parse", staticmethod(parsing))
    return found


@pytest.fixture
def person() -> User:
    made = make_user("olga")
    workspace = make_workspace("vision", members={made: Role.DEVELOPER})
    make_quota(workspace, make_cluster("local"), "default")
    return made


def files() -> dict[str, str]:
    spec = Document(V1).parsed.spec
    yaml = dialects.get("openpai-v2").render(spec, {}).text
    kubeflow = dialects.get("kubeflow").render(Document(DLC).parsed.spec, {}).text
    return {**FILES, "openpai-v2": yaml, "kubeflow": kubeflow}


NAMES: Final = ("dlc", "openpai-v1", "openpai-v2", "kubeflow")


@pytest.mark.parametrize("name", NAMES)
def test_submission_by_page_reads_the_file_once(person: User, count: Count, name: str) -> None:
    text = clear(count, files()[name])
    browser(person).post(reverse("job_new"), {"text": text, "key": "k", "keep_original": "on"})
    assert Job.objects.filter(owner=person).count() == 1
    count.judge(text)


@pytest.mark.parametrize("name", NAMES)
def test_submission_by_api_reads_the_file_once(person: User, count: Count, name: str) -> None:
    text = clear(count, files()[name])
    token = tokens.issue(person, scopes=tokens.SCOPES, lifetime=timedelta(days=1))
    client = Client(headers={"Authorization": f"Bearer {token}"})
    answer = client.post(
        reverse("api_jobs"), {"file": text, "keep_original": True}, content_type="application/json"
    )
    assert answer.status_code == 201, answer.content
    count.judge(text)


@pytest.mark.parametrize("name", NAMES)
def test_editor_check_reads_the_file_once(person: User, count: Count, name: str) -> None:
    text = clear(count, files()[name])
    answer = browser(person).post(reverse("job_check"), {"text": text})
    assert answer.json()["dialect"] == name
    count.judge(text)


@pytest.mark.parametrize("name", NAMES)
def test_form_change_reads_submitted_text_once(person: User, count: Count, name: str) -> None:
    text = clear(count, files()[name])
    answer = browser(person).post(reverse("job_form_change"), {"text": text, "name": "second"})
    changed = answer.json()["text"]
    assert "second" in changed
    count.judge(text)
    count.judge(changed, most=2)  # an edit of YAML is read to see that it says what was meant


def browser(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def clear(count: Count, text: str) -> str:
    """Forget what was read to make `text`."""
    for counter in (count.read, count.sniffed, count.parsed):
        counter.clear()
    return text
