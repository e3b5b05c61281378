"""Sentences about refused SSH keys and sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_KEYS: Final = {
    "private": _(
        "This is a private key. Keep it secret, and paste the public key from the file ending in .pub."
    ),
    "not_one": _("Paste one public key: one line, as in the file ending in .pub."),
    "weak": _("%(algorithm)s keys are no longer secure. Create a new one with “ssh-keygen -t ed25519”."),
    "short": _(
        "This RSA key has %(bits)s bits; the minimum is %(least)s. Create a new one with "
        "“ssh-keygen -t ed25519”."
    ),
    "unknown": _("Unsupported public key. Supported types: ed25519, ECDSA, RSA."),
    "there": _("You have already added this key."),
    "taken": _("Another user has already added this key. Create your own with “ssh-keygen -t ed25519”."),
    "too_many": _("Maximum of %(most)s keys reached. Remove one that you no longer use."),
}

_ENTRIES: Final = {
    "nowhere": _("Job not found, or no permission."),
    "not_running": _("This replica is not running: not started yet, or already ended."),
    "full_person": _("You have too many active sessions. Close one and try again."),
    "full": _("The console has too many active sessions. Try again later."),
    "no_ssh": _("SSH is turned off on this console."),
    "no_exec": _("This cluster does not support access to running jobs."),
    "no_program": _("Program not found in the job."),
    "limits": _("Session not started: the job's limits could not be applied."),
    "not_its_own": _("Only ports of this replica itself can be reached this way."),
    "failed": _("The session could not be started. See the console's log for details."),
    "engine_away": _("Timed out connecting to the cluster. Try again later."),
    "away": _("The console's database is not responding. Try again later."),
    "ended": _("The terminal has ended."),
    "silent": _("The terminal and SSH service is not responding. See the console's log shells.log."),
}


def key_message(code: str, params: Mapping[str, object]) -> str:
    """Return the sentence for a `jobs.access.sshkeys.BadKey`."""
    return say((_KEYS[code],), params)


def entry_message(code: str) -> str:
    """Return the sentence for a `jobs.access.sessions.EntryRefused`, or a backend's `Barrier`."""
    return say((_ENTRIES[code],), {})
