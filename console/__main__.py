"""`python -m console COMMAND`."""

import sys

from console.command_line import main

if __name__ == "__main__":
    sys.exit(main())
