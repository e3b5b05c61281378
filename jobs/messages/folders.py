"""Sentences about files of jobs that can't be shown or changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_SENTENCES: Final = {
    "nowhere": _("Job not found, or no permission to view its files."),
    "not_begun": _("No files yet: the replica has not started."),
    "gone": _("The files of this replica have been deleted."),
    "no_exec": _("This cluster doesn't provide access to job files."),
    "ended": _("The replica has ended: files are read-only."),
    "silent": _("The file service is not responding. See the console log shells.log."),
    "slow": _("Timed out reading the files. Try again in a moment."),
    "engine_away": _("Timed out connecting to the cluster. Try again later."),
    "away": _("The console's database is not responding. Try again later."),
    "broke_off": _("Connection lost: the replica may have just ended. Try again."),
    "busy_person": _("You have too many file transfers open. Wait for one to finish."),
    "busy": _("Too many file transfers in progress. Try again in a moment."),
    "no_root": _("Folder %(name)s not found."),
    "absent": _("%(name)s no longer exists."),
    "name": _("“%(name)s” is not a valid file name."),
    "link": _("%(name)s is a symbolic link. Links are listed but not followed."),
    "special": _("%(name)s is a pipe, socket or device and can't be opened."),
    "linked": _("%(name)s is a hard link to another user's file and can't be opened."),
    "is_folder": _("%(name)s is a folder."),
    "denied": _("Permission denied for the job's user: %(name)s."),
    "read_only": _("%(name)s is read-only."),
    "exists": _("%(name)s already exists."),
    "full": _("Not enough disk space for %(name)s."),
    "mounted": _("%(name)s is a mounted folder and can't be changed."),
    "too_many": _("%(name)s has too many files for one operation."),
    "too_large": _("Maximum file size: %(most)s MiB."),
    "changed": _("The file changed while being read. Try again."),
    "range": _("Invalid byte range."),
    "failed": _("The operation failed. See the console log."),
}

LEFT_OUT: Final = {
    "link": _("symbolic link; not followed"),
    "special": _("a pipe, a socket or a device"),
    "linked": _("hard link to another user's file"),
    "denied": _("permission denied for the job's user"),
    "mounted": _("mounted folder"),
    "too_many": _("too many files for one zip archive"),
    "changed": _("truncated while being read; the end is missing"),
    "absent": _("removed while being read"),
    "failed": _("could not be read"),
    "note": _("left-out.txt"),
}
"""What the last entry of a zip file says of what is not in it, and what that entry is called."""


def folder_message(code: str, params: Mapping[str, object]) -> str:
    """Return the sentence for a `jobs.access.folders.client.FolderRefused`."""
    return say((_SENTENCES.get(code, _SENTENCES["failed"]),), params)


def left_out() -> dict[str, str]:
    """Return the texts for a zip file, in the reader's language."""
    return {code: say((text,), {}) for code, text in LEFT_OUT.items()}
