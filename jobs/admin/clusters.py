"""Clusters: their settings as fields of a form, and what is known of them."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from unfold import widgets

from jobs import clusters, facilities
from jobs.backends import registry
from jobs.backends.accounts import Accounting
from jobs.backends.base import Unreachable
from jobs.backends.measures import MeasuredElsewhere
from jobs.backends.settings import InputKind, SettingField
from jobs.scheduling import prometheus
from quotas.admin.base import DELETE_SELECTED, ModelAdmin, display, stay_on_page
from quotas.clusters import encrypted_settings, poll_interval
from quotas.models import Cluster, Reservation, unixnames

PROMETHEUS: Final = "metrics.prometheus"
"""The setting that names a site's Prometheus."""

SAVE_AND_TEST: Final = "quotas_cluster_save_and_test_prometheus"
"""The button's name in a sent form."""

LONG_TEXTS: Final = frozenset({"ca", "private_key"})
"""Texts of several lines, by their last name: certificates and keys."""


class LinesField(forms.CharField):
    """A list of texts, one on each line."""

    widget = forms.Textarea

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(map(str, value)) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        return [line.strip() for line in str(super().to_python(value)).splitlines() if line.strip()]


class MappingField(forms.CharField):
    """A mapping, `name: value` on each line."""

    widget = forms.Textarea

    def __init__(self, *, numbers: bool, **more: Any) -> None:
        super().__init__(**more)
        self._numbers = numbers

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return "\n".join(f"{name}: {each}" if each != "" else name for name, each in value.items())

    def to_python(self, value: Any) -> Any:
        pairs = [line.partition(":") for line in str(super().to_python(value)).splitlines() if line.strip()]
        found = {name.strip(): each.strip() for name, _colon, each in pairs}
        if len(found) < len(pairs):
            raise ValidationError(gettext("Duplicate name."))
        return {name: self._number(each) for name, each in found.items()} if self._numbers else found

    def _number(self, text: str) -> int | str:
        """Return the number; what is none stays a text, and the model refuses it."""
        return int(text) if text.isascii() and text.isdigit() else text


def form_field(each: SettingField, label: str, help_text: str) -> forms.Field:
    """Return the form's field for a setting."""
    more: dict[str, Any] = {"label": _(label), "help_text": _(help_text), "required": False}
    match each.kind:
        case InputKind.SWITCH:
            return forms.BooleanField(widget=widgets.UnfoldBooleanSwitchWidget, **more)
        case InputKind.CHOICE:
            choices = [(choice, choice or "–") for choice in each.choices]
            return forms.ChoiceField(choices=choices, widget=widgets.UnfoldAdminSelectWidget, **more)
        case InputKind.NUMBER:
            more |= {"min_value": each.least, "max_value": each.most}
            return forms.IntegerField(widget=widgets.UnfoldAdminIntegerFieldWidget, **more)
        case InputKind.LINES:
            return LinesField(widget=_textarea(), **more)
        case InputKind.MAPPING:
            return MappingField(numbers=each.numbers, widget=_textarea(), **more)
        case InputKind.JSON:
            return forms.JSONField(widget=_textarea(), **more)
    is_long = each.path[-1] in LONG_TEXTS
    return forms.CharField(widget=_textarea() if is_long else widgets.UnfoldAdminTextInputWidget(), **more)


def _textarea() -> forms.Textarea:
    made: forms.Textarea = widgets.UnfoldAdminTextareaWidget(attrs={"rows": 3})
    return made


def input_name(backend: str, path: tuple[str, ...]) -> str:
    """Return the name of the form's field for a setting of a backend."""
    return "__".join((backend, *path))


