"""Why a text is not YAML, in terms of what would be right: the parser's words turned into a cause."""

from __future__ import annotations

import re
from typing import Final

from yaml import MarkedYAMLError

from jobs.dialects.syntax import Cause, name_of

SOURCE: Final = "YAML 1.2"

_FORBIDDEN: Final = re.compile(
    r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_DIRECTIVE: Final = re.compile(r"^%(?!YAML )", re.MULTILINE)
_ODD_BLANK: Final = re.compile(r"[ ]*([\t\u00a0\u3000])")
_CAUSES: Final = (
    ("mapping values are not allowed", "yaml_colon"),
    ("block sequence entries are not allowed", "yaml_dash"),
    ("could not find expected ':'", "yaml_no_colon"),
    ("did not find expected key", "yaml_indentation"),
    ("did not find expected '-' indicator", "yaml_indentation"),
    ("did not find expected ',' or", "yaml_unclosed"),
    ("escape", "yaml_escape"),
    ("hexdecimal", "yaml_escape"),
    ("tag", "yaml_tag"),
)
_QUOTED: Final = "while scanning a quoted scalar"


def forbidden(text: str) -> Cause | None:
    """A character or directive that may not stand in `text`, if there is one."""
    if found := _FORBIDDEN.search(text):
        return Cause("control_character", found.start(), {"character": name_of(found[0])})
    if found := _DIRECTIVE.search(text):
        return Cause("yaml_directive", found.start())
    return None


def diagnose(text: str, error: MarkedYAMLError) -> Cause:
    """What is wrong with `text` where the YAML parser stopped with `error`."""
    problem, context = error.problem or "", error.context or ""
    offset = error.problem_mark.index if error.problem_mark else len(text)
    opened = error.context_mark.index if error.context_mark else offset
    line = {"opened_line": text.count("\n", 0, opened) + 1}
    if context == _QUOTED and "escape" not in problem and "hexdecimal" not in problem:
        return Cause("yaml_unclosed_quote", opened)
    start = text.rfind("\n", 0, offset) + 1
    if odd := _ODD_BLANK.match(text, start, offset + 1):
        params = {} if odd[1] == "\t" else {"character": name_of(odd[1])}
        return Cause("yaml_tab", odd.start(1), params)
    code = next((code for words, code in _CAUSES if words in problem), "yaml_syntax")
    if code != "yaml_syntax":
        return Cause(code, offset, line if code == "yaml_unclosed" else {})
    if "cannot start any token" in problem and offset < len(text):
        return Cause("yaml_character", offset, {"character": name_of(text[offset])})
    return Cause(code, offset)
