"""Static files where nobody has collected them."""

from __future__ import annotations

from django.contrib.staticfiles.storage import StaticFilesStorage

from console.server.statics import RememberedAddresses


class UnhashedStorage(RememberedAddresses, StaticFilesStorage):
    """Files under their own names."""
