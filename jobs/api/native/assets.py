"""Assets over the native API: listed, added, changed and tried.  A password can be written, and never read.

Reading needs the scope `read`, a check `submit`, adding and changing `admin`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.core.exceptions import PermissionDenied
from django.forms import ModelForm
from django.forms.models import model_to_dict
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.native import problems, shapes
from jobs.api.native.base import ABSENT, AFTER, LIMIT, REFUSED, NativeView
from jobs.api.native.folders import DatasetCopyShape, render_copy
from jobs.api.native.idempotency import IDEMPOTENCY_KEY, idempotent
from jobs.assets import changes, check_requests, visibility
from jobs.assets.forms import FORMS, VersionForm, change_form, create_form
from jobs.messages.assets import asset_message
from jobs.models import Asset, AssetCheck, AssetKind, Dataset, Guarded
from quotas.access import administers
from quotas.models import Workspace

PAGE: Final = 100

_KIND: Final = OpenApiParameter(
    "kind", str, OpenApiParameter.PATH, enum=[each.value for each in AssetKind], description="which table"
)


class VersionShape(shapes.ApiShape):
    """Where one version of a dataset lies."""

    number = serializers.IntegerField()
    uri = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    default = serializers.BooleanField(source="is_default")


class AssetShape(shapes.ApiShape):
    """An asset; `fields` are those of its kind, as they can be written."""

    kind = serializers.ChoiceField([each.value for each in AssetKind], source="KIND.value")
    id = serializers.CharField(source="key")
    name = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    workspace = serializers.CharField(allow_null=True, help_text="short name; null is for everybody")
    retired = serializers.BooleanField(source="is_retired")
    kept = serializers.BooleanField(help_text="whether a password is kept with it")
    used = serializers.IntegerField(help_text="how many jobs were made of it")
    fields = serializers.DictField()  # type: ignore[assignment]  # the field of that name
    versions = VersionShape(many=True, help_text="of a dataset")
    copy = DatasetCopyShape(allow_null=True, help_text="of a dataset that a job's folder is copied into")


class AssetsShape(shapes.ApiShape):
    """A page of assets, newest first."""

    assets = AssetShape(many=True)
    next = serializers.URLField(allow_null=True)


class NewAssetShape(shapes.ApiShape):
    """What there is to say; the rest of its kind's `fields` beside them, and `password`."""

    name = shapes.TextField(required=False)
    description = shapes.TextField(required=False, allow_blank=True)
    workspace = shapes.TextField(required=False, allow_null=True)
    password = shapes.TextField(required=False, allow_blank=True)
    uri = shapes.TextField(required=False, help_text="of a dataset: its first version, or one more")
    retired = serializers.BooleanField(required=False)


class AssetCheckRequestShape(shapes.ApiShape):
    """Which version of a dataset."""

    version = serializers.IntegerField(required=False, min_value=1, max_value=10**8)


class AssetCheckShape(shapes.ApiShape):
    """The state of a check; `said` is the output of the tools."""

    id = serializers.CharField(source="public_id")
    state = serializers.ChoiceField(AssetCheck.State.values)
    code = serializers.CharField(allow_blank=True)
    message = serializers.CharField(allow_blank=True)
    said = serializers.CharField(allow_blank=True)
    created = serializers.DateTimeField(source="created_at")
    ended = serializers.DateTimeField(allow_null=True, source="ended_at")


class AssetView(NativeView):
    """Every view of this module."""

    scopes: ClassVar[dict[str, str]] = {"POST": "admin", "PATCH": "admin"}

    def kind(self, name: str) -> AssetKind:
        """The kind; raises Http404."""
        if name not in set(AssetKind):
            raise Http404
        return AssetKind(name)

    def asset(self, kind: str, key: str) -> Asset:
        """The asset; raises Http404."""
        found = visibility.find(self.person, kind, key)
        if found is None:
            raise Http404
        return found

    def read_body(self) -> dict[str, Any]:
        """The body, which is an object."""
        if not isinstance(self.request.data, dict):
            raise ValidationError({"": ["This has to be an object."]})
        return dict(self.request.data)

    def workspace(self, slug: Any) -> int | str:
        """The key of the workspace called so, as a form has it."""
        if slug is None:
            return ""
        found = Workspace.objects.filter(slug=str(slug)).first()
        if found is None or not visibility.may_keep_in(self.person, found):
            raise ValidationError({"workspace": ["There is no such workspace that you keep."]})
        return found.pk

    def save(self, form: ModelForm[Any]) -> Asset:
        """Save a form; raises ValidationError."""
        if not form.is_valid():
            raise ValidationError({name: list(map(str, each)) for name, each in form.errors.items()})
        asset: Asset = form.save()
        return asset


