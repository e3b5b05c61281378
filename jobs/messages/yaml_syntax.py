"""Sentences for texts that are not YAML, or that no job file needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _

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
