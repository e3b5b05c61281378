"""The sanity check: every replica runs `sanity_program.py` before its command.

The check is a part of the command, so that it runs as often as that: once in an attempt, as the job's own
user, with its files, network and limits.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from jobs.node.frameworks.job import SHELL, FrameworkJob, SanityOptions
from jobs.node.network.names import join_name, label_roles

HOSTS: Final = "JOB_CONSOLE_SANITY_HOSTS"
"""The variable with every replica, in their order: `name=address:port,…`."""

EXIT_CODE: Final = 86
"""Of a replica whose job did not pass the check.  This and FILE are the program's too."""

FILE: Final = ".job-console-sanity"
"""The result, in the replica's own folder."""

TIMEOUT_S: Final = 300
END: Final = "END_OF_CHECK"

_TIMEOUT: Final = re.compile(r"--sanity-check-timeout[= ]\"?([1-9][0-9]{0,5})\b", re.ASCII)
_WITHOUT_PYTHON: Final = (
    '{"status": "Succeeded", "phases": [{"phase": "CheckInit", "status": "Skipped", '
    '"message": "there is no python3 on the PATH of the job"}]}'
)


def shared_variables(job: FrameworkJob) -> dict[str, str]:
    """Return the variable with all replicas."""
    labels, entries = label_roles([role.name for role in job.roles]), []
    for at, role in enumerate(job.roles):
        for index in range(role.replicas):
            reached = f"{job.endpoints.address(at, index)}:{job.endpoints.port(at, index, SHELL)}"
            entries.append(f"{join_name('', labels[at], index)}={reached}")
    return {HOSTS: ",".join(entries)}


def timeout_s(arguments: str) -> int:
    """Return the seconds that the check may take, by its arguments."""
    found = _TIMEOUT.findall(arguments)
    return int(found[-1]) if found else TIMEOUT_S


def wrap_command(options: SanityOptions, offset: int, library: str, command: str) -> str:
    """Return the command behind the check.

    `offset` is the number of replicas of the roles before, `library` is `torch` where that is to be used.
    """
    program = Path(__file__).with_name("sanity_program.py").read_text(encoding="utf-8").rstrip("\n")
    lines = [
        "if command -v python3 >/dev/null; then",
        f"python3 - {offset} {timeout_s(options.arguments)} {library or 'none'} <<'{END}'",
        program,
        END,
        f"[ $? != {EXIT_CODE} ] || exit {EXIT_CODE}",
        "else",
        f"printf '%s\\n' '{_WITHOUT_PYTHON}' >{FILE}",
        "fi",
        command,
    ]
    return "\n".join(lines)
