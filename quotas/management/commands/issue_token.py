"""`manage.py issue_token USER`: a token for the native API, as JSON."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from quotas.accounts import tokens
from quotas.models import User


class Command(BaseCommand):
    """Prints `{"token", "expires"}`, or the token alone; it is shown this once."""

    help = "Issue an access token of the native API."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", metavar="USER", help="whose token it is")
        parser.add_argument(
            "--scopes",
            nargs="+",
            choices=list(tokens.SCOPES),
            default=list(tokens.SCOPES),
            help="what it may be used for; all that its owner may do when left out",
        )
        parser.add_argument("--days", type=int, default=90, help="how long it works")
        parser.add_argument("--name", default="", help="what it is for")
        parser.add_argument("--plain", action="store_true", help="print the token alone, for a pipe")

    def handle(self, *args: Any, **options: Any) -> None:
        """Issue and print."""
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is nobody called {options['user']}.")
        if options["days"] < 1:
            raise CommandError("A token lives for a day at least.")
        lifetime = timedelta(days=options["days"])
        token = tokens.issue(user, name=options["name"], scopes=options["scopes"], lifetime=lifetime)
        expires = (timezone.now() + lifetime).isoformat(timespec="seconds")
        self.stdout.write(token if options["plain"] else json.dumps({"token": token, "expires": expires}))
