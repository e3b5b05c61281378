"""A pasted `.env` file is read line by line, and what is no variable is passed over."""

import pytest

from jobs.forming.envfile import variables_of


def test_variables_of_a_file_are_read_without_expansion() -> None:
    text = "# of the team\nexport A=1\nB='two words'\nC=\"$A\\n\"\nD\n"
    assert variables_of(text) == {"A": "1", "B": "two words", "C": "$A\n", "D": ""}


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("A=1\n" + "= ]\n" * 100 + "B=2\n", {"A": "1", "B": "2"}),
        ("A='1\n2' # note\nB=x # note\nC=#x\nD= # note", {"A": "1\n2", "B": "x", "C": "#x", "D": ""}),
        ("A='x' y\nB='open\nC=1", {"C": "1"}),
        ("'A b'=1\r\nexport = 2\rC = 3", {"A b": "1", "C": "3"}),
        ("\ufeffA='it\\'s \\n'\nB=\"\\\\ \\x \\t\"", {"A": "it's \\n", "B": "\\ \\x \t"}),
    ],
    ids=["no variables", "comments", "quotes", "names", "escapes"],
)
def test_line_that_is_no_variable_is_passed_over(text: str, variables: dict[str, str]) -> None:
    assert variables_of(text) == variables
