"""Whether Slurm takes jobs with what a cluster's settings name: partitions, accounts, QOS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from jobs.backends.base import Refused
from jobs.backends.slurm.client.programs import Programs
from jobs.backends.slurm.config import SlurmConfig

SCRIPT: Final = """\
#!/bin/sh
#SBATCH --ntasks=1
#SBATCH --mem=1
#SBATCH --time=1
{option}true
"""

TOLD: Final = (
    "Slurm takes no job of {user} with --{option}={name}, which the cluster's setting {setting} names: {said}"
)


def lacking(config: SlurmConfig, programs: Programs, user: str) -> Iterator[str]:
    """What it does not take from whom `programs` are run as, by `sbatch --test-only`.  Raises Unreachable."""
    for setting, option, name in named(config):
        try:
            programs.test(SCRIPT.format(option=f"#SBATCH --{option}={name}\n"))
        except Refused as refused:
            said = refused.reason.params.get("detail", "")
            yield TOLD.format(user=user, option=option, name=name, setting=setting, said=said)


def named(config: SlurmConfig) -> Iterator[tuple[str, str, str]]:
    """Setting, option of sbatch, and name: each name once."""
    said = (
        ("partition", "partition", (config.partition,)),
        ("partitions", "partition", config.partitions.values()),
        ("account", "account", (config.account,)),
        ("accounts", "account", config.accounts.values()),
        ("qos", "qos", config.qos.values()),
    )
    seen = set()
    for setting, option, names in said:
        for name in names:
            if name and (option, name) not in seen:
                seen.add((option, name))
                yield setting, option, name
