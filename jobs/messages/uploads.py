"""Sentences about refused uploads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_SENTENCES: Final = {
    "file_large": _("A file of uploaded code may have %(most)s MiB at the most."),
    "tree_large": _("An uploaded folder may have %(most)s MiB in it at the most."),
    "tree_files": _("An uploaded folder may have %(most)s files in it at the most."),
    "person_full": _(
        "You would have more than %(most)s MiB of uploaded code; what no job and no draft uses is removed "
        "after a while."
    ),
    "pack_large": _("A pack of small files may have %(most)s MiB at the most."),
    "pack_cut": _("The pack ends in the middle of a file."),
    "busy": _("The same file is being sent elsewhere at this moment; try again in a moment."),
    "offset": _("%(received)s bytes of the file are there: go on from that one."),
    "longer": _("More bytes came than the file has."),
    "hash": _("What arrived is not what was announced: its SHA-256 is another."),
    "digest": _("This is no SHA-256."),
    "range": _("This Content-Range can't be read."),
    "length": _("Say how many bytes there are, by Content-Length."),
    "missing": _("Some of the files have not been sent yet."),
    "format": _("This is no list of files."),
    "entry": _("There is an entry in the list that is neither a file, a link nor a folder: %(path)s"),
    "path": _("A path leads through the folders of the upload alone: %(path)s"),
    "name": _("This name is too long, or can't be written: %(path)s"),
    "twice": _("This path is there twice: %(path)s"),
    "below_a_file": _("Something lies below this path, which is no folder: %(path)s"),
    "link": _("This link leads nowhere that can be written: %(path)s"),
    "link_out": _("This link leads out of the uploaded folder: %(path)s"),
    "size": _("The same content is said to have two sizes: %(path)s"),
    "failed": _("The upload failed."),
}


def upload_message(code: str, params: Mapping[str, object]) -> str:
    """Return the sentence for a `jobs.assets.uploads.store.NotTaken` or a `jobs.trees.BadTree`."""
    return say((_SENTENCES.get(code, _SENTENCES["failed"]),), params)
