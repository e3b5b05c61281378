"""Rules of the vendors' pages: each with its vendor, what the page says and the check of a job.

Where a job goes decides what a violation is: a problem at the vendor whose page has the rule, a note at this
site's own clusters, which run the job all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.db import connection

from jobs.dialects.base import Note, Params, Problem
from jobs.form import rules
from jobs.form.target import JobTarget
from jobs.spec import Framework, JobSpec
from quotas.models import User


class Vendor(StrEnum):
    """The vendors of the pages."""

    DLC = "dlc"
    SCM = "scm"
    AIHC = "aihc"


SOURCES: Final = {Vendor.DLC: "DLC page", Vendor.SCM: "SCM page", Vendor.AIHC: "AIHC page"}
_DIALECTS: Final = {
    Vendor.DLC: rules.OF_PAGES,
    Vendor.SCM: frozenset({"openpai-v1"}),
    Vendor.AIHC: frozenset({"aihc"}),
}

LEAST_MEMORY_MB: Final = 100
LEAST_CPU_MILLI: Final = 1000


class Reporter(StrEnum):
    """The part of the console that notes a violation of a job that runs here.

    READER: the dialect's reader, with the line.  FORM: the rules of the form.  TABLE: this table.
    """

    READER = "reader"
    FORM = "form"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Subject:
    """A job of a person, and the target that it goes to."""

    user: User
    spec: JobSpec
    target: JobTarget


Check = Callable[[Subject], Iterable[Note]]


@dataclass(frozen=True, slots=True)
class PageRule:
    """A rule: `text` is what the page says of which field, `check` yields a note for each violation."""

    code: str
    vendor: Vendor
    text: str
    check: Check
    reporter: Reporter = Reporter.FORM


def problems(subject: Subject, vendor: str) -> Iterator[Problem]:
    """Yield the violations of a job that goes to the vendor."""
    for rule in PAGE_RULES:
        if rule.vendor == vendor:
            for note in rule.check(subject):
                params = {**note.params, "rule": note.code}
                yield Problem("against_page", note.pointer, params=params, source=SOURCES[rule.vendor])


def notes(subject: Subject, dialect: str) -> Iterator[Note]:
    """Yield the violations of a job that runs here, but those that its reader or the form's rules note."""
    for rule in PAGE_RULES:
        if rule.reporter is Reporter.TABLE and dialect in _DIALECTS[rule.vendor]:
            yield from rule.check(subject)


# --- checks ----------------------------------------------------------------------------------------------


def _by_form(code: str) -> Check:
    """Return the check of a rule that the form has too."""

    def check(subject: Subject) -> Iterator[Note]:
        for statement in rules.BY_CODE[code].judge(subject.spec, subject.target):
            if statement.broken:
                yield Note(code, "", {**statement.params, "field": statement.field})

    return check


def _check_name(subject: Subject) -> Iterator[Note]:
    name = subject.spec.name
    if _has_job(subject.user, name):
        yield Note("name_not_unique", "/name", {"name": name})


def _has_job(user: User, name: str) -> bool:
    """Return whether the person has a job of this name; in plain SQL, as each check and submission asks."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM jobs_job WHERE owner_id = %s AND name = %s AND deleted_at IS NULL LIMIT 1",
            [user.pk, name],
        )
        return cursor.fetchone() is not None


def _check_memory(subject: Subject) -> Iterator[Note]:
    for index, role in enumerate(subject.spec.roles):
        if role.resources.memory_mib < LEAST_MEMORY_MB:
            params: Params = {"key": "memoryMB", "value": role.resources.memory_mib, "least": LEAST_MEMORY_MB}
            pointer = f"/roles/{index}/resources/memory_mib"
            yield Note("below_advised", pointer, {**params, "source": SOURCES[Vendor.SCM]})


def _check_cores(subject: Subject) -> Iterator[Note]:
    for index, role in enumerate(subject.spec.roles):
        if role.resources.cpu_milli < LEAST_CPU_MILLI:
            params: Params = {"key": "cpuNumber", "value": role.resources.cpu_milli / 1000, "least": 1}
            pointer = f"/roles/{index}/resources/cpu_milli"
            yield Note("below_advised", pointer, {**params, "source": SOURCES[Vendor.SCM]})


def _check_framework(subject: Subject) -> Iterator[Note]:
    if subject.spec.framework not in {None, Framework.PYTORCH}:
        yield Note("page_framework", "/framework", {"framework": str(subject.spec.framework)})


def _check_queue(subject: Subject) -> Iterator[Note]:
    if not subject.spec.quota:
        yield Note("default_taken", "/quota", {"key": "queue", "source": SOURCES[Vendor.AIHC]})


PAGE_RULES: Final = (
    PageRule(
        "lingjun_frameworks",
        Vendor.DLC,
        "Framework: a Lingjun quota takes TensorFlow, PyTorch, ElasticBatch, MPIJob, Slurm and Ray only.",
        _by_form("lingjun_frameworks"),
    ),
    PageRule(
        "variables_most",
        Vendor.DLC,
        "Environment variables: at most 20.",
        _by_form("variables_most"),
        Reporter.READER,
    ),
    PageRule(
        "priority_for_quota",
        Vendor.DLC,
        "Priority: available where the source is a resource quota, from 1 to 9.",
        _by_form("priority_for_quota"),
    ),
    PageRule(
        "bid_discount",
        Vendor.DLC,
        "Bid price: by discount, 10 % to 90 % of the market price; SpotDiscountLimit in steps of 0.1.",
        _by_form("bid_discount"),
    ),
    PageRule(
        "ports_listed",
        Vendor.DLC,
        "customPortList: ports and ranges of ports, separated by semicolons.",
        _by_form("ports_listed"),
        Reporter.READER,
    ),
    PageRule(
        "ports_not_masters",
        Vendor.DLC,
        "customPortList: without port 23456.",
        _by_form("ports_not_masters"),
        Reporter.READER,
    ),
    PageRule(
        "ports_number",
        Vendor.DLC,
        "customPortNumPerWorker: a whole number up to 65536.",
        _by_form("ports_number"),
        Reporter.READER,
    ),
    PageRule(
        "ports_one_way",
        Vendor.DLC,
        "customPortList excludes customPortNumPerWorker.",
        _by_form("ports_one_way"),
        Reporter.READER,
    ),
    PageRule(
        "no_ports_number_on_lingjun",
        Vendor.DLC,
        "customPortNumPerWorker: not for Lingjun resources.",
        _by_form("no_ports_number_on_lingjun"),
    ),
    PageRule("unique_name", Vendor.SCM, "jobName: unique.", _check_name, Reporter.TABLE),
    PageRule("least_memory", Vendor.SCM, "memoryMB: at least 100.", _check_memory, Reporter.READER),
    PageRule("least_cores", Vendor.SCM, "cpuNumber: at least 1.", _check_cores, Reporter.READER),
    PageRule("only_pytorch", Vendor.AIHC, "jobType: only PyTorchJob.", _check_framework, Reporter.READER),
    PageRule("queue", Vendor.AIHC, "queue: required.", _check_queue, Reporter.READER),
)
"""The rules, by vendor."""
