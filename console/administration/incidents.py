"""Incidents: what is so now, and a button for each thing an admin may have to do at once.

Each asks first, on a page that says what follows, and is written down (`quotas.models.AdminAction`).
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST, require_safe

from console.administration.incident import Incident, NotDone, presence_effects
from console.administration.offboarding import Offboard
from console.administration.orphans import AdoptOrphan, EndOrphan
from jobs import submission
from jobs.admin import admin_actions
from jobs.messages import state_label
from jobs.models import Job
from jobs.scheduling import orphans
from jobs.states import SETTLED, State
from quotas.admin.bulk import AdminForm, Question, WhyForm
from quotas.audit import action_record
from quotas.audit.action_record import Actor
from quotas.models import AdminAction, Cluster, Node, ReadOnly, User

SHOWN_ACTS: Final = 20
MOST_LOST: Final = 100
MOST_NODES: Final = 2000


class FreezeForm(WhyForm):
    """A cluster that is not frozen."""

    cluster = forms.ModelChoiceField(Cluster.objects.filter(frozen_at=None), label=gettext_lazy("Cluster"))
    field_order = ("cluster", "why")


class UnfreezeForm(WhyForm):
    """A cluster that is frozen."""

    cluster = forms.ModelChoiceField(
        Cluster.objects.filter(frozen_at__isnull=False), label=gettext_lazy("Cluster")
    )
    field_order = ("cluster", "why")


class PersonForm(WhyForm):
    """Selects a person whose jobs, sign-ins and tokens end."""

    person = forms.CharField(label=gettext_lazy("User name"), max_length=150)
    disable = forms.BooleanField(
        label=gettext_lazy("Disable account"),
        required=False,
        help_text=gettext_lazy("Blocks sign-in until an admin enables the account again."),
    )
    field_order = ("person", "disable", "why")

    def clean_person(self) -> User:
        """The account."""
        person = User.objects.filter(username=self.cleaned_data["person"]).first()
        if person is None:
            raise ValidationError(_("User not found."))
        return person


class NodeForm(AdminForm):
    """Selects a node, with a reason."""

    node = forms.ModelChoiceField(Node.objects.select_related("cluster"), label=gettext_lazy("Node"))
    why = forms.CharField(label=gettext_lazy("Message to owners"), max_length=400)


class SettleForm(WhyForm):
    """Selects a lost job and its end state."""

    job = forms.ModelChoiceField(
        Job.objects.none(),
        label=gettext_lazy("Lost job"),
        to_field_name="public_id",
    )
    state = forms.ChoiceField(label=gettext_lazy("Final state"), choices=())
    sure = forms.BooleanField(
        label=gettext_lazy("I have verified that no part of this job is still running"),
        help_text=gettext_lazy(
            "The job's resources are released to other jobs. If the job is still running, both "
            "will use the same resources."
        ),
    )
    field_order = ("job", "state", "why", "sure")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        job, state = self.fields["job"], self.fields["state"]
        assert isinstance(job, forms.ModelChoiceField)
        assert isinstance(state, forms.ChoiceField)
        job.queryset = Job.objects.filter(state=State.LOST, deleted_at=None)
        state.choices = [(each.value, state_label(each)) for each in SETTLED]


class Freeze(Incident):
    """Start nothing more on a cluster."""

    name, form, danger = "freeze", FreezeForm, True
    title = gettext_lazy("Pause scheduling on a cluster")
    button = gettext_lazy("Pause scheduling")

    def possible(self) -> bool:
        return Cluster.objects.filter(frozen_at=None).exists()

    def effects(self, values: Mapping[str, Any]) -> list[str]:
        cluster = values["cluster"]
        return [
            _("No new jobs start on %(cluster)s until scheduling is resumed.") % {"cluster": cluster},
            _job_counts(cluster),
            _("Waiting jobs show: %(why)s") % {"why": values["why"]},
        ]

    def do(self, actor: Actor, values: Mapping[str, Any]) -> str:
        admin_actions.freeze(actor, values["cluster"])
        return _("Scheduling on %(cluster)s paused.") % {"cluster": values["cluster"]}


class Unfreeze(Incident):
    """Let a cluster go on."""

    name, form = "unfreeze", UnfreezeForm
    title = gettext_lazy("Resume scheduling on a cluster")
    button = gettext_lazy("Resume scheduling")

    def possible(self) -> bool:
        return Cluster.objects.filter(frozen_at__isnull=False).exists()

    def effects(self, values: Mapping[str, Any]) -> list[str]:
        return [
            _("Jobs on %(cluster)s start again in queue order.") % values,
            _job_counts(values["cluster"]),
        ]

    def do(self, actor: Actor, values: Mapping[str, Any]) -> str:
        admin_actions.unfreeze(actor, values["cluster"])
        return _("Scheduling on %(cluster)s resumed.") % {"cluster": values["cluster"]}


class MakeReadOnly(Incident):
    """Nothing may be changed."""

    name, form, danger = "read_only", WhyForm, True
    title = gettext_lazy("Make the console read-only")
    button = gettext_lazy("Make read-only")

    def possible(self) -> bool:
        return not ReadOnly.objects.exists()

    def effects(self, values: Mapping[str, Any]) -> list[str]:
        return [
            _("Pages and APIs reject all changes except those by console admins, and show the reason."),
            _(
                "Running jobs continue and waiting jobs still start. Users can still sign in and view "
                "everything."
            ),
            _("Every page shows: %(why)s") % {"why": values["why"]},
        ]

    def do(self, actor: Actor, values: Mapping[str, Any]) -> str:
        admin_actions.make_read_only(actor)
        return _("The console is read-only.")


class MakeWritable(Incident):
    """Things may be changed again."""

    name, form = "read_write", WhyForm
    title = gettext_lazy("End read-only mode")
    button = gettext_lazy("End read-only mode")

    def possible(self) -> bool:
        return ReadOnly.objects.exists()

    def effects(self, values: Mapping[str, Any]) -> list[str]:
        return [_("Users can make changes again, within their permissions.")]

    def do(self, actor: Actor, values: Mapping[str, Any]) -> str:
        admin_actions.make_writable(actor)
        return _("Read-only mode ended.")


class EndPerson(Incident):
    """End everything of one person."""

    name, form, danger = "end_person", PersonForm, True
    title = gettext_lazy("Stop all activity of a user")
    button = gettext_lazy("Stop all activity")

    def effects(self, values: Mapping[str, Any]) -> list[str]:
        person = values["person"]
        effects = presence_effects(admin_actions.count_presence(person))
        effects.append(_("File transfers end with the session or token that started them."))
        if values["disable"]:
            effects.append(_("The account is disabled: %(person)s can't sign in.") % {"person": person})
        else:
            effects.append(_("The account stays enabled: %(person)s can sign in again.") % {"person": person})
        return effects

    def do(self, actor: Actor, values: Mapping[str, Any]) -> str:
        found = admin_actions.end_everything(actor, values["person"], disable=values["disable"])
        text = ngettext(
            "All activity of %(person)s is being stopped, including %(count)d job.",
            "All activity of %(person)s is being stopped, including %(count)d jobs.",
            found.jobs,
        )
        return text % {"person": values["person"], "count": found.jobs}


class TellOwners(Incident):
    """Tell the owners on a node."""

    name, form = "tell_owners", NodeForm
    title = gettext_lazy("Notify job owners on a node")
    button = gettext_lazy("Notify")

    def possible(self) -> bool:
        return Node.objects.exists()

    def effects(self, values: Mapping[str, Any]) -> list[str]:
        jobs = admin_actions.find_jobs_on(values["node"])
        people = sorted({job.owner.get_username() for job in jobs})
        if not people:
            return [_("No jobs on %(node)s, so nobody will be notified.") % {"node": values["node"]}]
        return [
            _("Recipients: %(people)s") % {"people": ", ".join(people)},
            _(
                "Sent through each owner's notification channels and added to the events of their "
                "jobs: %(text)s"
            )
            % {"text": values["why"]},
        ]

    def do(self, actor: Actor, values: Mapping[str, Any]) -> str:
        jobs = admin_actions.notify_owners(actor, values["node"], values["why"])
        count = len({job.owner_id for job in jobs})
        return ngettext("%(count)d person notified.", "%(count)d people notified.", count) % {"count": count}


class Settle(Incident):
    """Settle a lost job by hand."""

    name, form, danger = "settle", SettleForm, True
    title = gettext_lazy("Resolve a lost job manually")
    button = gettext_lazy("Resolve")

    def possible(self) -> bool:
        return Job.objects.filter(state=State.LOST, deleted_at=None).exists()

    def effects(self, values: Mapping[str, Any]) -> list[str]:
        state = state_label(State(values["state"]))
        return [
            _("%(job)s will be permanently marked %(state)s.") % {"job": values["job"], "state": state},
            _("The job's resources are released. A job that reappears is not adopted again."),
        ]

    def do(self, actor: Actor, values: Mapping[str, Any]) -> str:
        admin_actions.settle(actor, values["job"], State(values["state"]))
        return _("%(job)s resolved.") % {"job": values["job"]}


INCIDENTS: Final[Mapping[str, Incident]] = {
    each.name: each
    for each in (
        Freeze(),
        Unfreeze(),
        MakeReadOnly(),
        MakeWritable(),
        EndPerson(),
        Offboard(),
        TellOwners(),
        Settle(),
        AdoptOrphan(),
        EndOrphan(),
    )
}


def _job_counts(cluster: Cluster) -> str:
    """How many run and wait there."""
    rows = Job.objects.filter(cluster=cluster, deleted_at=None)
    found = rows.aggregate(
        runs=Count("pk", Q(state__in=[State.RUNNING, State.PENDING, State.SUBMITTING])),
        waits=Count("pk", Q(state=State.QUEUED)),
    )
    return _("Running or starting: %(runs)s. Waiting: %(waits)s.") % found


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show current incidents, the actions, and the latest admin actions."""
    action_record.actor_of(request)
    return TemplateResponse(request, "administration/incidents.html", _context(request, {}))


