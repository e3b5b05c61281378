"""`manage.py settings_table`: print the page of settings."""

from typing import Any

from django.core.management.base import BaseCommand

from console.documentation import reference


class Command(BaseCommand):
    """Print the page."""

    help = "Prints every environment variable with its meaning, its unit and its default, as Markdown."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(reference.build("settings"), ending="")
