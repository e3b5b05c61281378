"""Accounts and limits of slurmdbd, by sacctmgr: slurmrestd does not tell which cluster it serves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from jobs.backends.accounts import Account, AccountLimits, AccountTree, QualityOfService
from jobs.backends.base import Unreachable
from jobs.backends.slurm.client import values
from jobs.backends.slurm.client.programs import Programs

ROOT: Final = "root"
"""The account above all others."""

IDENTITY: Final = ("Account", "User", "Partition", "ParentName", "QOS")
KNOWN: Final = ("GrpTRES", "GrpJobs", "MaxJobs")
_UNKNOWN_OF_BOTH: Final = (
    "GrpTRESMins",
    "GrpTRESRunMins",
    "GrpSubmitJobs",
    "GrpWall",
    "MaxTRES",
    "MaxTRESPerNode",
    "MaxTRESMins",
    "MaxWall",
)
UNKNOWN: Final = (*_UNKNOWN_OF_BOTH, "MaxSubmitJobs")
"""Limits of associations that the console does not know."""

OF_QOS: Final = ("Name", "Priority", "MaxTRESPerUser", "MaxJobsPerUser")
UNKNOWN_OF_QOS: Final = (
    *_UNKNOWN_OF_BOTH,
    "GrpTRES",
    "GrpJobs",
    "MaxTRESPerAccount",
    "MaxJobsPerAccount",
    "MaxSubmitJobsPerUser",
    "MinTRES",
)


def read_accounts(programs: Programs) -> AccountTree:
    """Return the accounts, QOS and limits of this cluster.  Raises Unreachable."""
    fields = (*IDENTITY, *KNOWN, *UNKNOWN)
    rows = _table(programs, fields, "associations", f"cluster={_cluster(programs)}")
    qualities = _table(programs, (*OF_QOS, *UNKNOWN_OF_QOS), "qos")
    if rows is None or qualities is None:
        return AccountTree()
    return AccountTree(tuple(_accounts(rows)), tuple(map(_quality, qualities)), tuple(_cluster_limits(rows)))


def write_limits(programs: Programs, account: str, limits: AccountLimits, jobs_of_one: int | None) -> None:
    """Set an account's limits.  Raises Unreachable."""
    amounts = {
        "cpu": limits.cpus,
        "mem": limits.memory_mib,
        "gres/gpu": limits.gpus,
        **{f"gres/gpu:{kind}": count for kind, count in limits.gpus_by_type.items()},
    }
    tres = ",".join(f"{name}={count}" for name, count in amounts.items() if count is not None)
    options = {"GrpTRES": tres or None, "GrpJobs": limits.jobs, "MaxJobs": jobs_of_one}
    settings = [f"{name}={value}" for name, value in options.items() if value is not None]
    where = ("where", f"name={account}", f"cluster={_cluster(programs)}")
    if settings and programs.sacctmgr("modify", "account", *where, "set", *settings) is None:
        raise Unreachable("sacctmgr can't be run, or there is no slurmdbd")


def _cluster(programs: Programs) -> str:
    """Return the cluster's name at slurmdbd."""
    if not (name := programs.read_setting("ClusterName")):
        raise Unreachable("scontrol does not tell the name of its cluster")
    return name.lower()


def _table(programs: Programs, fields: Sequence[str], *what: str) -> list[dict[str, str]] | None:
    out = programs.sacctmgr("list", *what, f"format={','.join(fields)}")
    if out is None:
        return None
    return [dict(zip(fields, line.split("|"), strict=True)) for line in out.splitlines()]


def _accounts(rows: Sequence[Mapping[str, str]]) -> Iterator[Account]:
    """Yield the accounts, each with its users."""
    for row in rows:
        name = row["Account"]
        if row["User"] or row["Partition"] or name == ROOT:
            continue
        people = [each for each in rows if each["User"] and each["Account"] == name]
        limits, more = _read_limits(row["GrpTRES"], row["GrpJobs"], "GrpTRES")
        yield Account(
            name=name,
            parent="" if row["ParentName"] == ROOT else row["ParentName"],
            people=tuple(dict.fromkeys(each["User"] for each in people)),
            all_of_it=limits,
            jobs_of_one=_count(row["MaxJobs"]),
            qos=tuple(sorted({qos for each in (people or [row]) for qos in each["QOS"].split(",") if qos})),
            more=(
                *more,
                *_list_limits(row, UNKNOWN),
                *(limit for each in people for limit in _user_limits(each, row)),
            ),
        )


def _user_limits(person: Mapping[str, str], account: Mapping[str, str]) -> Iterator[str]:
    """Yield limits of one user that the account does not have."""
    where = f"{person['User']}@{person['Partition']}" if person["Partition"] else person["User"]
    for limit in _list_limits(person, (*KNOWN, *UNKNOWN)):
        if limit not in _list_limits(account, (*KNOWN, *UNKNOWN)):
            yield f"{where}: {limit}"


def _cluster_limits(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield the limits of the cluster as a whole."""
    for row in rows:
        if row["Account"] == ROOT and not row["User"]:
            yield from (f"{ROOT}: {limit}" for limit in _list_limits(row, (*KNOWN, *UNKNOWN)))


def _quality(row: Mapping[str, str]) -> QualityOfService:
    limits, more = _read_limits(row["MaxTRESPerUser"], row["MaxJobsPerUser"], "MaxTRESPerUser")
    return QualityOfService(
        name=row["Name"],
        priority=_count(row["Priority"]) or 0,
        of_one=limits,
        more=(*more, *_list_limits(row, UNKNOWN_OF_QOS)),
    )


def _read_limits(amounts: str, jobs: str, name: str) -> tuple[AccountLimits, list[str]]:
    """Return the known amounts, and the others as Slurm writes them."""
    found: dict[str, int] = {}
    by_type: dict[str, int] = {}
    left = []
    for part in filter(None, amounts.split(",")):
        kind, _equals, count = part.partition("=")
        if kind.startswith("gres/gpu:"):
            by_type[kind.removeprefix("gres/gpu:")] = int(count)
        elif kind in ("cpu", "gres/gpu"):
            found[kind] = int(count)
        elif kind == "mem" and (size := values.mib(count)) is not None:
            found[kind] = size
        else:
            left.append(f"{name}={part}")
    made = AccountLimits(found.get("cpu"), found.get("mem"), found.get("gres/gpu"), by_type, _count(jobs))
    return made, left


def _list_limits(row: Mapping[str, str], fields: Sequence[str]) -> list[str]:
    return [f"{name}={row[name]}" for name in fields if row[name]]


def _count(value: str) -> int | None:
    return int(value) if value.isdigit() else None
