"""What slurmdbd allows, by sacctmgr: slurmrestd does not say which of its clusters it serves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from jobs.backends.accounts import Account, Books, Ceilings, Quality
from jobs.backends.base import Unreachable
from jobs.backends.slurm.client.programs import Programs

ROOT: Final = "root"
"""The account above all others."""

WHO: Final = ("Account", "User", "Partition", "ParentName", "QOS")
UNDERSTOOD: Final = ("GrpTRES", "GrpJobs", "MaxJobs")
OTHER: Final = (
    "GrpTRESMins",
    "GrpTRESRunMins",
    "GrpSubmitJobs",
    "GrpWall",
    "MaxTRES",
    "MaxTRESPerNode",
    "MaxTRESMins",
    "MaxSubmitJobs",
    "MaxWall",
)
"""Limits of associations that the console has no word for."""

OF_QOS: Final = ("Name", "Priority", "MaxTRESPerUser", "MaxJobsPerUser")
OTHER_OF_QOS: Final = (
    "GrpTRES",
    "GrpTRESMins",
    "GrpTRESRunMins",
    "GrpJobs",
    "GrpSubmitJobs",
    "GrpWall",
    "MaxTRES",
    "MaxTRESPerNode",
    "MaxTRESMins",
    "MaxWall",
    "MaxTRESPerAccount",
    "MaxJobsPerAccount",
    "MaxSubmitJobsPerUser",
    "MinTRES",
)

_NAME: Final = re.compile(r"^ClusterName\s*=\s*(\S+)", re.MULTILINE)


def read(programs: Programs) -> Books:
    """Everything that is said of this cluster.  Raises Unreachable."""
    fields = (*WHO, *UNDERSTOOD, *OTHER)
    rows = _table(programs, fields, "associations", f"cluster={_cluster(programs)}")
    qualities = _table(programs, (*OF_QOS, *OTHER_OF_QOS), "qos")
    if rows is None or qualities is None:
        return Books()
    return Books(tuple(_accounts(rows)), tuple(map(_quality, qualities)), tuple(_of_nobody(rows)))


def write(programs: Programs, account: str, ceilings: Ceilings, jobs_of_one: int | None) -> None:
    """Give an account these ceilings.  Raises Unreachable."""
    amounts = {
        "cpu": ceilings.cpus,
        "mem": ceilings.memory_mib,
        "gres/gpu": ceilings.gpus,
        **{f"gres/gpu:{kind}": count for kind, count in ceilings.gpus_by_type.items()},
    }
    tres = ",".join(f"{name}={count}" for name, count in amounts.items() if count is not None)
    limits = {"GrpTRES": tres or None, "GrpJobs": ceilings.jobs, "MaxJobs": jobs_of_one}
    said = [f"{name}={value}" for name, value in limits.items() if value is not None]
    where = ("where", f"name={account}", f"cluster={_cluster(programs)}")
    if said and programs.sacctmgr("modify", "account", *where, "set", *said) is None:
        raise Unreachable("sacctmgr can't be run, or there is no slurmdbd")


def _cluster(programs: Programs) -> str:
    """What slurmdbd calls the cluster."""
    said = _NAME.search(programs.scontrol("show", "config"))
    if said is None:
        raise Unreachable("scontrol does not say what its cluster is called")
    return said[1].lower()


def _table(programs: Programs, fields: Sequence[str], *what: str) -> list[dict[str, str]] | None:
    out = programs.sacctmgr("list", *what, f"format={','.join(fields)}")
    if out is None:
        return None
    return [dict(zip(fields, line.split("|"), strict=True)) for line in out.splitlines()]


def _accounts(rows: Sequence[Mapping[str, str]]) -> Iterator[Account]:
    """Those of accounts as a whole, each with its people."""
    for row in rows:
        name = row["Account"]
        if row["User"] or row["Partition"] or name == ROOT:
            continue
        people = [each for each in rows if each["User"] and each["Account"] == name]
        ceilings, more = _ceilings(row["GrpTRES"], row["GrpJobs"], "GrpTRES")
        yield Account(
            name=name,
            parent="" if row["ParentName"] == ROOT else row["ParentName"],
            people=tuple(dict.fromkeys(each["User"] for each in people)),
            all_of_it=ceilings,
            jobs_of_one=_count(row["MaxJobs"]),
            qos=tuple(sorted({qos for each in (people or [row]) for qos in each["QOS"].split(",") if qos})),
            more=(*more, *_said(row, OTHER), *(said for each in people for said in _of_one(each, row))),
        )


def _of_one(person: Mapping[str, str], account: Mapping[str, str]) -> Iterator[str]:
    """Limits that one person has, and not the others of the account."""
    where = f"{person['User']}@{person['Partition']}" if person["Partition"] else person["User"]
    for said in _said(person, (*UNDERSTOOD, *OTHER)):
        if said not in _said(account, (*UNDERSTOOD, *OTHER)):
            yield f"{where}: {said}"


def _of_nobody(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """What is said of the cluster as a whole."""
    for row in rows:
        if row["Account"] == ROOT and not row["User"]:
            yield from (f"{ROOT}: {said}" for said in _said(row, (*UNDERSTOOD, *OTHER)))


def _quality(row: Mapping[str, str]) -> Quality:
    ceilings, more = _ceilings(row["MaxTRESPerUser"], row["MaxJobsPerUser"], "MaxTRESPerUser")
    return Quality(
        name=row["Name"],
        priority=_count(row["Priority"]) or 0,
        of_one=ceilings,
        more=(*more, *_said(row, OTHER_OF_QOS)),
    )


def _ceilings(amounts: str, jobs: str, name: str) -> tuple[Ceilings, list[str]]:
    """What is understood, and what is left of it in Slurm's words."""
    found: dict[str, int] = {}
    by_type: dict[str, int] = {}
    left = []
    for part in filter(None, amounts.split(",")):
        what, _equals, count = part.partition("=")
        if what.startswith("gres/gpu:"):
            by_type[what.removeprefix("gres/gpu:")] = int(count)
        elif what in ("cpu", "gres/gpu"):
            found[what] = int(count)
        elif what == "mem" and (size := _mib(count)) is not None:
            found[what] = size
        else:
            left.append(f"{name}={part}")
    made = Ceilings(found.get("cpu"), found.get("mem"), found.get("gres/gpu"), by_type, _count(jobs))
    return made, left


def _mib(value: str) -> int | None:
    number, unit = value.rstrip("KMGTP"), value[-1:]
    shift = {"G": 1024, "T": 1 << 20, "P": 1 << 30}.get(unit, 1)
    try:
        return round(float(number) * (1 / 1024 if unit == "K" else shift))
    except ValueError:
        return None


def _said(row: Mapping[str, str], fields: Sequence[str]) -> list[str]:
    return [f"{name}={row[name]}" for name in fields if row[name]]


def _count(value: str) -> int | None:
    return int(value) if value.isdigit() else None
