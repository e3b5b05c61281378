"""Tables in and out of the admin, as CSV and JSON: quotas, members, nodes' states, GPU types, specs, prices.

What is read in goes through the same checks and locks as what is typed by hand, all of it or nothing; first
it is shown what would change.  Rows are found by names, never by keys; nothing is removed by an import.
"""

from __future__ import annotations

from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from import_export import fields, resources, widgets
from import_export.admin import ImportExportModelAdmin
from import_export.formats import base_formats
from unfold.contrib.import_export.forms import ExportForm, ImportForm

from quotas import audit, forms, gputypes, inventory
from quotas.access import administers
from quotas.models import (
    Action,
    Cluster,
    GpuType,
    Membership,
    Node,
    NodeState,
    Quota,
    Spec,
    SpotPrice,
    User,
    Workspace,
)
from quotas.sheets import plain_cell, safe_cell

YES: Final = frozenset({"1", "true", "yes", "x"})


class SafeCSV(base_formats.CSV):  # type: ignore[misc]  # it is published without types
    """CSV in which no cell is a formula; one that was kept from being one is read in as it was."""

    def export_data(self, dataset: Any, **kwargs: Any) -> Any:
        for _row in range(len(dataset)):
            dataset.append([safe_cell("" if cell is None else str(cell)) for cell in dataset.lpop()])
        return super().export_data(dataset, **kwargs)

    def create_dataset(self, in_stream: Any, **kwargs: Any) -> Any:
        dataset = super().create_dataset(in_stream, **kwargs)
        for _row in range(len(dataset)):
            dataset.append([plain_cell(str(cell)) for cell in dataset.lpop()])
        return dataset


class _ByName(widgets.ForeignKeyWidget):  # type: ignore[misc]
    """A reference by name, with a sentence where there is nothing of that name."""

    def clean(self, value: Any, row: Any = None, **kwargs: Any) -> Any:
        try:
            return super().clean(value, row, **kwargs)
        except self.model.DoesNotExist as error:
            raise ValueError(_("There is nothing called “%(name)s”.") % {"name": value}) from error


class _Parent(widgets.Widget):  # type: ignore[misc]
    """The quota of the same cluster that another one is part of: `workspace/quota`."""

    def clean(self, value: Any, row: Any = None, **kwargs: Any) -> Quota | None:
        if not value:
            return None
        workspace, _slash, slug = str(value).partition("/")
        found = Quota.objects.filter(
            workspace__slug=workspace, slug=slug, cluster__slug=row["cluster"]
        ).first()
        if found is None:
            raise ValueError(_("There is nothing called “%(name)s”.") % {"name": value})
        return found

    def render(self, value: Quota | None, obj: Any = None, **kwargs: Any) -> str:
        return f"{value.workspace.slug}/{value.slug}" if value is not None else ""


def _by(name: str, model: type[Any], column: str = "slug") -> Any:
    return fields.Field(column_name=name, attribute=name, widget=_ByName(model, field=column))


class _Resource(resources.ModelResource):  # type: ignore[misc]
    """Whatever is read in is checked as a form would, under the locks of all clusters."""

    def before_import(self, dataset: Any, **kwargs: Any) -> None:
        with transaction.atomic():
            list(Cluster.objects.select_for_update(no_key=True).order_by("pk"))

    def before_export(self, queryset: Any, **kwargs: Any) -> None:
        with transaction.atomic():
            audit.log(Action.EXPORT, details={"what": str(queryset.model.__name__)})


class _Options:
    use_transactions = True
    clean_model_instances = True
    skip_unchanged = True
    report_skipped = True
    skip_diff = False


