"""The console application: checks, commands, site pages, and the admin that it puts together."""

import django_stubs_ext
from django.apps import AppConfig
from django.contrib.admin import apps as admin
from django.utils.translation import gettext_lazy as _

# Lets Django's generic classes be written with their parameters, as the type checker wants them. Django
# imports this module before any model, form or admin.
django_stubs_ext.monkeypatch()


class ConsoleConfig(AppConfig):
    """Registered as `console`; the only application that may import all others."""

    default = True

    name = "console"
    verbose_name = _("Console")

    def ready(self) -> None:
        from console.checks import system_checks  # noqa: F401, PLC0415  # they register themselves
        from console.monitoring import measures  # noqa: PLC0415  # there are models from here on

        measures.register()


class ConsoleAdminConfig(admin.SimpleAdminConfig):
    """Stands for `django.contrib.admin` in INSTALLED_APPS.

    The admin's pages are imported with all other pages (`console.urls`): a command needs none of them.
    """

    default = False
    default_site = "console.administration.adminsite.ConsoleAdminSite"
