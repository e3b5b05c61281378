"""Django admin of people, workspaces, clusters and quotas."""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import Truncator
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from quotas import acts, bulk, exchange, inventory, ledger, pace, reports, resets, trail, unixnames
from quotas.access import administers
from quotas.adminbase import MachineWritten, ModelAdmin, StackedInline, TabularInline, acting
from quotas.bulk import AdminForm, Question, WhyForm
from quotas.exchange import Exchanged
from quotas.forms import ClusterForm, QuotaForm
from quotas.models import (
    AccessToken,
    Act,
    Action,
    AuditEntry,
    Banner,
    Cluster,
    GpuType,
    Membership,
    Node,
    NodeState,
    Quota,
    Request,
    Reservation,
    Spec,
    SpotPrice,
    UsageDay,
    UsageHour,
    User,
    Workspace,
)


class ActionFilter(admin.SimpleListFilter):
    """What was done."""

    title = _("what")
    parameter_name = "action"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return Action.choices

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(action=self.value()) if self.value() else queryset


class MembershipInline(TabularInline[Membership, Any]):
    """Members, edited where they belong."""

    model = Membership
    autocomplete_fields = ("user", "workspace")
    extra = 0


class QuotaInline(StackedInline[Quota, Workspace]):
    """A workspace's quotas."""

    model = Quota
    form = QuotaForm
    fk_name = "workspace"
    extra = 0
    prepopulated_fields = {"slug": ("name",)}
    fields = (
        ("name", "slug", "cluster", "parent"),
        "gpus",
        "gpus_by_type",
        "cpu_milli",
        "memory_mib",
        "most_jobs",
    )


@admin.register(User)
class UserAdmin(DjangoUserAdmin[User], ModelAdmin[User]):
    """People; a job's owner is never deleted, only made inactive."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm

    inlines = (MembershipInline,)
    list_display = ("username", "email", "kind", "is_active", "is_staff", "is_superuser", "last_login")
    actions = ("make_reset_links",)
    fieldsets = (
        *(DjangoUserAdmin.fieldsets or ()),
        (_("Signing in"), {"fields": ("break_glass", "directory_dn", "disabled_by")}),
        (_("Jobs"), {"fields": ("unix_name", "unix_name_from")}),
        (_("Preferences"), {"fields": ("language", "time_zone", "theme")}),
    )
    readonly_fields = ("unix_name_from", "disabled_by")

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """A UNIX name that an admin wrote is theirs from then on."""
        if "unix_name" in form.changed_data:
            obj.unix_name_from = ""
        super().save_model(request, obj, form, change)

    @admin.action(description=_("Make a link by which each of them sets a password"), permissions=("reset",))
    def make_reset_links(self, request: HttpRequest, users: Any) -> None:
        """For when no e-mail reaches them: the links are shown here, and nowhere again."""
        for user in users.filter(kind=User.Kind.PERSON):
            path = resets.path_for(user)
            link = request.build_absolute_uri(path)
            self.message_user(request, f"{user}: {link}")

    def has_reset_permission(self, request: HttpRequest) -> bool:
        """Whoever sets a superuser's password is one."""
        return bool(request.user.is_superuser)


@admin.register(Membership)
class MembershipAdmin(ModelAdmin[Membership], Exchanged):
    """Who belongs where, of all workspaces in one table."""

    resource_classes = (exchange.MembershipResource,)
    list_display = ("user", "workspace", "role", "created_at")
    list_filter = ("role", "workspace")
    list_select_related = ("user", "workspace")
    search_fields = ("user__username", "workspace__slug")
    autocomplete_fields = ("user", "workspace")