class ClusterForm(forms.ModelForm[Cluster]):
    """A cluster: a field for each setting of each backend, of which those of the chosen one count.

    `config` are all settings as JSON, taken in place of the fields where it was changed, or where the fields
    were not sent.  Secrets are kept encrypted and not shown (`quotas.clusters.encrypted_settings`).
    New settings are tried before they are saved: `nodes_found` is how many nodes answered, None: not tried.
    """

    save_untested = forms.BooleanField(
        label=_("Save without a connection test"),
        required=False,
        widget=widgets.UnfoldBooleanSwitchWidget,
        help_text=_("Otherwise new settings are saved only if the cluster answers."),
    )
    nodes_found: int | None = None

    class Meta:
        model = Cluster
        fields = (
            "slug",
            "name",
            "region",
            "backend",
            "config",
            "admission",
            "enabled",
            "shows_addresses",
            "cordons_faulty",
            "cordon_percent",
        )

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._kept: Mapping[str, Any] = self.instance.config
        shown = encrypted_settings.mask(self._kept)
        self.initial["config"] = shown
        choices = [(name, _(registry.find(name).label)) for name in registry.names()]
        self.fields["backend"] = forms.ChoiceField(
            choices=choices, widget=widgets.UnfoldAdminSelectWidget, label=_("Backend")
        )
        self.fields["config"].help_text = _(
            "All settings as a JSON object. If changed, it overrides the fields above."
        )
        for backend in registry.names():
            for name, each, field in _inputs(backend):
                self.fields[name] = field
                value = shown if backend == self.instance.backend else {}
                self.initial[name] = _value_at(value, each)

    def clean(self) -> dict[str, Any] | None:
        """Check the settings with the backend's own model."""
        cleaned = super().clean()
        backend = str(self.cleaned_data.get("backend", ""))
        others = {name for other in registry.names() if other != backend for name, *_more in _inputs(other)}
        for name in others & self.errors.keys():
            del self.errors[name]
        own = {name for name, *_more in _inputs(backend)} if backend else set()
        if backend and not self.errors.keys() & {"config", *own}:
            self._clean_settings(backend)
        return cleaned

    def _clean_settings(self, backend: str) -> None:
        inputs = {each.name: name for name, each, _field in _inputs(backend)}
        by_fields = "config" not in self.changed_data and any(
            self.add_prefix(name) in self.data for name in inputs.values()
        )
        if not by_fields:
            inputs = {}
        config = self._from_fields(backend) if by_fields else self.cleaned_data["config"]
        if not isinstance(config, Mapping):
            self.add_error("config", gettext("Settings must be a JSON object."))
            return
        try:
            kept = encrypted_settings.encrypt(config, self._kept)
        except encrypted_settings.SecretsNeeded as again:
            text = gettext(
                "These settings connect the console to a different address. Enter again: %(names)s."
            )
            error = ValidationError(text, params={"names": ", ".join(again.names)})
            for name in again.names:
                self.add_error(inputs.get(name.replace("/", "."), "config"), error)
            return
        registration = registry.find(backend)
        for problem in clusters.check_settings(registration, kept):
            text = gettext(registration.sentence(problem)) % problem.params
            around = [inputs[name] for name in _around(problem.name) if name in inputs]
            below = [inputs[name] for name in inputs if name.startswith(f"{problem.name}.")]
            at = [*around, *below, "config"][0]
            is_below = not by_fields or inputs.get(problem.name) != at
            self.add_error(at, f"{problem.name}: {text}" if is_below and problem.name else text)
        self._check_identity(kept, inputs.get("identity", "config"))
        self.cleaned_data["config"] = kept
        is_new = (backend, kept) != (self.instance.backend, self._kept) or not self.instance.pk
        if is_new and not self.errors and not self.cleaned_data.get("save_untested"):
            self._try_connection(backend, kept, inputs)

    def _try_connection(self, backend: str, kept: Mapping[str, Any], inputs: Mapping[str, str]) -> None:
        """Ask the cluster for its nodes, and put what went wrong at the setting that says where it is."""
        wanted = Cluster(slug=self.cleaned_data.get("slug", ""), backend=backend, config=dict(kept))
        where = ""
        try:
            where = clusters.config_for(wanted).connection_setting()
            self.nodes_found = len(clusters.backend_for(wanted).inventory().nodes)
        except Unreachable as error:
            text = gettext(
                "The cluster did not answer: %(error)s. Correct the settings, or select “Save without a "
                "connection test”."
            )
            shown = ValidationError(text, params={"error": str(error).rstrip(".")}, code="unreachable")
            self.add_error(inputs.get(where, "backend" if inputs else "config"), shown)

    def _from_fields(self, backend: str) -> dict[str, Any]:
        """Return the settings that the fields say, without those that are as without a word."""
        shown: Mapping[str, Any] = self.initial["config"] if backend == self.instance.backend else {}
        config: dict[str, Any] = {}
        for name, each, _field in _inputs(backend):
            *around, last = each.path
            value, before = self.cleaned_data.get(name), shown
            for part in around:
                before = before.get(part) or {}
            is_default = value in (None, "", [], {}) or value == each.default
            if is_default and last in before and value == before[last]:
                is_default = False
            if not is_default:
                at = config
                for part in around:
                    at = at.setdefault(part, {})
                at[last] = value
        return config

    def _check_identity(self, config: Mapping[str, Any], at: str) -> None:
        """Jobs that were sent as one user are neither seen nor ended as another."""
        if not self.instance.pk or unixnames.identity(config) == unixnames.identity(self._kept):
            return
        count = Reservation.objects.filter(cluster=self.instance.pk, active=True).count()
        if count:
            text = ngettext(
                "Can't change the user that jobs run as while %(count)s job of this console is on the "
                "cluster. Stop accepting jobs on the cluster, then wait for the job to end or stop it.",
                "Can't change the user that jobs run as while %(count)s jobs of this console are on the "
                "cluster. Stop accepting jobs on the cluster, then wait for the jobs to end or stop them.",
                count,
            )
            self.add_error(at, ValidationError(text, params={"count": count}))


