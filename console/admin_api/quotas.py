"""Resource quotas over the administration's API; checked as in the admin's form.

CPU is in milli-cores and memory in MiB, as everywhere in the native API; null is no limit.
"""

from __future__ import annotations

from typing import Any, Final

from django.db.models import ProtectedError
from django.forms import model_to_dict
from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.admin_api.base import CHANGED, PAGE, AdminView, StateConflict
from jobs.api.native import shapes
from jobs.api.native.base import ABSENT, AFTER, LIMIT, REFUSED
from jobs.api.native.idempotency import IDEMPOTENCY_KEY, idempotent
from jobs.live import triggers
from quotas import ledger
from quotas.admin.forms import QuotaForm
from quotas.audit import action_record
from quotas.models import AdminAction, Cluster, Quota, Workspace

DRAIN: Final = "allow_below_use"
_GREATEST: Final = 2**31 - 1
_GREATEST_AMOUNT: Final = 2**53


def _limit(most: int = _GREATEST) -> serializers.IntegerField:
    return serializers.IntegerField(min_value=0, max_value=most, allow_null=True, required=False)


class QuotaLimitsShape(shapes.ApiShape):
    """Limits of a quota, and of one person in it; a field that is left out stays, null is no limit.

    A limit below what is in use needs `allow_below_use`: running jobs finish, and nothing starts until then.
    """

    name = shapes.TextField(max_length=200, required=False)
    parent = serializers.IntegerField(  # type: ignore[assignment]  # the field of that name
        min_value=1, max_value=_GREATEST_AMOUNT, allow_null=True, required=False, help_text="a quota's id"
    )
    accepts_jobs = serializers.BooleanField(required=False)
    gpus = _limit()
    gpus_by_type = serializers.DictField(
        child=serializers.IntegerField(min_value=0, max_value=_GREATEST), required=False
    )
    cpu_milli = _limit(_GREATEST_AMOUNT)
    memory_mib = _limit(_GREATEST_AMOUNT)
    most_jobs = _limit()
    gpu_hours = _limit()
    person_gpus = _limit()
    person_cpu_milli = _limit(_GREATEST_AMOUNT)
    person_memory_mib = _limit(_GREATEST_AMOUNT)
    person_jobs = _limit()
    may_borrow = serializers.BooleanField(required=False)
    fair_share_weight = serializers.IntegerField(min_value=1, max_value=100, required=False)
    least_running_minutes = _limit()
    allow_below_use = serializers.BooleanField(default=False, write_only=True)


class NewQuotaShape(QuotaLimitsShape):
    """A new quota of a workspace on a cluster."""

    workspace = shapes.TextField(max_length=63)
    cluster = shapes.TextField(max_length=63)
    slug = shapes.TextField(max_length=63)
    name = shapes.TextField(max_length=200)


class AdminQuotaShape(shapes.ApiShape):
    """A quota; `parent` is the id of the quota that it is part of."""

    id = serializers.IntegerField(source="pk")
    workspace = serializers.CharField(source="workspace.slug")
    cluster = serializers.CharField(source="cluster.slug")
    slug = serializers.CharField()
    name = serializers.CharField()
    parent = serializers.IntegerField(  # type: ignore[assignment]  # the field of that name
        source="parent_id", allow_null=True
    )
    accepts_jobs = serializers.BooleanField()
    gpus = serializers.IntegerField(allow_null=True)
    gpus_by_type = serializers.DictField(child=serializers.IntegerField())
    cpu_milli = serializers.IntegerField(allow_null=True)
    memory_mib = serializers.IntegerField(allow_null=True)
    most_jobs = serializers.IntegerField(allow_null=True)
    gpu_hours = serializers.IntegerField(allow_null=True)
    person_gpus = serializers.IntegerField(allow_null=True)
    person_cpu_milli = serializers.IntegerField(allow_null=True)
    person_memory_mib = serializers.IntegerField(allow_null=True)
    person_jobs = serializers.IntegerField(allow_null=True)
    may_borrow = serializers.BooleanField()
    fair_share_weight = serializers.IntegerField()
    least_running_minutes = serializers.IntegerField(allow_null=True)


class AdminQuotasPage(shapes.ApiShape):
    """Quotas in the order in which they were made, and the address of the next ones."""

    quotas = AdminQuotaShape(many=True)
    next = serializers.CharField(allow_null=True)


