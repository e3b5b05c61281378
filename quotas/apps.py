"""The quotas application: who may use what, and how much of it."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class QuotasConfig(AppConfig):
    """Registered as `quotas`; never imports `jobs`."""

    name = "quotas"
    verbose_name = _("Workspaces and quotas")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from quotas.audit import registrations  # noqa: PLC0415  # there are models from here on

        registrations.begin()
