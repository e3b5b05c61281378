"""Nodes: what they have, and whether they may be used."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from jobs.admin.holders import name_jobs
from quotas.access import administers
from quotas.admin import bulk
from quotas.admin.base import DELETE_SELECTED, TABLE_LIST, ModelAdmin, signed_in_admin
from quotas.admin.bulk import AdminForm, Question, WhyForm
from quotas.audit import action_record
from quotas.clusters import inventory
from quotas.ledger import reports
from quotas.models import AdminAction, Node, NodeState


class DrainForm(WhyForm):
    """Until when the nodes are to be empty."""

    empty_by = forms.SplitDateTimeField(
        label=_("Drain deadline"),
        required=False,
        help_text=_("Jobs still running at this time are moved elsewhere. Empty = jobs run to completion."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["empty_by"]
        zone = gettext("Time zone: %(zone)s.") % {"zone": timezone.get_current_timezone_name()}
        field.help_text = f"{field.help_text} {zone}"

    def clean_empty_by(self) -> Any:
        """Not a moment that is over."""
        moment = self.cleaned_data["empty_by"]
        if moment is not None and moment <= timezone.now():
            raise forms.ValidationError(gettext("This time is in the past."))
        return moment


def nodes_question(state: NodeState, nodes: Sequence[Node]) -> Question:
    """Return the confirmation of a decision about nodes."""
    chosen = {node.pk for node in nodes}
    uses = reports.nodes_of({node.cluster for node in nodes})
    holders = sorted({each.holder for use in uses if use.node.pk in chosen for each in use.holdings})
    there = ngettext("%(count)d job uses these nodes.", "%(count)d jobs use these nodes.", len(holders))
    effects = [there % {"count": len(holders)}]
    if holders:
        effects.append(gettext("Jobs: %(names)s") % {"names": name_jobs(holders)})
    if state is NodeState.SCHEDULABLE:
        effects.append(gettext("New jobs can start on these nodes again."))
        return Question("uncordon", gettext("Uncordon nodes"), gettext("Uncordon"), effects)
    effects.append(gettext("No new jobs start on these nodes. Running jobs continue."))
    if state is NodeState.CORDONED:
        return Question("cordon", gettext("Cordon nodes"), gettext("Cordon"), effects)
    effects.append(
        gettext(
            "With a deadline, jobs still running then are stopped, and restarted elsewhere if "
            "their retry policy allows it."
        )
    )
    return Question("drain", gettext("Drain nodes"), gettext("Drain"), effects, danger=True)


def done_sentence(state: NodeState, count: int) -> str:
    """Return what was done to so many nodes."""
    match state:
        case NodeState.CORDONED:
            text = ngettext("%(count)d node cordoned.", "%(count)d nodes cordoned.", count)
        case NodeState.DRAINING:
            text = ngettext("%(count)d node draining.", "%(count)d nodes draining.", count)
        case _:
            text = ngettext("%(count)d node uncordoned.", "%(count)d nodes uncordoned.", count)
    return text % {"count": count}


@admin.register(Node)
class NodeAdmin(ModelAdmin[Node]):
    """Nodes; an admin says whether they may be used, the inventory says what they have."""

    change_list_template = TABLE_LIST
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

    def get_actions(self, request: HttpRequest) -> Any:
        """Leave deletion to a node's own page, apart from cordon and drain."""
        return {name: each for name, each in super().get_actions(request).items() if name != DELETE_SELECTED}

    def has_administer_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may change many nodes at once."""
        return administers(signed_in_admin(request))

    @admin.action(description=_("Cordon (no new jobs)"), permissions=["administer"])
    def cordon(self, request: HttpRequest, queryset: QuerySet[Node]) -> HttpResponse | None:
        """Running jobs go on."""
        return self._decide(request, queryset, NodeState.CORDONED, WhyForm)

    @admin.action(description=_("Drain (no new jobs, then empty)"), permissions=["administer"])
    def drain(self, request: HttpRequest, queryset: QuerySet[Node]) -> HttpResponse | None:
        """Nothing starts there; the rest is moved at the deadline, if there is one."""
        return self._decide(request, queryset, NodeState.DRAINING, DrainForm)

    @admin.action(description=_("Uncordon (allow new jobs)"), permissions=["administer"])
    def uncordon(self, request: HttpRequest, queryset: QuerySet[Node]) -> HttpResponse | None:
        """The inverse of `cordon` and `drain`."""
        return self._decide(request, queryset, NodeState.SCHEDULABLE, AdminForm)

    def _decide(
        self, request: HttpRequest, queryset: QuerySet[Node], state: NodeState, form: type[AdminForm]
    ) -> HttpResponse | None:
        rows, values, page = bulk.confirm(
            self, request, queryset.select_related("cluster"), partial(nodes_question, state), form
        )
        if values is None:
            return page
        actor = action_record.actor_of(request, values.get("why", ""))
        nodes = Node.objects.filter(pk__in=[row.pk for row in rows])
        with transaction.atomic():
            names = ", ".join(row.name for row in rows)
            action_record.write_down(actor, AdminAction.Kind.NODES, names, state=state.value)
            empty_by = values.get("empty_by")
            done = inventory.decide(nodes, state, by=actor.user, why=actor.why, empty_by=empty_by)
        bulk.tell(self, request, done_sentence(state, done), [])
        return None

    def save_model(self, request: HttpRequest, obj: Node, form: Any, change: bool) -> None:
        """Remember who decided, and when."""
        if {"state", "state_why", "empty_by"} & set(form.changed_data):
            obj.state_by, obj.state_at = signed_in_admin(request), timezone.now()
            new = {key: getattr(obj, key) for key in ("state", "state_why", "empty_by")}
            inventory.log_decision(Node.objects.select_related("cluster").get(pk=obj.pk), new)
        super().save_model(request, obj, form, change)
