"""`manage.py break_glass USER`: a way in for the day when nothing else lets an admin in."""

from __future__ import annotations

from typing import Any

import structlog
from allauth.account.utils import user_pk_to_url_str
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.urls import reverse

from quotas import audit
from quotas.accounts import activation
from quotas.models import Action, User

log = structlog.get_logger(__name__)


class Command(BaseCommand):
    """Prints a link that signs USER in, once, for some minutes, in a browser on this machine.

    Neither a password nor a second factor is asked for: whoever may run this can change both anyhow.
    """

    help = "Make a one-time link that signs a break-glass account or a superuser in, from this machine."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", metavar="USER", help="a break-glass account or a superuser")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"]).first()
        if user is None or not activation.may_break_glass(user):
            raise CommandError(f"{options['user']} is no break-glass account or superuser that works.")
        with transaction.atomic():
            audit.log(Action.BREAK_GLASS, user, details={"link": True})
        log.warning("break_glass_link", person=user.get_username())
        token = activation.break_glass.make_token(user)
        path = reverse("break_glass", args=[user_pk_to_url_str(user), token])
        self.stdout.write(f"http://127.0.0.1:{settings.PORT}{path}")
