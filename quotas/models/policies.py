"""Job policies: what a role or a person may ask for in a quota."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext as _text
from django.utils.translation import gettext_lazy as _

from quotas.models.audit_base import Audited
from quotas.models.limits import Quota
from quotas.models.workspaces import Role


class JobPolicy(Audited):
    """Limits on single jobs, and on the number of jobs of one person; an empty field is no limit.

    It holds for everybody in the quota and in those below it, for a `role` of the job's workspace, or for
    one `user`; the most specific one counts.  Those that a workspace's admins set (`by_workspace`) hold
    beside those of the console's admins, so that they can only be stricter.
    """

    quota = models.ForeignKey(
        Quota, models.CASCADE, related_name="policies", verbose_name=_("resource quota")
    )
    by_workspace = models.BooleanField(_("set by the workspace"), default=False, editable=False)
    role = models.CharField(_("role"), max_length=16, choices=Role, blank=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("user"),
    )
    highest_priority = models.PositiveSmallIntegerField(
        _("highest priority"), null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(9)]
    )
    time_limit_minutes = models.PositiveIntegerField(
        _("max time limit (minutes)"), null=True, blank=True, validators=[MinValueValidator(1)]
    )
    default_minutes = models.PositiveIntegerField(
        _("default time limit (minutes)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("For jobs without a time limit."),
    )
    job_gpus = models.PositiveIntegerField(_("GPUs per job"), null=True, blank=True)
    gpu_types = models.CharField(
        _("GPU types"),
        max_length=500,
        blank=True,
        help_text=_("Allowed types, separated by commas. Empty: all types."),
    )
    waiting_jobs = models.PositiveIntegerField(
        _("waiting jobs per user"), null=True, blank=True, help_text=_("More jobs are rejected.")
    )
    running_jobs = models.PositiveIntegerField(
        _("running jobs per user"), null=True, blank=True, help_text=_("More jobs wait.")
    )

    class Meta:
        verbose_name = _("job policy")
        verbose_name_plural = _("job policies")
        ordering = ("quota", "by_workspace", "role", "user")
        constraints = (
            models.UniqueConstraint(
                fields=("quota", "by_workspace", "role"),
                condition=models.Q(user=None),
                name="one_policy_of_role",
            ),
            models.UniqueConstraint(
                fields=("quota", "by_workspace", "user"),
                condition=models.Q(user__isnull=False),
                name="one_policy_of_user",
            ),
        )

    def __str__(self) -> str:
        return f"{self.quota} · {self.user or self.get_role_display() or _text('All users')}"

    @property
    def type_names(self) -> tuple[str, ...]:
        """Return the allowed types of GPUs; none is all of them."""
        return tuple(filter(None, (name.strip() for name in self.gpu_types.split(","))))

    def clean(self) -> None:
        """Refuse a role and a user in one row, and a default above the most."""
        if self.role and self.user_id:
            raise ValidationError({"user": _("Select a role or a user, not both.")})
        longest, default = self.time_limit_minutes, self.default_minutes
        if longest is not None and default is not None and default > longest:
            raise ValidationError({"default_minutes": _("Must not be above the max time limit.")})
        same = JobPolicy.objects.filter(
            quota=self.quota_id, by_workspace=self.by_workspace, role=self.role, user=self.user_id
        )
        if same.exclude(pk=self.pk).exists():
            raise ValidationError(_("This quota has a policy for this role and user already."))