class Assets(AssetView):
    """One kind of them."""

    @extend_schema(
        operation_id="assets",
        parameters=[_KIND, AFTER, LIMIT, OpenApiParameter("workspace", str)],
        responses={200: AssetsShape, **REFUSED, **ABSENT},
    )
    def get(self, request: Request, kind: str) -> Response:
        """Everything of a kind that the person may name in jobs, retired ones left out."""
        rows = visibility.visible_to(self.person, self.kind(kind)).filter(retired_at=None).order_by("-id")
        if slug := request.query_params.get("workspace", ""):
            rows = rows.filter(workspace__slug=slug)
        if after := self.number("after", 0):
            rows = rows.filter(pk__lt=after)
        found, following = self.page(rows, PAGE)
        return Response({"assets": [render_asset(each) for each in found], "next": following})

    @extend_schema(
        operation_id="assets_add",
        parameters=[_KIND, IDEMPOTENCY_KEY],
        request=NewAssetShape,
        responses={201: AssetShape, 200: AssetShape, 409: shapes.ProblemDetails, **REFUSED, **ABSENT},
    )
    @idempotent
    def post(self, request: Request, kind: str) -> Response:
        """Add one to a workspace that the person keeps; without a workspace, for everybody (admins)."""
        of = self.kind(kind)
        values = self.read_body()
        if values.get("workspace") is None and not administers(self.person):
            raise PermissionDenied
        values["workspace"] = self.workspace(values.get("workspace"))
        return Response(render_asset(self.save(create_form(of, self.person, values))), status=201)


class OneAsset(AssetView):
    """One of them."""

    @extend_schema(operation_id="asset", parameters=[_KIND], responses={200: AssetShape, **ABSENT})
    def get(self, request: Request, kind: str, key: str) -> Response:
        """What it is."""
        return Response(render_asset(self.asset(kind, key)))

    @extend_schema(
        operation_id="asset_change",
        parameters=[_KIND],
        request=NewAssetShape,
        responses={200: AssetShape, **REFUSED, **ABSENT},
    )
    def patch(self, request: Request, kind: str, key: str) -> Response:
        """Change what is given; `uri` adds a version to a dataset, `retired` offers it no more, or again."""
        asset = self.asset(kind, key)
        if not visibility.may_keep(self.person, asset):
            raise PermissionDenied
        values = self.read_body()
        uri, retired = values.pop("uri", None), values.pop("retired", None)
        if values:
            asset = self._change(asset, values)
        if uri is not None and isinstance(asset, Dataset):
            self._add_version(asset, uri)
        if isinstance(retired, bool) and retired is not asset.is_retired:
            (changes.retire if retired else changes.bring_back)(asset)
        return Response(render_asset(asset))

    def _change(self, asset: Asset, values: dict[str, Any]) -> Asset:
        if "workspace" in values:
            values["workspace"] = self.workspace(values["workspace"])
        return self.save(change_form(self.person, asset, values))

    def _add_version(self, dataset: Dataset, uri: Any) -> None:
        form = VersionForm(dataset, {"uri": uri})
        if not form.is_valid():
            raise ValidationError({"uri": list(map(str, form.errors["uri"]))})
        changes.add_version(dataset, form.cleaned_data["uri"], by=self.person)


class AssetCheckView(AssetView):
    """Whether it can be had."""

    scopes: ClassVar[dict[str, str]] = {"POST": "submit"}

    @extend_schema(
        operation_id="asset_trial", parameters=[_KIND], responses={200: AssetCheckShape, **REFUSED, **ABSENT}
    )
    def get(self, request: Request, kind: str, key: str) -> Response:
        """Return the last check of it that the caller requested."""
        asset = self.asset(kind, key)
        rows = AssetCheck.objects.filter(kind=asset.KIND, key=asset.key, asker=self.person)
        last = rows.order_by("-id").first()
        if last is None:
            raise Http404
        return Response(render_check(last))

    @extend_schema(
        operation_id="asset_try",
        parameters=[_KIND],
        request=AssetCheckRequestShape,
        responses={202: AssetCheckShape, 409: shapes.ProblemDetails, **REFUSED, **ABSENT},
    )
    def post(self, request: Request, kind: str, key: str) -> Response:
        """Request a check as the caller: pulled, cloned or looked at where the caller's jobs run."""
        asset = self.asset(kind, key)
        version = AssetCheckRequestShape.parse(request.data or {}).get("version")
        try:
            check = check_requests.request_check(self.person, asset, version)
        except check_requests.CheckRefused as shut:
            body = problems.details(409, asset_message(shut.code), code=shut.code)
            return Response(body, status=409, content_type=problems.CONTENT_TYPE)
        check.refresh_from_db()
        return Response(render_check(check), status=202)


def render_asset(asset: Asset) -> dict[str, Any]:
    """An asset as the API tells it."""
    common = {"name", "description", "workspace"}
    names = [name for name in FORMS[asset.KIND].Meta.fields if name not in common]  # type: ignore[attr-defined]
    fields = model_to_dict(asset, fields=names)
    if isinstance(asset, Dataset):
        fields["vpc"] = asset.vpc.key if asset.vpc else None
    versions = asset.versions.all() if isinstance(asset, Dataset) else ()
    copy = getattr(asset, "copy", None)
    return AssetShape.render(
        asset,
        workspace=asset.workspace.slug if asset.workspace else None,
        kept=isinstance(asset, Guarded) and bool(asset.ciphertext),
        used=changes.count_jobs(asset),
        fields=fields,
        versions=[VersionShape.render(row) for row in versions],
        copy=render_copy(copy) if copy else None,
    )


def render_check(row: AssetCheck) -> dict[str, Any]:
    """Return a check as the API shows it."""
    return AssetCheckShape.render(row, message=asset_message(row.code) if row.code else "")
