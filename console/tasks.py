"""Celery's way to directories and providers: who is still there is asked again and again."""

from __future__ import annotations

from celery import shared_task
from django.conf import settings


@shared_task
def ask_directory() -> None:
    """Refresh the accounts of the directory, and their groups."""
    if settings.CONSOLE_LDAP:
        from console.sign_in import directory  # noqa: PLC0415  # it needs the extra `ldap`

        directory.update_all()


@shared_task
def ask_providers() -> None:
    """People who came by OIDC."""
    from console.sign_in.oidc import again  # noqa: PLC0415  # models are there by now

    again.ask_all()
