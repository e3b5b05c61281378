"""Sentences about files of jobs that can't be shown or changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_SENTENCES: Final = {
    "nowhere": _("There is no such job, or its files are not for you to see."),
    "not_begun": _("This replica has not begun yet, so that it has no files."),
    "gone": _("The files of this replica have been removed."),
    "no_exec": _("This cluster offers no way to the files of a job."),
    "ended": _("The replica has ended: what is left of it can be read, but not changed."),
    "silent": _("What serves the files does not answer; the console's log shells.log may say why."),
    "slow": _("The files did not answer in time; try again in a moment."),
    "engine_away": _("The cluster did not let anybody in within its time; try again in a while."),
    "away": _("The console's database does not answer; try again in a while."),
    "broke_off": _("The answer broke off: the replica may have ended just now. Try again."),
    "busy_person": _("You have too many downloads and uploads open; wait until one has ended."),
    "busy": _("Too many downloads and uploads are open now; try again in a moment."),
    "no_root": _("There is no folder %(name)s here."),
    "absent": _("%(name)s is not there any more."),
    "name": _("“%(name)s” can't be the name of a file."),
    "link": _("%(name)s is a symbolic link. Links are shown, and never followed."),
    "special": _("%(name)s is a pipe, a socket or a device, and is never opened."),
    "linked": _("%(name)s is a second name for a file of somebody else, and is not opened."),
    "is_folder": _("%(name)s is a folder."),
    "denied": _("The job's user may not do this with %(name)s."),
    "read_only": _("%(name)s lies where nothing can be written."),
    "exists": _("%(name)s is there already."),
    "full": _("There is no space left for %(name)s."),
    "mounted": _("%(name)s is a folder that is mounted there, and stays as it is."),
    "too_many": _("There is too much in %(name)s for one go."),
    "too_large": _("A file may have %(most)s MiB at the most."),
    "changed": _("The file changed while it was read. Try again."),
    "range": _("The file has no such part."),
    "failed": _("The system refused; the console's log may say why."),
}

LEFT_OUT: Final = {
    "link": _("a symbolic link; links are not followed"),
    "special": _("a pipe, a socket or a device"),
    "linked": _("a second name for a file of somebody else"),
    "denied": _("the job's user may not read it"),
    "mounted": _("a folder that is mounted there"),
    "too_many": _("too many files for one zip file"),
    "changed": _("it became shorter while it was read, so that its end is missing"),
    "absent": _("it was removed meanwhile"),
    "failed": _("it could not be read"),
    "note": _("left-out.txt"),
}
"""What the last entry of a zip file says of what is not in it, and what that entry is called."""


def folder_message(code: str, params: Mapping[str, object]) -> str:
    """Return the sentence for a `jobs.access.folders.client.FolderRefused`."""
    return say((_SENTENCES.get(code, _SENTENCES["failed"]),), params)


def left_out() -> dict[str, str]:
    """Return the texts for a zip file, in the reader's language."""
    return {code: say((text,), {}) for code, text in LEFT_OUT.items()}
