#!/usr/bin/env python
"""The console's commands in a checkout: `.venv/bin/python manage.py help`."""

import sys

from console.command_line import main

if __name__ == "__main__":
    sys.exit(main())