@admin.register(Workspace)
class WorkspaceAdmin(ModelAdmin[Workspace]):
    """Workspaces with their members and quotas on one page."""

    inlines = (MembershipInline, QuotaInline)
    list_display = ("name", "slug", "created_at")
    search_fields = ("name", "slug")
    prepopulated_fields = {"slug": ("name",)}

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Quotas change under the locks of their clusters, so that no admission decides by half of them."""
        if formset.model is not Quota:
            super().save_formset(request, form, formset, change)
            return
        with ExitStack() as locks:
            for cluster_id in sorted(
                {each.instance.cluster_id for each in formset.forms if each.has_changed()}
            ):
                locks.enter_context(ledger.locked(cluster_id))
            super().save_formset(request, form, formset, change)


@admin.register(Cluster)
class ClusterAdmin(ModelAdmin[Cluster]):
    """Clusters, and whether they answer."""

    list_display = ("name", "slug", "region", "backend", "admission", "enabled", "answered_at", "trouble")
    list_filter = ("backend", "admission", "enabled")
    search_fields = ("name", "slug")
    readonly_fields = ("answered_at", "trouble", "looks", "runs_as", "accounts")
    form = ClusterForm

    @admin.display(description=_("jobs run as"))
    def runs_as(self, cluster: Cluster) -> str:
        """Whether people's jobs are told apart there."""
        if cluster.backend != unixnames.CHOOSING:
            return "–"
        if unixnames.needed(cluster) and cluster.config["identity"] == unixnames.BY_TOKENS:
            return gettext(
                "Each job runs as its owner's own UNIX user (People, UNIX name), by tokens that the console "
                "makes."
            )
        if unixnames.needed(cluster):
            return gettext("Each job runs as its owner's own UNIX user (People, UNIX name).")
        told = gettext(
            "Everything runs as the console's own UNIX user, %(user)s: whoever submits here can read and end "
            "everybody's jobs."
        )
        return told % {"user": pwd.getpwuid(os.geteuid()).pw_name}

    @admin.display(description=_("accounts"))
    def accounts(self, cluster: Cluster) -> str:
        """The way to the accounts that the engine itself keeps."""
        if not cluster.slug or cluster.backend != unixnames.CHOOSING:
            return "–"
        address = reverse("admin:accounts_take", args=[cluster.slug])
        return format_html(
            '<a class="house-button" href="{}">{}</a>',
            address,
            gettext("Import quotas from accounts, or write them back"),
        )

    @admin.display(description=_("looks"))
    def looks(self, cluster: Cluster) -> str:
        """How often the console looks at it, and why."""
        if cluster.look_ms is None:
            return gettext("As often as anything is due.")
        took_s = cluster.look_ms / 1000
        told = gettext("Every %(seconds).0f s: the last look took %(took).2f s.")
        return told % {"seconds": pace.interval_s(took_s), "took": took_s}


class DrainForm(WhyForm):
    """Until when the nodes are to be empty."""

    empty_by = forms.SplitDateTimeField(
        label=_("Empty by"),
        required=False,
        help_text=_("What still runs there is moved elsewhere then; without it, it runs to its end."),
    )

    def clean_empty_by(self) -> Any:
        """Not a moment that is over."""
        moment = self.cleaned_data["empty_by"]
        if moment is not None and moment <= timezone.now():
            raise forms.ValidationError(gettext("That moment is over."))
        return moment


def nodes_question(state: NodeState, nodes: Sequence[Node]) -> Question:
    """What follows from a decision about nodes."""
    chosen = {node.pk for node in nodes}
    uses = reports.nodes_of({node.cluster for node in nodes})
    holders = {each.holder for use in uses if use.node.pk in chosen for each in use.holdings}
    there = ngettext(
        "%(count)d job holds something there.", "%(count)d jobs hold something there.", len(holders)
    )
    effects = [there % {"count": len(holders)}]
    if state is NodeState.SCHEDULABLE:
        effects.append(gettext("Jobs start there again, as soon as the next one fits."))
        return Question("uncordon", gettext("Use nodes again"), gettext("Use them again"), effects)
    effects.append(gettext("Nothing more starts there. What runs goes on."))
    if state is NodeState.CORDONED:
        return Question(
            "cordon", gettext("Start nothing more on nodes"), gettext("Start nothing more"), effects
        )
    effects.append(
        gettext(
            "With a deadline, what still runs there then is stopped; it is started again elsewhere where its "
            "retry policy says so."
        )
    )
    return Question("drain", gettext("Empty nodes"), gettext("Empty them"), effects, danger=True)


