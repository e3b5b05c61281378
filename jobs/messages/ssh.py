"""Sentences about refused SSH keys and sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_KEYS: Final = {
    "private": _(
        "This is the private key. Keep it to yourself, and paste the one from the file that ends in .pub."
    ),
    "not_one": _("Paste one public key: one line, as it stands in the file that ends in .pub."),
    "weak": _(
        "Keys of kind %(algorithm)s are not safe any more; make a new one with “ssh-keygen -t ed25519”."
    ),
    "short": _(
        "This RSA key has %(bits)s bits, and %(least)s are the least; "
        "make a new one with “ssh-keygen -t ed25519”."
    ),
    "unknown": _("This is no public key of a kind that is known here: ed25519, ECDSA or RSA."),
    "there": _("You have this key here already."),
    "taken": _("Somebody else has this key here already; make one of your own with “ssh-keygen -t ed25519”."),
    "too_many": _("There are %(most)s keys here already; remove one that you don't use any more."),
}

_ENTRIES: Final = {
    "nowhere": _("There is no such job, or it is not for you to enter."),
    "not_running": _("This replica is not running: it has not started yet, or it has ended."),
    "full_person": _("You have too many ways into jobs open; close one and try again."),
    "full": _("Too many people are inside jobs now; try again in a while."),
    "no_exec": _("This cluster offers no way into a running job."),
    "no_program": _("The job has no such program."),
    "limits": _("The session could not be brought under the job's limits, so it was not begun."),
    "not_its_own": _("Only what this replica itself listens on is reached this way."),
    "failed": _("The session could not be begun; the console's log says why."),
    "engine_away": _("The cluster did not let anybody in within its time; try again in a while."),
    "away": _("The console's database does not answer; try again in a while."),
    "ended": _("This terminal has ended."),
    "silent": _("What serves terminals and SSH does not answer; the console's log shells.log may say why."),
}


def key_message(code: str, params: Mapping[str, object]) -> str:
    """Return the sentence for a `jobs.access.sshkeys.BadKey`."""
    return say((_KEYS[code],), params)


def entry_message(code: str) -> str:
    """Return the sentence for a `jobs.access.sessions.EntryRefused`, or a backend's `Barrier`."""
    return say((_ENTRIES[code],), {})
