"""`manage.py issue_access_key USER`: an access key for the vendors' clients, as JSON."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from quotas.accounts import access_keys, tokens
from quotas.models import User


class Command(BaseCommand):
    """Prints `{"access_key_id", "access_key_secret"}`; the secret is shown this once."""

    help = "Issue an access key for the vendors' clients."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", metavar="USER", help="owner of the key")
        parser.add_argument(
            "--scopes",
            nargs="+",
            choices=list(tokens.SCOPES),
            default=list(tokens.SCOPES),
            help="what it may be used for; default: all that its owner may do",
        )
        parser.add_argument("--days", type=int, default=None, help="lifetime; default: until it is revoked")
        parser.add_argument("--name", default="", help="purpose")

    def handle(self, *args: Any, **options: Any) -> None:
        """Issue and print."""
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is nobody called {options['user']}.")
        days: int | None = options["days"]
        if days is not None and days < 1:
            raise CommandError("An access key lives for a day at least.")
        lifetime = None if days is None else timedelta(days=days)
        issued = access_keys.issue(user, name=options["name"], scopes=options["scopes"], lifetime=lifetime)
        key = {"access_key_id": issued.row.key_id, "access_key_secret": issued.secret}
        self.stdout.write(json.dumps(key))