@admin.register(Node)
class NodeAdmin(ModelAdmin[Node], Exchanged):
    """Nodes; an admin says whether they may be used, the inventory says what they have."""

    resource_classes = (exchange.NodeResource,)

    list_display = ("name", "cluster", "state", "state_why", "state_by", "schedulable", "gpus", "seen_at")
    list_filter = ("cluster", "state", "schedulable")
    list_select_related = ("cluster", "state_by")
    search_fields = ("name",)
    readonly_fields = (
        "cluster",
        "name",
        "cpu_milli",
        "memory_mib",
        "gpus",
        "gpu_list",
        "programs",
        "schedulable",
        "why",
        "state_by",
        "state_at",
        "seen_at",
    )
    actions = ("cordon", "drain", "uncordon")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_administer_permission(self, request: HttpRequest) -> bool:
        """Who decides about many at once."""
        return administers(acting(request))

    @admin.action(description=_("Start nothing more there (cordon)"), permissions=["administer"])
    def cordon(self, request: HttpRequest, queryset: QuerySet[Node]) -> HttpResponse | None:
        """Running jobs go on."""
        return self._decide(request, queryset, NodeState.CORDONED, WhyForm)

    @admin.action(description=_("Empty them (drain)"), permissions=["administer"])
    def drain(self, request: HttpRequest, queryset: QuerySet[Node]) -> HttpResponse | None:
        """Nothing starts there; the rest is moved at the deadline, if there is one."""
        return self._decide(request, queryset, NodeState.DRAINING, DrainForm)

    @admin.action(description=_("Use them again (uncordon)"), permissions=["administer"])
    def uncordon(self, request: HttpRequest, queryset: QuerySet[Node]) -> HttpResponse | None:
        """The inverse of `cordon` and `drain`."""
        return self._decide(request, queryset, NodeState.SCHEDULABLE, AdminForm)

    def _decide(
        self, request: HttpRequest, queryset: QuerySet[Node], state: NodeState, form: type[AdminForm]
    ) -> HttpResponse | None:
        rows, values, page = bulk.asked(
            self, request, queryset.select_related("cluster"), partial(nodes_question, state), form
        )
        if values is None:
            return page
        actor = acts.actor_of(request, values.get("why", ""))
        nodes = Node.objects.filter(pk__in=[row.pk for row in rows])
        with transaction.atomic():
            names = ", ".join(row.name for row in rows)
            acts.write_down(actor, Act.Kind.NODES, names, state=state.value)
            empty_by = values.get("empty_by")
            done = inventory.decide(nodes, state, by=actor.user, why=actor.why, empty_by=empty_by)
        bulk.tell(self, request, done, [])
        return None

    def save_model(self, request: HttpRequest, obj: Node, form: Any, change: bool) -> None:
        """Remember who decided, and when."""
        if {"state", "state_why", "empty_by"} & set(form.changed_data):
            obj.state_by, obj.state_at = acting(request), timezone.now()
            new = {key: getattr(obj, key) for key in ("state", "state_why", "empty_by")}
            inventory.told(Node.objects.select_related("cluster").get(pk=obj.pk), new)
        super().save_model(request, obj, form, change)


@admin.register(Quota)
class QuotaAdmin(ModelAdmin[Quota], Exchanged):
    """Quotas of all workspaces."""

    resource_classes = (exchange.QuotaResource,)

    form = QuotaForm
    list_display = (
        "name",
        "parent",
        "workspace",
        "cluster",
        "source",
        "kind",
        "gpus",
        "cpu_milli",
        "memory_mib",
        "most_jobs",
    )
    list_filter = ("cluster", "workspace", "source", "kind")
    list_select_related = ("parent", "workspace", "cluster")
    search_fields = ("name", "slug", "workspace__name")
    autocomplete_fields = ("parent", "idle_exempt_people")
    prepopulated_fields = {"slug": ("name",)}
    fieldsets = (
        (
            None,
            {
                "fields": (
                    ("name", "slug"),
                    ("workspace", "cluster", "parent"),
                    ("source", "kind", "accepts_jobs"),
                )
            },
        ),
        (
            _("Ceilings"),
            {
                "fields": (
                    "gpus",
                    "gpus_by_type",
                    "cpu_milli",
                    "memory_mib",
                    "most_jobs",
                    ("gpu_hours", "period"),
                    "drain",
                )
            },
        ),
        (
            _("Ceilings of one person"),
            {"fields": ("person_gpus", "person_cpu_milli", "person_memory_mib", "person_jobs")},
        ),
        (_("Idle resources, and engines that schedule"), {"fields": ("may_borrow", "most_pending")}),
        (
            _("Jobs that don't use what they hold"),
            {
                "fields": (
                    ("idle_warn_minutes", "idle_release_minutes"),
                    ("idle_percent", "idle_extensions"),
                    "idle_exempt",
                    "idle_exempt_people",
                    "idle_exempt_roles",
                    "idle_exempt_labels",
                )
            },
        ),
    )

    def save_model(self, request: HttpRequest, obj: Quota, form: Any, change: bool) -> None:
        """Under the cluster's lock: no admission decides by what is about to change."""
        with ledger.locked(obj.cluster_id):
            super().save_model(request, obj, form, change)


@admin.register(GpuType)
class GpuTypeAdmin(ModelAdmin[GpuType], Exchanged):
    """GPU types and their other names."""

    resource_classes = (exchange.GpuTypeResource,)

    list_display = ("name", "aliases")
    search_fields = ("name",)


class PricedAdmin(ModelAdmin[Any], Exchanged):
    """Rows whose prices are remembered one by one, so that they are deleted one by one too."""

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            row.delete()


