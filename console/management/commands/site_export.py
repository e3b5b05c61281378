"""`manage.py site_export > site.yaml`: what there is, as the file that `apply` reads."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from console.site_yaml.export import export
from console.site_yaml.shape import json_schema


class Command(BaseCommand):
    """No secret is in it: clusters' own settings, passwords and keys are not."""

    help = "Writes people, groups, workspaces, quotas, nodes, prices, templates and more as site.yaml."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--schema", action="store_true", help="Write the file's JSON Schema instead, for editors."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["schema"]:
            self.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=False))
            return
        self.stdout.write(export(), ending="")
