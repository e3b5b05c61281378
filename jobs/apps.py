"""The jobs application: building, submitting and following jobs."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class JobsConfig(AppConfig):
    """Registered as `jobs`; imports `quotas`, never `console`."""

    name = "jobs"
    verbose_name = _("Jobs")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from jobs.models import (  # noqa: PLC0415  # there are models from here on
            ASSETS,
            DatasetVersion,
            FaultPattern,
            Guarded,
            LogSink,
            PersonalSecret,
            RamRole,
            RetentionPolicy,
            SiteStorage,
            SiteStorageCluster,
            SshKey,
            Template,
        )
        from quotas import audit  # noqa: PLC0415

        audit.follow(PersonalSecret, masked=("ciphertext",))
        audit.follow(SshKey, without=("last_used_at",))
        for model in ASSETS.values():
            audit.follow(
                model,
                without=("updated_at",),
                masked=("ciphertext",) if issubclass(model, Guarded | RamRole) else (),
            )
        audit.follow(DatasetVersion)
        audit.follow(Template)
        audit.follow(FaultPattern)
        audit.follow(LogSink, without=LogSink.WORKER_FIELDS, masked=("ciphertext",))
        audit.follow(
            SiteStorage,
            without=SiteStorage.TEST_FIELDS,
            masked=("ciphertext",),
            links=("workspaces",),
        )
        audit.follow(SiteStorageCluster)
        audit.follow(RetentionPolicy)
