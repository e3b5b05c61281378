"""A pasted `.env` file is read line by line, and the lines that are no variables are numbered."""

from collections.abc import Iterable

import pytest

from jobs.form.envfile import EnvFile, read_env_file


def test_env_file_variables_are_read_without_expansion() -> None:
    text = "# of the team\nexport A=1\nB='two words'\nC=\"$A\\n\"\nD\n"
    assert read_env_file(text) == EnvFile({"A": "1", "B": "two words", "C": "$A\n", "D": ""}, ())


@pytest.mark.parametrize(
    ("text", "variables", "bad_lines"),
    [
        ("A=1\n" + "= ]\n" * 100 + "B=2\n", {"A": "1", "B": "2"}, range(2, 102)),
        ("A='1\n2' # note\n\nB=x # note\n # x\n=\nC", {"A": "1\n2", "B": "x", "C": ""}, [6]),
        ("A=#x\nB= # note", {"A": "#x", "B": ""}, []),
        ("A='x' y\nB='open\nC=1", {"C": "1"}, [1, 2]),
        ("'A b'=1\r\nexport = 2\r\nC = 3", {"A b": "1", "C": "3"}, [2]),
        ("\ufeffA='it\\'s \\n'\nB=\"\\\\ \\x \\t\"", {"A": "it's \\n", "B": "\\ \\x \t"}, []),
    ],
    ids=["no variables", "lines", "comments", "quotes", "names", "escapes"],
)
def test_env_file_lines_are_variables_or_numbered_as_bad(
    text: str, variables: dict[str, str], bad_lines: Iterable[int]
) -> None:
    assert read_env_file(text) == EnvFile(variables, tuple(bad_lines))
