"""Sentences about notes: tolerated, ignored, approximated or lost parts of a job file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.dialects.base import Note
from jobs.language import gettext
from jobs.messages import extraction, manifests, requests, rules, scripts
from jobs.messages.dialects import dialect_label
from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_SENTENCES: Final[Mapping[str, tuple[str, ...]]] = {
    "tolerated_bom": (_("A byte order mark at the beginning was skipped."),),
    "tolerated_comments": (_("Comments were skipped (%(count)s)."), _("Comments were skipped.")),
    "tolerated_trailing_commas": (
        _("Commas before a closing bracket were skipped (%(count)s)."),
        _("Commas before a closing bracket were skipped."),
    ),
    "tolerated_spaces": (
        _("Unusual or invisible spaces were read as spaces (%(count)s)."),
        _("Unusual or invisible spaces were read as spaces."),
    ),
    "tolerated_tabs": (_("Tabs inside texts were kept as they are."),),
    "tolerated_line_numbers": (_("The line numbers of the pasted listing were skipped."),),
    "number_from_text": (_("%(key)s “%(value)s” was read as the number %(taken)s."),),
    "raised": (_("%(key)s is %(value)s; it was taken as %(taken)s, the least that the %(source)s allows."),),
    "below_advised": (_("%(key)s is %(value)s; the %(source)s asks for at least %(least)s."),),
    "default_taken": (
        _("%(key)s is missing, though the %(source)s asks for it; %(value)s was taken."),
        _("%(key)s is missing, though the %(source)s asks for it."),
    ),
    "looser_rule": (_("%(key)s: %(applied)s allows %(value)s, %(stricter)s does not. It was accepted."),),
    "unknown_key": (
        _("%(key)s is not known and was ignored; did you mean %(meant)s? It stays in the file."),
        _("%(key)s is not known and was ignored. It stays in the file."),
    ),
    "obsolete_key": (
        _("%(key)s is obsolete and was ignored: minFailedTaskCount and minSucceededTaskCount say it now."),
    ),
    "kept_unused": (_("%(key)s is kept in the file and not used."),),
    "scm_only": (_("%(key)s is SCM's own; OpenPAI does not know it. It was taken as the size of the disk."),),
    "form_snapshot": (
        _("%(key)s is what SCM's form showed about the cluster when the file was saved; it was ignored."),
    ),
    "image_with_blanks": (_("The image's name holds blanks, which no registry allows."),),
    "invisible_character": (_("The command holds the invisible character %(character)s."),),
    "password_in_command": (
        _(
            "The command holds a password in a URL, which everybody reads who may read the file; a variable "
            "in jobEnvs whose name ends in _PASSWORD or _TOKEN is kept secret."
        ),
    ),
    "secret_taken": (
        _("The value of %(key)s is kept as a secret; a placeholder stands for it in the file."),
    ),
    "secret_wanted": (
        _("The secret %(name)s is not in the file; it is taken from your secrets, which must have it."),
    ),
    "image_not_used": (
        _("%(cluster)s runs no images: the job runs without the image %(image)s, and is marked so."),
    ),
    "word_unfilled": (
        _("The command contains {%(word)s}, but no sweep parameter has that name. It runs unchanged."),
    ),
    "ports_moved": (
        _(
            "All replicas share one machine on %(cluster)s, where no two can have the same port: some get "
            "other ports for %(label)s, told to all replicas in the PAI_PORT_LIST variables."
        ),
    ),
    "asset_unknown": (
        _("%(id)s is not registered here; whether it is known is for the cluster that it goes to."),
    ),
    "asset_takes_secret": (
        _("%(name)s is fetched with your own secret %(secret)s, which is sent to %(host)s."),
        _("%(name)s is fetched with your own secret %(secret)s."),
    ),
    "code_without_submodules": (
        _("The submodules of %(name)s are not fetched here: the job gets the repository without them."),
    ),
    "dataset_of_vpc": (
        _("The dataset %(name)s is in the VPC %(vpc)s: a job that mounts it has to be in the same one."),
    ),
    "not_of_vpc": (_("%(id)s is not among what %(vpc)s is said to have."),),
    "env_name_unusable": (
        _(
            "The variable %(name)s was left out: a shell can't use a variable of this name. It stays in the "
            "file."
        ),
    ),
    "env_value_converted": (
        _("The value of %(name)s is no text; it was written as JSON into the variable."),
    ),
    "duplicate_role": (
        _(
            "The task role %(name)s is there twice; this one was ignored, the later one counts, as in "
            "OpenPAI."
        ),
    ),
    "duplicate_label": (_("The port label %(label)s is there twice; the later one counts, as in OpenPAI."),),
    "name_unexpandable": (
        _("%(name)s becomes part of variable names, and with . or ~ in them a shell can't expand those."),
    ),
    "written_anew": (_("The file was written anew: the change could not be made in the text as it was."),),
    "lost": (
        _("%(path)s (%(value)s) can't be said in %(dialect)s and was left out."),
        _("%(path)s can't be said in %(dialect)s and was left out."),
    ),
    "approximated": (_("%(path)s is %(value)s; in %(dialect)s it became %(instead)s."),),
    "added": (_("%(dialect)s brings %(path)s along: %(instead)s."),),
    "kept_for_console": (
        _("Kept for Job Console; %(dialect)s will take %(path)s as %(instead)s, not %(value)s."),
        _("Kept for Job Console; %(dialect)s will take %(path)s as %(instead)s."),
        _("Kept for Job Console; %(dialect)s will ignore: %(path)s (%(value)s)."),
        _("Kept for Job Console; %(dialect)s will ignore: %(path)s."),
    ),
    "not_carried": (_("%(path)s has no meaning outside its own dialect and is not in %(dialect)s."),),
    "needs_value": (
        _("%(dialect)s can't do without %(key)s: fill it in."),
        _("The file lacks something that %(dialect)s needs."),
    ),
    "repeated_key": (_("The key “%(key)s” is there twice; the last one counts, as in OpenPAI."),),
    "template_unresolved": (
        _(
            "%(value)s stands for nothing in this file and stays in the command as it is, as in OpenPAI; did "
            "you mean %(meant)s?"
        ),
        _("%(value)s stands for nothing in this file and stays in the command as it is, as in OpenPAI."),
    ),
    "more_notes": (_("There are %(count)s more notes."),),
    **extraction.NOTES,
    **requests.NOTES,
    **scripts.NOTES,
    **manifests.NOTES,
    **rules.NOTES,
}

_FIXED: Final = _("Jupyter would have been open to others (%(findings)s). %(mended)s")
_REQUOTED: Final = _("The quotes of Jupyter's options were part of their values; they are mended.")
_SAFE: Final = _(
    "The mended command listens on the loopback address and asks for a token, which the link carries."
)
_FINDINGS: Final = {
    "token_empty": _("no token of its own"),
    "listens_everywhere": _("it listened on every address"),
    "any_origin": _("pages of any site could talk to it"),
    "literal_quotes": _("quotes were part of the values"),
    "xsrf_off": _("its protection against forged requests was off"),
}


def note_message(note: Note) -> str:
    """Return the sentence for a note."""
    if note.code == "command_mended":
        return _fixed_message(str(note.params.get("findings", "")))
    if note.code in rules.NOTES:
        return rules.rule_message(note.code, note.params)
    templates = _SENTENCES.get(note.code)
    if not templates:
        return note.code
    dialect = note.params.get("dialect")
    words = {"dialect": dialect_label(dialect)} if isinstance(dialect, str) else {}
    return say(templates, {**note.params, **words})


def _fixed_message(findings: str) -> str:
    codes = [code for code in findings.split(",") if code in _FINDINGS]
    if codes == ["literal_quotes"]:
        return gettext(_REQUOTED)
    words = ", ".join(gettext(_FINDINGS[code]) for code in codes)
    return gettext(_FIXED) % {"findings": words, "mended": gettext(_SAFE)}
