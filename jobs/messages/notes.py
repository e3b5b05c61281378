"""Sentences about notes: tolerated, ignored, approximated or lost parts of a job file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.dialects.base import Note
from jobs.dialects.spans import split
from jobs.language import gettext
from jobs.messages import amounts, extraction, manifests, requests, rules, scripts
from jobs.messages.dialects import dialect_label
from jobs.messages.fieldnames import field_name
from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say
from jobs.messages.support import support_message

_MAPS: Final = frozenset({"framework_options", "options", "labels"})
"""Maps whose members are named alone: advanced settings, options of a mount, labels of nodes."""

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
    "tolerated_tabs": (_("Tabs inside strings were left unchanged."),),
    "tolerated_line_numbers": (_("The line numbers of the pasted listing were skipped."),),
    "number_from_text": (_("%(key)s “%(value)s” was read as the number %(taken)s."),),
    "raised": (_("%(key)s is %(value)s; raised to the minimum of %(taken)s (%(source)s)."),),
    "below_advised": (_("%(key)s is %(value)s; %(source)s requires at least %(least)s."),),
    "default_taken": (
        _("%(key)s is missing but required (%(source)s); %(value)s is used."),
        _("%(key)s is missing but required (%(source)s)."),
    ),
    "looser_rule": (_("%(key)s: %(applied)s allows %(value)s, %(stricter)s does not. Accepted."),),
    "unknown_key": (
        _("%(key)s is unknown and ignored (kept in the file). Did you mean %(meant)s?"),
        _("%(key)s is unknown and ignored (kept in the file)."),
    ),
    "obsolete_key": (
        _("%(key)s is obsolete and ignored. Use minFailedTaskCount and minSucceededTaskCount instead."),
    ),
    "alerts_told": (
        _("alertConfig: your notification channels tell of %(items)s; the rest is kept in the file."),
    ),
    "kept_unused": (_("%(key)s is ignored (kept in the file)."),),
    "scm_only": (_("%(key)s is specific to SCM and not part of OpenPAI. Used as the disk size."),),
    "form_snapshot": (
        _("%(key)s is cluster information from SCM's form at the time the file was saved; ignored."),
    ),
    "image_with_blanks": (_("The image name contains spaces, which no registry allows."),),
    "invisible_character": (_("The command contains the invisible character %(character)s."),),
    "password_in_command": (
        _(
            "The command contains a password in a URL, visible to everyone who can read the file. To keep "
            "it secret, use a variable in jobEnvs with a name ending in _PASSWORD or _TOKEN."
        ),
    ),
    "secret_taken": (_("The value of %(key)s is saved as a secret; the file contains a placeholder."),),
    "secret_wanted": (
        _("Secret %(name)s is not in the file. It is read from your secrets and must exist there."),
    ),
    "default_time_limit": (_("No time limit given; the default of quota %(quota)s is used: %(duration)s."),),
    "image_not_used": (
        _("%(cluster)s does not run images: the job runs without image %(image)s and is marked accordingly."),
    ),
    "word_unfilled": (
        _("The command contains {%(word)s}, but no sweep parameter has that name. It runs unchanged."),
    ),
    "ports_moved": (
        _(
            "All replicas share one machine on %(cluster)s and can't use the same port. Some replicas get "
            "other ports for %(label)s, listed in the PAI_PORT_LIST variables of all replicas."
        ),
    ),
    "egress_ignored": (
        _(
            "Jobs on %(cluster)s share its machine's network: the network access of %(workspace)s is not "
            "enforced there."
        ),
    ),
    "location_passed": (
        _("%(cluster)s passes %(place)s to the job as an address: nothing is fetched from there or stored."),
    ),
    "libraries_need_program": (
        _("%(file)s is installed with %(programs)s: it must be on the job's PATH, or in its image."),
    ),
    "asset_unknown": (_("%(id)s is not registered in this console; the target cluster must know it."),),
    "asset_takes_secret": (
        _("%(name)s is fetched with your secret %(secret)s, which is sent to %(host)s."),
        _("%(name)s is fetched with your secret %(secret)s."),
    ),
    "name_not_unique": (_("Another job of yours is named %(name)s; SCM requires unique names."),),
    "page_framework": (_("AIHC accepts only PyTorchJob, not %(framework)s."),),
    "commit_masked": (_("Commit %(commit)s is incomplete; the branch's newest commit is used."),),
    "dataset_of_vpc": (
        _("Dataset %(name)s is in VPC %(vpc)s. A job that mounts it must be in the same VPC."),
    ),
    "not_of_vpc": (_("%(id)s is not registered for VPC %(vpc)s."),),
    "env_name_unusable": (
        _("Variable %(name)s skipped: not a valid name for a shell variable (kept in the file)."),
    ),
    "env_value_converted": (_("The value of %(name)s is not a string; stored in the variable as JSON."),),
    "duplicate_role": (
        _("Duplicate task role %(name)s. This one is ignored; the later one applies, as in OpenPAI."),
    ),
    "duplicate_label": (_("Duplicate port label %(label)s. The later one applies, as in OpenPAI."),),
    "name_unexpandable": (
        _("%(name)s becomes part of variable names; a shell can't expand names that contain . or ~."),
    ),
    "written_anew": (_("The file was regenerated: the change could not be made in the original text."),),
    "lost": (
        _("%(path)s (%(value)s) has no equivalent in %(dialect)s and was left out."),
        _("%(path)s has no equivalent in %(dialect)s and was left out."),
    ),
    "approximated": (_("%(path)s: %(value)s became %(instead)s in %(dialect)s."),),
    "added": (_("%(dialect)s adds %(path)s: %(instead)s."),),
    "kept_for_console": (
        _("Kept for Job Console; %(dialect)s will read %(path)s as %(instead)s, not %(value)s."),
        _("Kept for Job Console; %(dialect)s will read %(path)s as %(instead)s."),
        _("Kept for Job Console; %(dialect)s will ignore: %(path)s (%(value)s)."),
        _("Kept for Job Console; %(dialect)s will ignore: %(path)s."),
    ),
    "not_carried": (_("%(path)s is specific to its original format and not included in %(dialect)s."),),
    "fault_argument_unknown": (_("--%(name)s is unknown and has no effect here."),),
    "fault_argument_unused": (_("--%(name)s has no effect here; it is kept for export."),),
    "fault_patterns_without_restarts": (
        _("Output that matches a pattern ends the job: no restarts are allowed. Set a maximum of restarts."),
    ),
    "restart_budgets": (
        _(
            "torchrun starts the processes of %(role)s again up to %(inner)s times. Only then has "
            "the replica failed, and fault tolerance counts one of its %(outer)s restarts."
        ),
    ),
    "restart_scope_job": (
        _("Attempts that begin with a sanity check, and Slurm scripts, are restarted as a whole."),
    ),
    "torchrun_restarts_differ": (
        _("--max-restarts %(own)s in the command of %(role)s acts, not %(limit)s restarts of one replica."),
    ),
    "needs_value": (
        _("%(dialect)s requires %(key)s. Enter a value."),
        _("A value required by %(dialect)s is missing."),
    ),
    "repeated_key": (_("Duplicate key “%(key)s”. The last one applies, as in OpenPAI."),),
    "template_unresolved": (
        _(
            "%(value)s is not defined in this file and stays unchanged in the command, as in "
            "OpenPAI. Did you mean %(meant)s?"
        ),
        _("%(value)s is not defined in this file and stays unchanged in the command, as in OpenPAI."),
    ),
    "more_notes": (_("%(count)s more notes."),),
    **extraction.NOTES,
    **requests.NOTES,
    **scripts.NOTES,
    **manifests.NOTES,
    **rules.NOTES,
}

_FIXED: Final = _("Jupyter would have been accessible to others (%(findings)s). %(mended)s")
_REQUOTED: Final = _("Quotes in Jupyter's options were part of the values; fixed.")
_SAFE: Final = _(
    "The fixed command listens only where the console reaches it and requires a token, which is part of the "
    "link."
)
_FINDINGS: Final = {
    "token_empty": _("no token"),
    "listens_everywhere": _("listening on all addresses"),
    "any_origin": _("requests from any website allowed"),
    "literal_quotes": _("quotes in option values"),
    "xsrf_off": _("XSRF protection off"),
}


def note_message(note: Note) -> str:
    """Return the sentence for a note."""
    if note.code == "command_mended":
        return _fixed_message(str(note.params.get("findings", "")))
    if note.code == "no_effect":
        return _unused_field(note)
    if note.code in rules.NOTES:
        return rules.rule_message(note.code, note.params)
    templates = _SENTENCES.get(note.code)
    if not templates:
        return note.code
    dialect = note.params.get("dialect")
    words = {"dialect": dialect_label(dialect)} if isinstance(dialect, str) else {}
    if note.code == "default_time_limit":
        words["duration"] = amounts.duration(int(note.params.get("seconds") or 0))
    return say(templates, {**note.params, **words})


def _unused_field(note: Note) -> str:
    """Return the sentence for a field without effect; of a map it names the member."""
    steps = split(note.pointer)
    name = steps[-1] if steps[-2:-1] and steps[-2] in _MAPS else field_name(note.pointer)
    return gettext("%(field)s: %(support)s") % {
        "field": name,
        "support": support_message("kept", str(note.params.get("why", ""))),
    }


def _fixed_message(findings: str) -> str:
    codes = [code for code in findings.split(",") if code in _FINDINGS]
    if codes == ["literal_quotes"]:
        return gettext(_REQUOTED)
    words = ", ".join(gettext(_FINDINGS[code]) for code in codes)
    return gettext(_FIXED) % {"findings": words, "mended": gettext(_SAFE)}
