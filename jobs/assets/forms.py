"""Forms of assets: for the console's pages, Django admin and the native API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from django import forms
from django.forms.models import model_to_dict
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from jobs.assets import changes, visibility
from jobs.assets.addresses import Wrong, check_git, check_place
from jobs.messages.assets import asset_message
from jobs.models import Asset, AssetKind, CodeSource, Dataset, DatasetVersion, Guarded, Image, RamRole, Vpc
from quotas.access import administers
from quotas.models import User, Workspace

COMMIT: Final = re.compile(r"[0-9a-fA-F]{7,64}")
TIED: Final = ("address", "repo", "endpoint", "source", "username")
"""Fields to which a kept password belongs."""

LOGIN: Final = ("username", "password", "own_secret")


class NamesField(forms.JSONField):
    """A list of names: words as people write them, or JSON as programs do."""

    def to_python(self, value: Any) -> Any:
        if isinstance(value, str) and not value.lstrip().startswith("["):
            return [word for word in re.split(r"[\s,]+", value) if word]
        return super().to_python(value) or []

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(map(str, value)) if isinstance(value, list) else value


class AssetForm(forms.ModelForm[Any]):
    """Any asset.  `owner` is the user who enters it: they choose among what they may manage."""

    def __init__(self, owner: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.owner = owner
        field = self.fields["workspace"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = visibility.keepable(owner)
        field.required = not administers(owner)
        if not field.required:
            field.empty_label = _now("Everybody")
        if not field.required and self.instance.pk is None:
            field.help_text = _("Empty: available to everyone.")
        self.fields["description"].widget.attrs["rows"] = 3
        for each in self.fields.values():
            _dress(each)

    def clean_workspace(self) -> Workspace | None:
        """Check that the person manages the workspace."""
        workspace: Workspace | None = self.cleaned_data["workspace"]
        if not visibility.may_keep_in(self.owner, workspace):
            raise forms.ValidationError(_("Only console admins can manage assets for everyone."))
        return workspace

    def save(self, commit: bool = True) -> Any:
        """The row, with its kept password."""
        asset = super().save(commit=False)
        if asset.pk is None:
            asset.created_by = self.owner
        self.put_password(asset)
        if commit:
            asset.save()
        return asset

    def put_password(self, asset: Asset) -> None:
        """Store the password that was entered, if one was."""
        if isinstance(asset, Guarded) and self.cleaned_data.get("password"):
            asset.encrypt(self.cleaned_data["password"])


class GuardedForm(AssetForm):
    """An asset behind a login."""

    password = forms.CharField(
        label=_("Password or token"),
        required=False,
        max_length=10_000,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("Stored encrypted and not shown again. Leave empty to keep the current value."),
    )
    forget = forms.BooleanField(label=_("Remove saved password"), required=False)

    def __init__(self, owner: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(owner, *args, **kwargs)
        if not self.instance.ciphertext:
            del self.fields["forget"]

    def clean_mount_path(self) -> str:
        """Check where a job finds it."""
        path: str = self.cleaned_data["mount_path"].strip()
        has_mark = set(path) & set(":,")
        if not path.startswith("/") or ".." in path.split("/") or not path.isprintable() or has_mark:
            raise forms.ValidationError(_("Must be an absolute path without “..”, colons or commas."))
        return path

    def clean(self) -> dict[str, Any] | None:
        """A kept password or each person's own, never both."""
        values = super().clean() or self.cleaned_data
        if values.get("password") and values.get("own_secret"):
            self.add_error("own_secret", _("Save a password here or use each person's own, not both."))
        if self._is_elsewhere(values):
            self.add_error("password", asset_message("password_again"))
        if values.get("forget") or (values.get("own_secret") and not values.get("password")):
            self.instance.ciphertext = ""
        return values

    def _is_elsewhere(self, values: dict[str, Any]) -> bool:
        """Tell whether a kept password would be sent elsewhere than whoever entered it knew."""
        if not self.instance.ciphertext or values.get("password") or values.get("forget"):
            return False
        return any(name in self.changed_data for name in TIED) and not values.get("own_secret")


class ImageForm(GuardedForm):
    """An image."""

    class Meta:
        model = Image
        fields = (
            *("name", "address", "workspace", "description", "framework", "version", "python"),
            *("accelerator", "accelerated", *LOGIN[:1], "own_secret"),
        )

    def clean_address(self) -> str:
        """Check an image's address."""
        address: str = self.cleaned_data["address"].strip()
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*", address):
            raise forms.ValidationError(_("Image addresses can't contain spaces, quotes or login details."))
        return address

    def save(self, commit: bool = True) -> Any:
        """Save; an image for everybody is official."""
        self.instance.official = self.cleaned_data["workspace"] is None
        return super().save(commit)


