"""Sentences about refused uploads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_SENTENCES: Final = {
    "file_large": _("File too large: at most %(most)s MiB per uploaded file."),
    "tree_large": _("Folder too large: at most %(most)s MiB per uploaded folder."),
    "tree_files": _("Too many files: at most %(most)s per uploaded folder."),
    "person_full": _(
        "Your uploaded code would exceed %(most)s MiB. Uploads not used by any job or draft "
        "are removed after a while."
    ),
    "disk_low": _("The console's disk is almost full. Try again later, or tell an admin."),
    "pack_large": _("A pack of small files can have at most %(most)s MiB."),
    "pack_cut": _("The pack ends in the middle of a file."),
    "busy": _("The same file is already being uploaded. Try again in a moment."),
    "offset": _("%(received)s bytes of the file received. Continue from there."),
    "longer": _("More data received than the size of the file."),
    "hash": _("The SHA-256 of the received data does not match."),
    "digest": _("Invalid SHA-256."),
    "range": _("Invalid Content-Range."),
    "length": _("Content-Length is required."),
    "missing": _("Some files have not been uploaded yet."),
    "format": _("Invalid list of files."),
    "entry": _("Not a file, link or folder: %(path)s"),
    "path": _("The path must stay within the uploaded folder: %(path)s"),
    "name": _("Name too long or invalid: %(path)s"),
    "twice": _("Duplicate path: %(path)s"),
    "below_a_file": _("Not a folder, but other paths are below it: %(path)s"),
    "link": _("Invalid link target: %(path)s"),
    "link_out": _("The link points outside the uploaded folder: %(path)s"),
    "size": _("Different sizes for the same content: %(path)s"),
    "failed": _("The upload failed."),
}


def upload_message(code: str, params: Mapping[str, object]) -> str:
    """Return the sentence for a `jobs.assets.uploads.store.NotTaken` or a `jobs.trees.BadTree`."""
    return say((_SENTENCES.get(code, _SENTENCES["failed"]),), params)
