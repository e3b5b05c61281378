#!/usr/bin/env python
"""Django's commands for this console: `.venv/bin/python manage.py help`."""

import os
import sys

from django.core.management import BaseCommand, ManagementUtility

from console.configuration.env import EnvError
from console.configuration.keys import KeysMissing


class Commands(ManagementUtility):
    """Django's own, with the command's name in the audit trail beside what it changes."""

    def fetch_command(self, subcommand: str) -> BaseCommand:
        command = super().fetch_command(subcommand)
        from quotas.audit import origin  # noqa: PLC0415  # there are models from here on

        origin.begin_command(subcommand)
        return command


def main() -> None:
    """Run one command; what is missing or wrong in the environment is one sentence, not a traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    try:
        Commands(sys.argv).execute()
    except (EnvError, KeysMissing) as problem:
        sys.exit(str(problem))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