@require_POST
def act(request: HttpRequest, name: str) -> HttpResponse:
    """Ask, or do what was confirmed."""
    actor = action_record.actor_of(request)
    incident = INCIDENTS.get(name)
    if incident is None:
        raise Http404
    form = incident.form(request.POST)
    if not form.is_valid():
        context = _context(request, {name: form})
        return TemplateResponse(
            request, "administration/incidents.html", context, status=HTTPStatus.UNPROCESSABLE_ENTITY
        )
    values = form.cleaned_data
    if "confirmed" not in request.POST:
        return _ask(request, incident, form, values)
    try:
        message = incident.do(Actor(actor.user, actor.address, values["why"]), values)
    except submission.NotLost:
        messages.error(request, _("This job is no longer lost."))
    except NotDone as problem:
        messages.error(request, str(problem))
    else:
        messages.success(request, message)
    return redirect("admin:incidents")


def _ask(
    request: HttpRequest, incident: Incident, form: AdminForm, values: Mapping[str, Any]
) -> HttpResponse:
    question = Question(
        incident.name,
        str(incident.title),
        str(incident.button),
        incident.effects(values),
        danger=incident.danger,
    )
    context = {**admin.site.each_context(request), "title": question.title, "question": question}
    context["sent"] = [(name, request.POST[name]) for name in form.fields if name in request.POST]
    return TemplateResponse(request, "administration/incident.html", context)


def _context(request: HttpRequest, forms_with_errors: Mapping[str, AdminForm]) -> dict[str, Any]:
    incidents = [
        (each, forms_with_errors.get(name) or each.form(auto_id=f"{name}-%s"))
        for name, each in INCIDENTS.items()
        if each.possible()
    ]
    return {
        **admin.site.each_context(request),
        "title": _("Incidents"),
        "incidents": incidents,
        "open": next(iter(forms_with_errors), request.GET.get("open", "")),
        "read_only": ReadOnly.objects.select_related("by").first(),
        "frozen": Cluster.objects.filter(frozen_at__isnull=False),
        "lost": Job.objects.filter(state=State.LOST, deleted_at=None).select_related("owner", "cluster")[
            :MOST_LOST
        ],
        "orphans": orphans.find(),
        "done": AdminAction.objects.select_related("by")[:SHOWN_ACTS],
    }