class QuotaResource(_Resource):
    """Quotas; a ceiling below what is in use needs `yes` in the column `drain`."""

    workspace = _by("workspace", Workspace)
    cluster = _by("cluster", Cluster)
    parent = fields.Field(column_name="parent", attribute="parent", widget=_Parent())

    class Meta(_Options):
        model = Quota
        import_id_fields = ("workspace", "cluster", "slug")
        fields = ("workspace", "cluster", "slug", "parent", *forms.QuotaForm.Meta.fields[4:])
        export_order = fields

    def before_save_instance(self, instance: Quota, row: Any, **kwargs: Any) -> None:
        known = gputypes.names()
        instance.gpus_by_type = {
            gputypes.canonical(kind, known): count for kind, count in instance.gpus_by_type.items()
        }

    def import_row(self, row: Any, instance_loader: Any, **kwargs: Any) -> Any:
        self._drains = str(row.get("drain", "")).strip().lower() in YES
        return super().import_row(row, instance_loader, **kwargs)

    def validate_instance(
        self, instance: Quota, import_validation_errors: Any = None, validate_unique: bool = True
    ) -> None:
        super().validate_instance(instance, import_validation_errors, validate_unique)
        if instance.pk and not self._drains:
            lowered = forms.lowered(instance, vars(instance))
            if lowered:
                errors: dict[str, list[str]] = {}
                for field, kind, used, limit in lowered:
                    text = _("%(used)s are in use, above %(limit)s: write “yes” into a column “drain”.")
                    told = (f"{kind}: " if kind else "") + text % {"used": used, "limit": limit}
                    errors.setdefault(field, []).append(told)
                raise ValidationError(errors)


class MembershipResource(_Resource):
    """Members by their user names."""

    workspace = _by("workspace", Workspace)
    user = _by("user", User, "username")

    class Meta(_Options):
        model = Membership
        import_id_fields = ("workspace", "user")
        fields = ("workspace", "user", "role")


class NodeResource(_Resource):
    """What was decided about nodes; which there are is their engine's to say."""

    cluster = _by("cluster", Cluster)

    class Meta(_Options):
        model = Node
        import_id_fields = ("cluster", "name")
        fields = ("cluster", "name", "state", "state_why")

    def init_instance(self, row: Any = None) -> Node:
        raise ValueError(_("The cluster has no node of this name."))

    def validate_instance(
        self, instance: Node, import_validation_errors: Any = None, validate_unique: bool = True
    ) -> None:
        super().validate_instance(instance, import_validation_errors, validate_unique)
        if instance.state == NodeState.DOWN:
            raise ValidationError({"state": _("That a node is down is the engine's to say.")})

    def import_row(self, row: Any, instance_loader: Any, **kwargs: Any) -> Any:
        self._by = kwargs.get("user")
        return super().import_row(row, instance_loader, **kwargs)

    def do_instance_save(self, instance: Node, is_create: bool) -> None:
        nodes = Node.objects.filter(pk=instance.pk)
        inventory.decide(nodes, NodeState(instance.state), by=self._by, why=instance.state_why)


class GpuTypeResource(_Resource):
    """GPU types and their other names."""

    class Meta(_Options):
        model = GpuType
        import_id_fields = ("name",)
        fields = ("name", "aliases")


class SpecResource(_Resource):
    """Ready-made sizes; an empty cluster is every one, an empty workspace everybody's."""

    cluster = _by("cluster", Cluster)
    workspace = _by("workspace", Workspace)

    class Meta(_Options):
        model = Spec
        import_id_fields = ("name", "cluster", "workspace")
        fields = (
            *("name", "cluster", "workspace", "description", "cpu_milli", "memory_mib", "gpus"),
            *("price_micro", "offered"),
        )


class SpotPriceResource(_Resource):
    """Prices of preemptible resources."""

    cluster = _by("cluster", Cluster)

    class Meta(_Options):
        model = SpotPrice
        import_id_fields = ("cluster", "gpu_type", "from_hour", "until_hour")
        fields = ("cluster", "gpu_type", "from_hour", "until_hour", "market_micro", "price_micro")


class Exchanged(ImportExportModelAdmin):  # type: ignore[misc]
    """A page of the admin whose table goes in and out, for the console's admins."""

    formats = (SafeCSV, base_formats.JSON)
    import_form_class = ImportForm
    export_form_class = ExportForm
    skip_admin_log = True  # the audit trail has each row

    def has_import_permission(self, request: HttpRequest) -> bool:
        return isinstance(request.user, User) and administers(request.user)

    def has_export_permission(self, request: HttpRequest) -> bool:
        return isinstance(request.user, User) and administers(request.user)

    def get_import_formats(self) -> list[Any]:
        return list(self.formats)

    def get_export_formats(self) -> list[Any]:
        return list(self.formats)
