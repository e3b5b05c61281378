"""A `.env` file that was pasted, as environment variables.  Nothing in it is expanded."""

from __future__ import annotations

from io import StringIO

from dotenv import dotenv_values


def variables_of(text: str) -> dict[str, str]:
    """The variables of the file, in its order; a name without a value is an empty variable."""
    found = dotenv_values(stream=StringIO(text), interpolate=False)
    return {name: value or "" for name, value in found.items()}
