"""`manage.py bootstrap`: bring a new or an upgraded installation to where the console can start."""

import secrets
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from console.configuration import single
from console.monitoring.health import is_migrated
from console.server.statics import collect_if_changed
from jobs.assets.official_images import add_official_images
from quotas.accounts.bootstrap import ensure_defaults

PASSWORD_BYTES = 12


class Command(BaseCommand):
    """Repeating it changes nothing. Standard output has only what the person must know."""

    help = "Checks the settings, migrates, collects static files, makes the first admin and workspace."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if not is_migrated():  # migrating when there is nothing to do takes a second
                call_command("migrate", interactive=False, verbosity=0)
        except OperationalError as problem:
            raise CommandError(f"The database does not answer: {problem}") from problem
        collect_if_changed()
        users = get_user_model().objects
        admin = users.filter(is_superuser=True).order_by("pk").first()
        if admin is None:
            password = settings.CONSOLE_ADMIN_PASSWORD or secrets.token_urlsafe(PASSWORD_BYTES)
            admin = users.create_superuser("admin", password=password)
            shown = "the one in CONSOLE_ADMIN_PASSWORD" if settings.CONSOLE_ADMIN_PASSWORD else password
            self.stdout.write(f"First admin: user admin, password {shown} (told this once).")
        if ensure_defaults(admin, has_several_hosts=settings.CONSOLE_HAS_SEVERAL_HOSTS):
            add_official_images()
        self.check(tags=["console"], databases=["default"])
        single.record()
