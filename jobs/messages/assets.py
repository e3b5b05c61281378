"""Sentences about problems of assets, and about results of asset checks."""

from __future__ import annotations

from typing import Final

from jobs.messages.sentences import mark as _
from jobs.messages.sentences import say

_SENTENCES: Final = {
    "git_scheme": (_("Repository addresses must start with https:// or ssh://."),),
    "http_scheme": (_("The address must start with https://, or http:// for hosts allowed by an admin."),),
    "scheme": (_("The address must start with %(detail)s."),),
    "login_in_address": (_("Don't put credentials in the address. Use the user name and password fields."),),
    "password_again": (_("Address or login settings changed. Enter the password again."),),
    "other_host": (
        _("The saved password belongs to %(detail)s. To use another host, create a new dataset."),
    ),
    "chained": (_("Nested addresses (“::”) are not allowed."),),
    "address": (_("Invalid address: spaces, “..” and anything after the path are not allowed."),),
    "folder": (_("Enter an absolute path on the machine, or an address such as nas://… or cpfs://…."),),
    "of_the_console": (
        _("Only the console can store files of jobs. Save a folder on the Files page of a job."),
    ),
    "no_cluster": (_("No cluster in the workspace can run this test."),),
    "no_trial": (_("No effect on this console's clusters; only used by the vendor's platform."),),
    "too_many_trials": (_("Several of your tests are still running. Wait for one to finish."),),
    "image_not_used": (_("This cluster has no container engine and runs jobs without images."),),
    "asset_retired": (_("Retired."),),
    "asset_not_yours": (_("Not available to jobs in this workspace."),),
    "no_dataset_version": (_("Version not found."),),
    "refused": (_("The cluster rejected the test."),),
    "no_room": (_("The cluster has no free capacity for a test right now."),),
    "worked": (_("Read successfully."),),
    "failed": (_("Read failed."),),
    "lost": (_("Test result unknown."),),
    "no_own_secret": (_("Save your secret first: each user must provide their own."),),
}


def asset_message(code: str, detail: str = "") -> str:
    """Return the sentence for a code, in the current language."""
    return say(_SENTENCES[code], {"detail": detail})