class DatasetForm(GuardedForm):
    """A dataset; a new one with its first version."""

    uri = forms.CharField(
        label=_("Location"),
        max_length=1000,
        help_text=_("oss://bucket/folder/, /data/sets/imagenet, https://…"),
    )
    field_order = ("name", "source", "uri")

    class Meta:
        model = Dataset
        fields = (
            *("name", "source", "workspace", "description", "mount_path", "read_only"),
            *("endpoint", "region", "vpc", "options", "username", "own_secret"),
        )
        widgets: ClassVar = {
            "options": forms.Textarea(attrs={"rows": 2}),
        }

    def __init__(self, owner: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(owner, *args, **kwargs)
        vpcs = self.fields["vpc"]
        assert isinstance(vpcs, forms.ModelChoiceField)
        vpcs.queryset = visibility.choices(owner, None, AssetKind.VPC)
        if self.instance.source != Dataset.Source.UPLOAD:
            source = self.fields["source"]
            assert isinstance(source, forms.TypedChoiceField)
            source.choices = [each for each in Dataset.Source.choices if each[0] != Dataset.Source.UPLOAD]
        self.fields["username"].label = _("Access key ID or user name")
        self.fields["password"].label = _("Access key secret or password")
        if self.instance.pk is not None:
            del self.fields["uri"]

    def clean_options(self) -> dict[str, str]:
        """Return the options; {} for an empty field."""
        return self.cleaned_data["options"] or {}

    def clean(self) -> dict[str, Any] | None:
        """A place that fits where it is stored."""
        values = super().clean() or self.cleaned_data
        if "uri" in values and "source" in values:
            try:
                check_place(values["uri"], values["source"])
            except Wrong as wrong:
                self.add_error("uri", asset_message(wrong.code, wrong.detail))
        if values.get("workspace") is None and "workspace" in values:
            values["read_only"] = True
        return values

    def save(self, commit: bool = True) -> Any:
        """Save, with a first version."""
        new = self.instance.pk is None
        dataset = super().save(commit)
        if new and commit:
            changes.add_version(dataset, self.cleaned_data["uri"], by=self.owner)
        return dataset


class VersionForm(forms.ModelForm[DatasetVersion]):
    """A further version of a dataset."""

    class Meta:
        model = DatasetVersion
        fields = ("uri", "description")

    def __init__(self, dataset: Dataset, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._dataset = dataset
        for each in self.fields.values():
            _dress(each)

    def clean_uri(self) -> str:
        """A place that fits where the dataset is stored."""
        uri: str = self.cleaned_data["uri"]
        try:
            check_place(uri, self._dataset.source)
        except Wrong as wrong:
            raise forms.ValidationError(asset_message(wrong.code, wrong.detail)) from wrong
        if self._dataset.source == Dataset.Source.HTTP and self._dataset.ciphertext:
            self._check_host(urlsplit(uri).netloc)
        return uri

    def _check_host(self, host: str) -> None:
        """A kept password is not sent to a host that it does not belong to."""
        known = [urlsplit(row.uri).netloc for row in self._dataset.versions.all()]
        if known and host not in known:
            raise forms.ValidationError(asset_message("other_host", known[0]))


class CodeForm(GuardedForm):
    """A code source."""

    class Meta:
        model = CodeSource
        fields = (
            *("name", "repo", "workspace", "description", "branch", "commit", "mount_path", "submodules"),
            *("username", "own_secret"),
        )

    def clean_repo(self) -> str:
        """An address that git and the console read alike."""
        repo: str = self.cleaned_data["repo"].strip()
        try:
            check_git(repo)
        except Wrong as wrong:
            raise forms.ValidationError(asset_message(wrong.code, wrong.detail)) from wrong
        return repo

    def clean_commit(self) -> str:
        """A commit's name, whole or short."""
        commit: str = self.cleaned_data["commit"].strip().lower()
        if commit and not COMMIT.fullmatch(commit):
            raise forms.ValidationError(_("A commit is 7 to 64 hexadecimal digits."))
        return commit


class VpcForm(AssetForm):
    """A virtual network."""

    switches = NamesField(label=_("vSwitches"), required=False, help_text=_("Comma-separated: vsw-1, vsw-2"))
    security_groups = NamesField(
        label=_("Security groups"), required=False, help_text=_("Comma-separated: sg-1, sg-2")
    )

    class Meta:
        model = Vpc
        fields = (
            *("name", "vpc_id", "workspace", "description", "region", "cidr", "switches"),
            "security_groups",
        )


class RoleForm(AssetForm):
    """A role."""

    class Meta:
        model = RamRole
        fields = ("name", "arn", "workspace", "description")


FORMS: Final[dict[AssetKind, type[AssetForm]]] = {
    AssetKind.IMAGE: ImageForm,
    AssetKind.DATASET: DatasetForm,
    AssetKind.CODE: CodeForm,
    AssetKind.VPC: VpcForm,
    AssetKind.ROLE: RoleForm,
}


def create_form(kind: AssetKind, owner: User, values: Mapping[str, Any]) -> AssetForm:
    """Return the form of a new asset with values as a program sends them; absent ones have their default."""
    form = FORMS[kind]
    return form(owner, _as_browser({**_initial_values(form(owner)), **values}))


def change_form(owner: User, asset: Asset, values: Mapping[str, Any]) -> AssetForm:
    """Return the form of an asset with changes as a program sends them; absent values stay as they are."""
    form = FORMS[asset.KIND]
    before = model_to_dict(asset, fields=[*form(owner, instance=asset).fields])
    return form(owner, _as_browser({**before, **values}), instance=asset)


def _initial_values(form: AssetForm) -> dict[str, Any]:
    """Return the initial values of an empty form."""
    first = {name: field.initial for name, field in form.fields.items() if field.initial is not None}
    return {name: value() if callable(value) else value for name, value in first.items()}


def _as_browser(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a browser sends: no field for what is off or empty."""
    return {name: value for name, value in values.items() if value is not False and value is not None}


def _dress(field: forms.Field) -> None:
    """The class that its widget has on the console's pages."""
    widget = field.widget
    if isinstance(widget, forms.CheckboxInput):
        name = "form-check-input"
    elif isinstance(widget, forms.Select):
        name = "form-select"
    else:
        name = "form-control"
        widget.attrs.setdefault("autocomplete", "off")
    widget.attrs["class"] = name
