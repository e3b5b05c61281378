"""Sentences for texts that are not JSON or YAML, or that no job file needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _

SYNTAX: Final[Mapping[str, tuple[str, ...]]] = {
    "too_large": (_("The file is too large: at most %(most)s bytes are read."),),
    "too_deep": (_("Brackets lie more than %(most)s deep inside each other here."),),
    "expands_too_far": (
        _(
            "With what it refers to in every place that names it, the file comes to more than %(most)s "
            "characters. Repeat less, or keep the text in a file of your code."
        ),
    ),
    "too_many_values": (_("The file holds more than %(most)s values; no job needs that many."),),
    "too_many_oddities": (
        _("The file holds more than %(most)s comments, odd spaces or stray commas; remove them."),
    ),
    "not_unicode": (
        _("The byte %(byte)s is not UTF-8: save the file as UTF-8."),
        _("The file is not UTF-8: save it as UTF-8."),
    ),
    "lone_surrogate": (_("Half a character (a lone surrogate) stands here; remove it."),),
    "null_character": (_("A text may not hold the character U+0000."),),
    "invisible_key": (
        _("The key that looks like “%(key)s” holds the invisible character %(character)s; type it anew."),
    ),
    "duplicate_key": (_("The key “%(key)s” is there twice; only one can count."),),
    "not_a_number": (_("%(word)s is no number that JSON knows."),),
    "number_too_big": (_("This number of %(digits)s digits is larger than any computer reads exactly."),),
    "empty_text": (_("There is nothing here yet."),),
    "unexpected_end": (_("The text ends too early."),),
    "unclosed_bracket": (
        _("The text ends, but the %(bracket)s of line %(opened_line)s was not closed with %(closing)s."),
    ),
    "wrong_bracket": (_("%(character)s closes a bracket that was opened with the other kind."),),
    "extra_text": (_("The job file has ended before this; remove what follows."),),
    "missing_comma": (_("A comma is missing before %(character)s."),),
    "extra_comma": (_("There is one comma too many here."),),
    "missing_colon": (_("After a key comes a colon, not %(character)s."),),
    "missing_value": (_("A value is missing before %(character)s."),),
    "missing_key": (_("A key in double quotes is missing before %(character)s."),),
    "unterminated_string": (
        _(
            "This text has no closing quote on its line. A line break inside a text is written \\n, a quote "
            '\\".'
        ),
    ),
    "control_character": (_("The character %(character)s inside a text must be written as an escape."),),
    "bad_escape": (_("JSON does not know the escape %(escape)s; a backslash itself is written \\\\."),),
    "single_quotes": (_('JSON wants double quotes ("), not single ones.'),),
    "typographic_quotes": (_('JSON wants straight double quotes ("), not %(character)s.'),),
    "fullwidth_mark": (_("This is the full-width %(character)s; JSON wants %(right)s."),),
    "unclosed_comment": (_("This comment is not closed with */."),),
    "hash_comment": (_("Comments begin with // here, not with #."),),
    "unquoted_key": (_("The key %(key)s must stand in double quotes."),),
    "unquoted_text": (_("The text %(text)s must stand in double quotes."),),
    "wrong_literal": (_("JSON writes %(right)s, not %(word)s."),),
    "bad_number": (_("%(number)s is not how JSON writes a number."),),
    "unexpected_character": (_("%(character)s can't stand here."),),
}


YAML: Final[Mapping[str, tuple[str, ...]]] = {
    "yaml_alias_of_itself": (_("*%(name)s stands inside of what it stands for."),),
    "yaml_character": (_("No text may begin with %(character)s in YAML; put it in quotes."),),
    "yaml_colon": (
        _(
            "A colon with a blank begins a value, and none can begin here: put the text in quotes, or mend "
            "the indentation."
        ),
    ),
    "yaml_complex_key": (_("Only a text can be a key."),),
    "yaml_dash": (_("A list can't begin here: put the dash on a line of its own."),),
    "yaml_directive": (_("Lines that begin with % are not known here; remove it."),),
    "yaml_documents": (
        _("The file holds %(count)s documents, divided by ---; only one can be the job."),
        _("The file holds several documents, divided by ---; only one can be the job."),
    ),
    "yaml_escape": (_("YAML does not know this escape; a backslash itself is written \\\\."),),
    "yaml_indentation": (_("The indentation does not fit what stands above."),),
    "yaml_merge": (_("Only objects can be merged with <<."),),
    "yaml_no_colon": (_("A colon with a blank is missing after the key."),),
    "yaml_syntax": (_("The file can't be read as YAML from here."),),
    "yaml_tab": (
        _("Lines are indented with blanks, not with %(character)s."),
        _("Lines are indented with blanks, not with tabs."),
    ),
    "yaml_tag": (_("Tags (words that begin with !) are not known here; remove it."),),
    "yaml_unclosed": (_("The bracket of line %(opened_line)s is not closed, or a comma is missing."),),
    "yaml_unclosed_quote": (_("This text in quotes has no end."),),
    "yaml_unknown_alias": (_("Nothing is called &%(name)s before this."),),
}
