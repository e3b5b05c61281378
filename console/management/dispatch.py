"""Django's commands, with what is missing or wrong in the environment as a sentence, not a traceback."""

import gc
import os
import sys

from django.core.management import BaseCommand, ManagementUtility

from console.configuration.env import EnvError
from console.configuration.keys import KeysMissing


class AuditedCommands(ManagementUtility):
    """Django's own, with the command's name in the audit trail beside what it changes."""

    def fetch_command(self, subcommand: str) -> BaseCommand:
        command = super().fetch_command(subcommand)
        gc.freeze()
        gc.enable()
        if _is_ours(command) and command.requires_system_checks == "__all__":
            command.requires_system_checks = ["console"]
        from quotas.audit import origin  # noqa: PLC0415  # there are models from here on

        origin.begin_command(subcommand)
        return command


def _is_ours(command: BaseCommand) -> bool:
    """Whether a command is one of the console's.

    Before it, what may be wrong with an installation is checked. Checks of the code, which would import every
    page, are the same everywhere: `manage.py check` makes them.
    """
    return type(command).__module__.startswith(("console.", "jobs.", "quotas."))


def execute() -> int:
    """Run the command of this process's arguments; return its exit status."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    gc.disable()  # nearly all that is imported stays: looking for garbage among it takes long
    try:
        AuditedCommands(sys.argv).execute()
    except (EnvError, KeysMissing) as problem:
        sys.exit(str(problem))
    except KeyboardInterrupt:
        return 130
    finally:
        gc.enable()
    return 0
