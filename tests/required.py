"""With REQUIRE_ALL=1 a test that skips itself has failed, and is run once more as others are; only what no
package gives may be missing: a GPU, and the control groups that the oldest Kubernetes needs.
"""

import os
import shutil
from typing import Final, TypeVar

import pytest

OF_THE_MACHINE: Final = ("GPU", "control groups of version 1")
"""Words of reasons that no package changes."""

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def skip_without(program: str, package: str) -> None:
    """Skip the test where a program is missing, which that package of Debian has."""
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program} (Debian: {package})")


def is_required(reason: str) -> bool:
    """Tell whether what is left out for this reason has to be there."""
    return bool(os.environ.get("REQUIRE_ALL")) and not any(each in reason for each in OF_THE_MACHINE)


def all_of(report: Report) -> Report:
    """The report, which is of a failure where something is missing that has to be there."""
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        if is_required(reason):
            report.outcome = "failed"
            report.longrepr = f"{reason} (and REQUIRE_ALL is set)"
    return report
