"""How the console's commands begin."""

from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.management.base import SystemCheckError

from console.management.dispatch import AuditedCommands


def test_own_command_is_refused_where_the_installation_is_wrong(
    settings: LazySettings, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    settings.CONSOLE_HOME = tmp_path
    command = AuditedCommands([]).fetch_command("issue_token")
    with pytest.raises(SystemCheckError, match=r"console\.E002"):
        command.check(tags=command.requires_system_checks)


@pytest.mark.parametrize(
    ("name", "checks"),
    [("issue_token", ["console"]), ("support_bundle", ()), ("migrate", "__all__")],
)
def test_own_commands_leave_checks_of_the_code_to_check(name: str, checks: object) -> None:
    assert AuditedCommands([]).fetch_command(name).requires_system_checks == checks