class AdminQuotas(AdminView):
    """The quotas of all workspaces."""

    @extend_schema(
        operation_id="admin_quotas_list",
        parameters=[AFTER, LIMIT, OpenApiParameter("workspace", str), OpenApiParameter("cluster", str)],
        responses={200: AdminQuotasPage, **REFUSED},
    )
    def get(self, request: Request) -> Response:
        """List them by keys."""
        rows = Quota.objects.select_related("workspace", "cluster").order_by("pk")
        for name in ("workspace", "cluster"):
            if slug := request.query_params.get(name):
                rows = rows.filter(**{f"{name}__slug": slug})
        if after := self.number("after", 0):
            rows = rows.filter(pk__gt=after)
        found, following = self.page(rows, PAGE)
        return Response({"quotas": [AdminQuotaShape.render(row) for row in found], "next": following})

    @extend_schema(
        operation_id="admin_quotas_create",
        request=NewQuotaShape,
        parameters=[IDEMPOTENCY_KEY],
        responses={201: AdminQuotaShape, 200: AdminQuotaShape, **CHANGED},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Add a quota; all that its parents promise is checked."""
        values = NewQuotaShape.parse(request.data)
        problems = {}
        for name, model in (("workspace", Workspace), ("cluster", Cluster)):
            found = model.objects.filter(slug=values[name]).first()
            if found is None:
                problems[name] = [_("Unknown: %(name)s.") % {"name": values[name]}]
            values[name] = found.pk if found else 0
        if problems:
            raise ValidationError(problems)
        row = save_quota(self, Quota(cluster_id=values["cluster"]), values)
        return Response(AdminQuotaShape.render(row), status=201)


class OneQuota(AdminView):
    """One quota."""

    @extend_schema(operation_id="admin_quotas_read", responses={200: AdminQuotaShape, **ABSENT})
    def get(self, request: Request, quota: int) -> Response:
        """Return it."""
        return Response(AdminQuotaShape.render(_find(quota)))

    @extend_schema(
        operation_id="admin_quotas_update",
        request=QuotaLimitsShape,
        responses={200: AdminQuotaShape, **CHANGED},
    )
    def patch(self, request: Request, quota: int) -> Response:
        """Change its limits."""
        values = QuotaLimitsShape.parse(request.data)
        return Response(AdminQuotaShape.render(save_quota(self, _find(quota), values)))

    @extend_schema(operation_id="admin_quotas_remove", responses={204: None, **CHANGED})
    def delete(self, request: Request, quota: int) -> Response:
        """Remove it; 409 while jobs or other quotas belong to it."""
        row = _find(quota)
        try:
            with ledger.lock_cluster(row.cluster_id):
                row.delete()
        except ProtectedError as error:
            raise StateConflict(
                _("The quota is in use: jobs or other quotas belong to it. Let it accept no jobs instead.")
            ) from error
        return Response(status=204)


def save_quota(view: AdminView, quota: Quota, values: dict[str, Any]) -> Quota:
    """Check and save a quota with some new values.  Raises ValidationError."""
    drain = values.pop(DRAIN)
    with ledger.lock_cluster(quota.cluster_id):
        stored = model_to_dict(quota, fields=QuotaForm.Meta.fields)
        stored["idle_exempt_people"] = [person.pk for person in stored["idle_exempt_people"]]
        form = QuotaForm({**stored, **values, "drain": drain}, instance=quota)
        if not form.is_valid():
            errors = form.errors.get_json_data()
            raise ValidationError(
                {
                    "" if name == "__all__" else name: [
                        ErrorDetail(each["message"], code=each["code"] or "invalid") for each in rows
                    ]
                    for name, rows in errors.items()
                }
            )
        saved: Quota = form.save()
        actor = view.actor()
        action_record.write_down(
            actor, AdminAction.Kind.QUOTAS, saved.cluster.name, to=saved.cluster, quota=saved.slug
        )
        triggers.trigger_on_commit("drain", saved.cluster_id)
    return saved


def _find(pk: int) -> Quota:
    row = Quota.objects.select_related("workspace", "cluster").filter(pk=pk).first()
    if row is None:
        raise Http404
    return row
