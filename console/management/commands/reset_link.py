"""`manage.py reset_link USER`: a link by which somebody sets a new password."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.addresses import absolute
from quotas.accounts import resets
from quotas.models import User


class Command(BaseCommand):
    """Prints the link; it works once, for three days, and until the person signs in."""

    help = "Make a one-time link by which somebody sets a new password."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", metavar="USER", help="whose password it is")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"], kind=User.Kind.PERSON).first()
        if user is None:
            raise CommandError(f"There is nobody called {options['user']}.")
        self.stdout.write(absolute(resets.path_for(user)))
