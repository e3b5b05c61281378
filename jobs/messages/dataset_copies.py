"""Sentences about folders of jobs that could not be saved as datasets."""

from __future__ import annotations

from typing import Final

from jobs.messages.folders import folder_message
from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say
from jobs.messages.uploads import upload_message

FOLDER: Final = "folder."
UPLOAD: Final = "upload."
"""Prefixes of the codes of `jobs.messages.folders` and `jobs.messages.uploads`."""

_SENTENCES: Final = {
    "running": _("The job has not ended: its files may still change."),
    "name": _("Enter a name with at most 200 characters."),
    "name_taken": _("The workspace has a dataset of this name already."),
    "too_many": _("Several of your folders are still being saved. Wait for one to finish."),
    "slow": _("The folder could not be read in time."),
    "lost": _("Saving the folder was interrupted several times."),
}


def copy_message(code: str, detail: str = "") -> str:
    """Return the sentence for the code of a DatasetCopy or of a refused request for one."""
    if code.startswith(FOLDER):
        return folder_message(code.removeprefix(FOLDER), {"name": detail, "most": detail})
    if code.startswith(UPLOAD):
        return upload_message(code.removeprefix(UPLOAD), {"path": detail, "most": detail, "received": detail})
    return say((_SENTENCES[code],), {})