def _inputs(backend: str) -> Iterator[tuple[str, SettingField, forms.Field]]:
    """Yield the form's fields for the settings of a backend, with their names."""
    registration = registry.find(backend)
    for each in registration.fields():
        yield input_name(backend, each.path), each, form_field(each, *registration.labels[each.name])


def _value_at(config: Mapping[str, Any], each: SettingField) -> Any:
    value: Any = config
    for part in each.path:
        value = value.get(part) if isinstance(value, Mapping) else None
    if value is None:
        value = each.default
    return {} if value is None and each.kind is InputKind.JSON else value


def _around(name: str) -> Iterator[str]:
    """Yield a dotted name and those around it, the longest first."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        yield ".".join(parts[:count])


@admin.register(Cluster)
class ClusterAdmin(ModelAdmin[Cluster]):
    """Clusters, and whether they answer."""

    list_display = (
        "name",
        "slug",
        "status",
        "region",
        "backend",
        "admission",
        "enabled",
        "answered_at",
        "problem",
    )
    list_filter = ("backend", "admission", "enabled")
    search_fields = ("name", "slug")
    readonly_fields = (
        "answered_at",
        "problem",
        "looks",
        "container_engine",
        "network",
        "operators",
        "runs_as",
        "accounts",
    )
    form = ClusterForm
    actions_submit_line = ("save_and_test_prometheus",)

    def get_actions(self, request: HttpRequest) -> Any:
        """Leave deletion to a cluster's own page."""
        return {name: each for name, each in super().get_actions(request).items() if name != DELETE_SELECTED}

    @cached_property
    def conditional_fields(self) -> dict[str, str]:
        """When a field is shown, for django-unfold: settings of the chosen backend alone."""
        return {
            input_name(backend, each.path): f"backend == '{backend}'"
            for backend in registry.names()
            for each in registry.find(backend).fields()
        }

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **more: Any) -> Any:
        """Leave the fields of settings to the form, which makes them."""
        return super().get_form(request, obj, change, **{**more, "fields": ClusterForm.Meta.fields})

    def has_test_prometheus_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Offer the test where the backend has a setting for a Prometheus."""
        cluster = obj if isinstance(obj, Cluster) else Cluster.objects.filter(pk=obj).first()
        if cluster is None or cluster.backend not in registry.names():
            return False
        has_setting = PROMETHEUS in registry.find(cluster.backend).labels
        return has_setting and self.has_change_permission(request, cluster)

    @admin.action(description=_("Save and test Prometheus"), permissions=["test_prometheus"])
    def save_and_test_prometheus(self, request: HttpRequest, obj: Cluster) -> None:
        """Ask the site's Prometheus each query of the saved settings, and show what it answered."""
        try:
            backend = clusters.backend_for(obj)
        except (registry.NoSuchBackend, Unreachable) as error:
            self.message_user(request, str(error), messages.ERROR)
            return
        source = backend.metrics_source if isinstance(backend, MeasuredElsewhere) else None
        if source is None:
            self.message_user(request, gettext("Enter the address of Prometheus."), messages.ERROR)
            return
        for result in prometheus.check_queries(source):
            level = messages.SUCCESS if result.is_good else messages.ERROR
            self.message_user(request, str(result), level)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the settings between the cluster and what is known of it."""
        own = [*(name for name in ClusterForm.Meta.fields if name != "config"), "save_untested"]
        return (
            (None, {"fields": own}),
            (_("settings"), {"fields": list(self.conditional_fields)}),
            (_("Settings as JSON"), {"fields": ["config"], "classes": ["collapse"]}),
            (_("Status"), {"fields": self.readonly_fields}),
        )

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Name errors of the stored settings at the top; stay on the page after a test of Prometheus."""
        if SAVE_AND_TEST in request.POST:
            stay_on_page(request)
        stored = self.get_object(request, unquote(object_id)) if object_id else None
        if stored is not None and request.method == "GET" and self.has_view_permission(request, stored):
            for text in clusters.describe_settings_problems(stored):
                messages.error(request, gettext("Settings: %(problem)s") % {"problem": text})
        answer: HttpResponse = super().changeform_view(request, object_id, form_url, extra_context)
        return answer

    def save_model(self, request: HttpRequest, obj: Cluster, form: Any, change: bool) -> None:
        """Tell how the test went."""
        super().save_model(request, obj, form, change)
        if form.nodes_found is not None:
            text = ngettext(
                "The cluster answered: %(count)d node.",
                "The cluster answered: %(count)d nodes.",
                form.nodes_found,
            )
            messages.success(request, text % {"count": form.nodes_found})

    @display(
        description=_("status"),
        label={"error": "danger", "paused": "warning", "off": "info", "ok": "success"},
    )
    def status(self, cluster: Cluster) -> tuple[str, str]:
        """Return whether it can be used, with its colour."""
        if clusters.describe_settings_problems(cluster) or cluster.trouble:
            return "error", gettext("Error")
        if cluster.frozen_at is not None:
            return "paused", gettext("Scheduling paused")
        if not cluster.enabled:
            return "off", gettext("Not accepting jobs")
        if cluster.answered_at is None:
            return "off", gettext("Never responded.")
        return "ok", gettext("OK")

    @admin.display(description=_("last error"))
    def problem(self, cluster: Cluster) -> str:
        """Return what is wrong with the settings, or else the last error of its workers."""
        return " ".join(clusters.describe_settings_problems(cluster)) or cluster.trouble or "–"

    @admin.display(description=_("jobs run as"))
    def runs_as(self, cluster: Cluster) -> str:
        """Return as whom jobs run, where the backend has a setting for that."""
        if cluster.backend not in registry.names() or "identity" not in registry.find(cluster.backend).labels:
            return "–"
        if unixnames.identity(cluster.config) == unixnames.BY_TOKENS:
            return gettext(
                "Each job runs as its owner's UNIX user (People, UNIX name), using tokens issued by "
                "the console."
            )
        if unixnames.needs_unix_name(cluster):
            return gettext("Each job runs as its owner's UNIX user (People, UNIX name).")
        text = gettext(
            "All jobs run as the console's UNIX user, %(user)s: everyone who can submit here can "
            "read and stop all jobs."
        )
        return text % {"user": pwd.getpwuid(os.geteuid()).pw_name}

    @admin.display(description=_("accounts"))
    def accounts(self, cluster: Cluster) -> str:
        """Return links to the accounts that the engine itself keeps, and to those of OpenPAI."""
        try:
            has_accounts = bool(cluster.slug) and isinstance(clusters.backend_for(cluster), Accounting)
        except (registry.NoSuchBackend, Unreachable):
            has_accounts = False
        links = [("virtual_clusters", gettext("Import virtual clusters of OpenPAI"))] if cluster.slug else []
        if has_accounts:
            links.insert(0, ("accounts_take", gettext("Import quotas from accounts, or write them back")))
        rows = [(reverse(f"admin:{name}", args=[cluster.slug]), label) for name, label in links]
        return format_html_join(" ", '<a class="house-button" href="{}">{}</a>', rows) or "–"

    @admin.display(description=_("container engine"))
    def container_engine(self, cluster: Cluster) -> str:
        """Return the container engine that runs images there, or why none does."""
        found = (cluster.facilities or {}).get("engines")
        if found is None:
            return "–"
        engines = dict(sorted(found.items()))  # a database keeps no order of keys
        if used := [name for name, state in engines.items() if state == "used"]:
            return ", ".join(used)
        if not engines:
            return gettext("None: disabled in the cluster settings.")
        states = {
            "absent": gettext("%(engine)s is not installed"),
            "silent": gettext(
                "%(engine)s is installed but not responding (check that its daemon is running)"
            ),
        }
        causes = [states[state] % {"engine": name} for name, state in engines.items()]
        return gettext("None: %(causes)s") % {"causes": "; ".join(causes)}

    @admin.display(description=_("network"))
    def network(self, cluster: Cluster) -> str:
        """Return which network jobs have there, and why no other one."""
        found = cluster.facilities or {}
        lacking = ", ".join(found.get("network_lacks", ()))
        match found.get("network"):
            case facilities.OWN_NETWORK if found["image_network"] != facilities.OWN_NETWORK:
                return gettext("Each job has its own, but not jobs in containers.")
            case facilities.OWN_NETWORK:
                return gettext("Each job has its own.")
            case facilities.HOST_NETWORK:
                return gettext("Shared with the machine, as the cluster's settings say.")
        if not lacking:
            return "–"
        text = gettext("Shared with the machine. To give each job its own, install or allow: %(lacking)s.")
        return text % {"lacking": lacking}

    @admin.display(description=_("operators"))
    def operators(self, cluster: Cluster) -> str:
        """Return the operators of the cluster that jobs run by."""
        return ", ".join((cluster.facilities or {}).get("operators", ())) or "–"

    @admin.display(description=_("polling"))
    def looks(self, cluster: Cluster) -> str:
        """Return how often the console looks at it, and why."""
        if cluster.look_ms is None:
            return gettext("Whenever an update is due.")
        took_s = cluster.look_ms / 1000
        text = gettext("Every %(seconds).0f s; the last poll took %(took).2f s.")
        return text % {"seconds": poll_interval.interval_s(took_s), "took": took_s}