@admin.register(Spec)
class SpecAdmin(PricedAdmin):
    """Ready-made sizes and what they cost."""

    resource_classes = (exchange.SpecResource,)

    list_display = (
        "name",
        "cluster",
        "workspace",
        "gpus",
        "cpu_milli",
        "memory_mib",
        "price_micro",
        "offered",
    )
    list_filter = ("offered", "cluster", "workspace")
    list_select_related = ("cluster", "workspace")
    search_fields = ("name", "description")


@admin.register(SpotPrice)
class SpotPriceAdmin(PricedAdmin):
    """What preemptible resources cost, always or at some hours."""

    resource_classes = (exchange.SpotPriceResource,)

    list_display = ("cluster", "gpu_type", "from_hour", "until_hour", "market_micro", "price_micro")
    list_filter = ("cluster",)
    list_select_related = ("cluster",)


@admin.register(UsageDay)
class UsageDayAdmin(MachineWritten):
    """What each person held and what it cost, day by day."""

    list_display = ("day", "quota", "person", "gpu_type", "spec", "gpu_seconds", "cost_micro")
    list_select_related = ("quota", "person")
    search_fields = ("person__username__exact",)


@admin.register(UsageHour)
class UsageHourAdmin(MachineWritten):
    """What was held, hour by hour."""

    list_display = ("quota", "hour", "gpu_type", "seconds", "borrowed_seconds", "waiting")
    list_select_related = ("quota",)


@admin.register(Request)
class RequestAdmin(MachineWritten):
    """What waits, in the order of admission."""

    list_display = ("holder", "state", "cluster", "quota", "owner", "priority", "idle", "held", "since")
    list_filter = ("state", "cluster")
    list_select_related = ("cluster", "quota", "owner")
    search_fields = ("holder", "owner__username")


@admin.register(Reservation)
class ReservationAdmin(MachineWritten):
    """What is held."""

    list_display = (
        "request",
        "active",
        "cluster",
        "quota",
        "amounts",
        "borrowed",
        "created_at",
        "started_at",
        "asked_back_at",
        "released_at",
    )
    list_filter = ("active", "cluster")
    list_select_related = ("request", "cluster", "quota")
    search_fields = ("request__holder",)


@admin.register(AccessToken)
class AccessTokenAdmin(MachineWritten):
    """Tokens: who has one and for what; the token itself is nowhere."""

    list_display = ("prefix", "name", "user", "scopes", "expires_at", "last_used_at", "revoked_at")
    list_select_related = ("user",)
    search_fields = ("prefix", "name", "user__username")


@admin.register(Banner)
class BannerAdmin(ModelAdmin[Banner]):
    """What everybody, a workspace or a person is told on every page."""

    list_display = ("text", "level", "workspace", "person", "from_at", "until_at")
    list_filter = ("level",)
    list_select_related = ("workspace", "person")
    autocomplete_fields = ("workspace", "person")


@admin.register(Act)
class ActAdmin(MachineWritten):
    """What admins did beyond the everyday; written once, by nobody's hand."""

    list_display = ("at", "by", "address", "kind", "about", "why")
    list_filter = ("kind",)
    list_select_related = ("by",)
    search_fields = ("by__username__exact", "about__startswith")


admin.site.unregister(AuditEntry)  # django-auditlog registers it, with a search that reads all of it


@admin.register(AuditEntry)
class AuditEntryAdmin(MachineWritten):
    """The audit trail: found by person, thing, time and kind, along its indexes."""

    list_display = (
        "timestamp",
        "actor_name",
        "told",
        "refused",
        "object_repr",
        "workspace",
        "way_told",
        "remote_addr",
        "short",
    )
    list_display_links = ("timestamp",)
    list_filter = ("denied", ActionFilter, ("timestamp", admin.DateFieldListFilter))
    list_select_related = ("workspace", "content_type")
    search_fields = ("actor_name",)  # what is really searched: get_search_results
    search_help_text = _("A user name, or what a thing is called, in full.")
    fields = (
        *("timestamp", "actor_name", "told", "denied", "object_repr", "content_type", "object_pk"),
        *("workspace", "changes", "details", "way_told", "remote_addr", "token", "cid"),
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """By whom, about whom, or about what: whole names, which are indexed."""
        name = search_term.strip()
        if name:
            queryset = queryset.filter(trail.of_person(name) | Q(object_repr=name))
        return queryset, False

    @admin.display(description=_("what"), ordering="action")
    def told(self, entry: AuditEntry) -> str:
        return entry.did

    @admin.display(description=_("refused"), boolean=True)
    def refused(self, entry: AuditEntry) -> bool | None:
        return False if entry.denied else None

    @admin.display(description=_("by which way"))
    def way_told(self, entry: AuditEntry) -> str:
        return entry.came

    @admin.display(description=_("before and after"))
    def short(self, entry: AuditEntry) -> str:
        return Truncator("; ".join(entry.lines)).chars(120)
