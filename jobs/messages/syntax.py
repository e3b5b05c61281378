"""Sentences for texts that are not JSON or YAML, or that no job file needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _

SYNTAX: Final[Mapping[str, tuple[str, ...]]] = {
    "too_large": (_("The file is too large: maximum %(most)s bytes."),),
    "too_deep": (_("Brackets are nested more than %(most)s levels deep."),),
    "expands_too_far": (
        _(
            "With all references expanded, the file exceeds %(most)s characters. Repeat less, or "
            "move the text to a file in your code."
        ),
    ),
    "too_many_values": (_("The file contains more than %(most)s values."),),
    "too_many_oddities": (
        _("The file contains more than %(most)s comments, unusual spaces or stray commas. Remove them."),
    ),
    "not_unicode": (
        _("Byte %(byte)s is not UTF-8. Save the file as UTF-8."),
        _("The file is not UTF-8. Save it as UTF-8."),
    ),
    "lone_surrogate": (_("Invalid character (lone surrogate). Remove it."),),
    "null_character": (_("Strings can't contain the character U+0000."),),
    "invisible_key": (
        _(
            "The key that looks like “%(key)s” contains the invisible character %(character)s. "
            "Retype the key."
        ),
    ),
    "duplicate_key": (_("Duplicate key “%(key)s”."),),
    "not_a_number": (_("%(word)s is not a JSON number."),),
    "number_too_big": (_("This number of %(digits)s digits is too large to be read exactly."),),
    "empty_text": (_("The file is empty."),),
    "unexpected_end": (_("Unexpected end of file."),),
    "unclosed_bracket": (
        _("Unexpected end of file: the %(bracket)s of line %(opened_line)s is not closed with %(closing)s."),
    ),
    "wrong_bracket": (_("%(character)s does not match the opening bracket."),),
    "extra_text": (_("Unexpected text after the end of the job file. Remove it."),),
    "missing_comma": (_("Missing comma before %(character)s."),),
    "extra_comma": (_("Extra comma."),),
    "missing_colon": (_("Expected a colon after the key, not %(character)s."),),
    "missing_value": (_("Missing value before %(character)s."),),
    "missing_key": (_("Missing key in double quotes before %(character)s."),),
    "unterminated_string": (
        _(
            "This string has no closing quote on its line. Write a line break inside a string as "
            '\\n, a quote as \\".'
        ),
    ),
    "control_character": (_("The character %(character)s inside a string must be escaped."),),
    "bad_escape": (_("Invalid JSON escape %(escape)s. Write a backslash as \\\\."),),
    "single_quotes": (_('JSON requires double quotes ("), not single quotes.'),),
    "typographic_quotes": (_('JSON requires straight double quotes ("), not %(character)s.'),),
    "fullwidth_mark": (_("Full-width %(character)s: JSON requires %(right)s."),),
    "unclosed_comment": (_("This comment is not closed with */."),),
    "hash_comment": (_("Comments begin with //, not with #."),),
    "unquoted_key": (_("The key %(key)s must be in double quotes."),),
    "unquoted_text": (_("Unexpected text “%(text)s”. Put strings in double quotes."),),
    "wrong_literal": (_("JSON uses %(right)s, not %(word)s."),),
    "bad_number": (_("%(number)s is not a valid JSON number."),),
    "unexpected_character": (_("Unexpected character %(character)s."),),
}


YAML: Final[Mapping[str, tuple[str, ...]]] = {
    "yaml_alias_of_itself": (_("*%(name)s refers to itself."),),
    "yaml_character": (_("A YAML string can't begin with %(character)s. Put it in quotes."),),
    "yaml_colon": (_("Unexpected colon. Put the text in quotes, or fix the indentation."),),
    "yaml_complex_key": (_("Keys must be strings."),),
    "yaml_dash": (_("A list can't begin here. Put the dash on its own line."),),
    "yaml_directive": (_("YAML directives (lines beginning with %%) are not supported. Remove the line."),),
    "yaml_documents": (
        _("The file contains %(count)s documents separated by ---; only one is allowed."),
        _("The file contains several documents separated by ---; only one is allowed."),
    ),
    "yaml_escape": (_("Invalid YAML escape. Write a backslash as \\\\."),),
    "yaml_indentation": (_("The indentation does not match the lines above."),),
    "yaml_merge": (_("Only objects can be merged with <<."),),
    "yaml_no_colon": (_("Missing colon and space after the key."),),
    "yaml_syntax": (_("Invalid YAML from here on."),),
    "yaml_tab": (
        _("Indent lines with spaces, not with %(character)s."),
        _("Indent lines with spaces, not with tabs."),
    ),
    "yaml_tag": (_("YAML tags (words beginning with !) are not supported. Remove the tag."),),
    "yaml_unclosed": (_("Unclosed bracket in line %(opened_line)s, or a missing comma."),),
    "yaml_unclosed_quote": (_("This quoted string is not closed."),),
    "yaml_unknown_alias": (_("Undefined anchor &%(name)s."),),
}
