#!/usr/bin/env python
"""Django's commands for this console: `.venv/bin/python manage.py help`."""

import os
import sys

from django.core.management import execute_from_command_line

from console.env import EnvError
from console.keys import KeysMissing


def main() -> None:
    """Run one command; what is missing or wrong in the environment is one sentence, not a traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    try:
        execute_from_command_line(sys.argv)
    except (EnvError, KeysMissing) as problem:
        sys.exit(str(problem))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
