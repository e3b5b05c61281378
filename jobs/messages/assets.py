"""Sentences about problems of assets, and about results of asset checks."""

from __future__ import annotations

from typing import Final

from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_SENTENCES: Final = {
    "git_scheme": (_("The address of a repository begins with https:// or ssh://."),),
    "http_scheme": (_("The address begins with https://, or http:// for a host that an admin allows."),),
    "scheme": (_("The address begins with %(detail)s."),),
    "login_in_address": (_("A login has no place in the address: enter it in its own fields."),),
    "password_again": (_("What the password belongs to has changed: enter the password again."),),
    "other_host": (_("The kept password belongs to %(detail)s: data of another host is another dataset."),),
    "chained": (_("Addresses that name another one inside (“::”) are not taken."),),
    "address": (_("This address can't be read: it may have no blanks, no “..” and nothing after the path."),),
    "folder": (_("This has to be an absolute path of the machine, or an address like nas://… or cpfs://…."),),
    "no_cluster": (_("There is no cluster in its workspace on which it could be tried."),),
    "no_trial": (_("It means nothing here: it is carried to the vendor's own targets."),),
    "too_many_trials": (_("Several trials of yours are under way: wait for one of them."),),
    "image_not_used": (_("This cluster has no container engine, and runs jobs without their images."),),
    "asset_retired": (_("It was retired."),),
    "asset_not_yours": (_("Jobs of the workspace may not be made of it."),),
    "no_dataset_version": (_("It has no such version."),),
    "refused": (_("The cluster refused to try it."),),
    "no_room": (_("The cluster has no room for a trial now."),),
    "worked": (_("It could be read."),),
    "failed": (_("It could not be read."),),
    "lost": (_("What became of the trial is not known."),),
    "no_own_secret": (_("You have not saved the secret which it asks everybody for."),),
}


def asset_message(code: str, detail: str = "") -> str:
    """Return the sentence for a code, in the current language."""
    return say(_SENTENCES[code], {"detail": detail})
