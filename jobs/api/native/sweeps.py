"""Sweeps over the native API: accept, read, stop, run the failed ones again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.http import Http404
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import dialects, submission
from jobs.api.native import problems, shapes
from jobs.api.native.auth import MissingScope
from jobs.api.native.base import ABSENT, AFTER, LIMIT, REFUSED, NativeView
from jobs.api.native.idempotency import IDEMPOTENCY_KEY, idempotent, key_of
from jobs.api.native.sparse_fields import FIELDS, Sparse
from jobs.api.native.versions import IF_NONE_MATCH
from jobs.dialects.base import Problem, Refused
from jobs.dialects.document import Document
from jobs.lifecycle import pending_reasons
from jobs.models import Sweep
from jobs.submission.sweeps import arrays, commands, parameter_text, random_search
from jobs.submission.sweeps.expansion import MOST, CannotSweepError, Values
from jobs.submission.sweeps.objective import LONGEST, Objective, Trial, list_trials
from jobs.submission.sweeps.parameter_text import InvalidParameters, SweepValues
from jobs.submission.sweeps.random_search import Kind, Range
from quotas.access import Verb, can

PAGE: Final = 50


class RangeShape(shapes.ApiShape):
    """The values of a parameter in a random search: `values` of a choice, else from `low` to `high`."""

    distribution = serializers.ChoiceField(choices=[each.value for each in Kind])
    low = serializers.FloatField(default=0)
    high = serializers.FloatField(default=0)
    values = serializers.ListField(child=serializers.JSONField(), default=list)


class RandomSearchShape(shapes.ApiShape):
    """Combinations that are drawn; the same seed draws the same ones."""

    parameters = serializers.DictField(child=RangeShape())
    trials = serializers.IntegerField(min_value=1, max_value=MOST)
    seed = serializers.IntegerField(min_value=0, max_value=2**31 - 1, default=0)


class ObjectiveShape(shapes.ApiShape):
    """The metric that decides which job is best.

    With `stop_after` a job is stopped from that step on if its best value is worse than the median of the
    others', once `stop_jobs` others got as far.
    """

    metric = serializers.CharField(max_length=LONGEST)
    goal = serializers.ChoiceField(["min", "max"])
    stop_after = serializers.FloatField(min_value=0, max_value=1e15, allow_null=True, default=None)
    stop_jobs = serializers.IntegerField(min_value=1, max_value=MOST, default=3)


class SweepRequestShape(shapes.ApiShape):
    """A job file, and the values that its fields shall have: a grid or a list of combinations.

    An sbatch script with `--array` needs neither: each index is a job, and `%k` says how many at once.
    """

    file = shapes.TextField(trim_whitespace=False, allow_blank=True)
    dialect = serializers.ChoiceField(choices=dialects.NAMES, allow_null=True, default=None)
    workspace = serializers.SlugField(allow_null=True, default=None)
    cluster = serializers.SlugField(allow_null=True, default=None)
    quota = serializers.SlugField(allow_null=True, default=None)
    grid = serializers.DictField(
        child=serializers.ListField(child=serializers.JSONField()),
        default=dict,
        help_text="path of the job specification, or a word that stands in braces → its values",
    )
    combinations = serializers.ListField(child=serializers.DictField(), default=list)
    at_once = serializers.IntegerField(min_value=1, max_value=MOST, allow_null=True, default=None)
    random = RandomSearchShape(allow_null=True, default=None, help_text="instead of grid and combinations")
    objective = ObjectiveShape(allow_null=True, default=None)
    parameters = shapes.TextField(
        max_length=parameter_text.LONGEST,
        trim_whitespace=False,
        allow_blank=True,
        default="",
        help_text="lines as on New job, instead of grid, combinations, random and objective",
    )
    template = serializers.CharField(
        max_length=80,
        allow_null=True,
        default=None,
        help_text="the version of a template that the file comes from, ID@VERSION; its locks hold",
    )


class SweepRunShape(shapes.ApiShape):
    """The job of one combination; `values` and results are null for whoever may not read it."""

    number = serializers.IntegerField()
    round = serializers.IntegerField()
    values = serializers.DictField(allow_null=True)
    best = serializers.FloatField(allow_null=True, help_text="of the objective")
    last = serializers.FloatField(allow_null=True, help_text="of the objective")
    is_best = serializers.BooleanField()
    job = shapes.JobShape()


class SweepSummaryShape(shapes.ApiShape):
    """A sweep in a list."""

    id = serializers.CharField(source="public_id")
    name = serializers.CharField()
    owner = serializers.CharField(source="owner.username")
    workspace = serializers.CharField(source="workspace.slug")
    at_once = serializers.IntegerField()
    states = serializers.DictField(child=serializers.IntegerField(), help_text="state → how many jobs")


class SweepShape(SweepSummaryShape):
    """A sweep with its jobs."""

    objective = ObjectiveShape(allow_null=True, help_text="null for whoever may not read it, too")
    runs = SweepRunShape(many=True)


class SweepPage(shapes.ApiShape):
    """Sweeps, newest first, and the address of the next ones."""

    sweeps = SweepSummaryShape(many=True)
    next = serializers.CharField(allow_null=True)


class SweepFileShape(shapes.ApiShape):
    """The one file of all jobs, with placeholders for secret values."""

    dialect = serializers.CharField()
    text = serializers.CharField()


class AtOnceShape(shapes.ApiShape):
    """How many of its jobs may be under way at a time."""

    at_once = serializers.IntegerField(min_value=1, max_value=MOST)


class Sweeps(NativeView):
    """Sweeps of the caller's workspaces, and submission of sweeps."""

    scopes = {"POST": "submit"}
    sparse = Sparse(SweepSummaryShape, "sweeps")

    @extend_schema(
        operation_id="sweeps_list",
        parameters=[AFTER, LIMIT, FIELDS, IF_NONE_MATCH],
        responses={200: SweepPage, 304: None, **REFUSED},
    )
    def get(self, request: Request) -> Response:
        """List them by keys, the newest first."""
        rows = Sweep.objects.visible_to(self.person).select_related("owner", "workspace").order_by("-pk")
        if after := self.number("after", 0):
            rows = rows.filter(pk__lt=after)
        page, following = self.page(rows, PAGE)
        states = commands.count_states(page)
        sweeps = [SweepSummaryShape.render(row, states=states.get(row.pk, {})) for row in page]
        return Response({"sweeps": sweeps, "next": following})

    @extend_schema(
        operation_id="sweeps_submit",
        parameters=[IDEMPOTENCY_KEY],
        request=SweepRequestShape,
        responses={
            201: SweepShape,
            200: OpenApiResponse(SweepShape, description="The same request came before."),
            409: shapes.ProblemDetails,
            413: shapes.ProblemDetails,
            **REFUSED,
        },
    )
    def post(self, request: Request) -> Response:
        """Accept all jobs of a sweep, or none."""
        data = SweepRequestShape.parse(request.data)
        typed = _read_parameters(data) if data["parameters"].strip() else None
        drawn = data["random"]
        try:
            listed = _draw(drawn) if drawn else ()
            if listed and data["combinations"]:
                raise CannotSweepError(Problem("sweep_grid_or_list", "/parameters"))
        except CannotSweepError as error:
            return problems.refuse_file(data["file"], error.problems)
        objective = Objective(**data["objective"]) if data["objective"] else None
        if typed is not None:
            objective = typed.objective
        sweep_request = commands.SweepRequest(
            Document(data["file"], data["dialect"]),
            submission.JobTarget(*(data[name] or "" for name in ("workspace", "cluster", "quota"))),
            typed.grid if typed else data["grid"],
            typed.listed if typed else listed or data["combinations"],
            data["at_once"],
            data["template"] or "",
            objective=objective,
        )
        try:
            sweep, before = commands.submit(self.person, sweep_request, key_of(self))
        except Refused as refused:
            return problems.refuse_file(sweep_request.document.text, refused.problems)
        return Response(_render(self, sweep), status=200 if before else 201)


class OneSweep(NativeView):
    """One sweep."""

    scopes = {"PATCH": "submit"}
    sparse = Sparse(SweepShape)

    @extend_schema(
        operation_id="sweeps_read",
        parameters=[FIELDS, IF_NONE_MATCH],
        responses={200: SweepShape, 304: None, **REFUSED, **ABSENT},
    )
    def get(self, request: Request, public_id: str) -> Response:
        """The sweep with its jobs; of several rounds the last."""
        return Response(_render(self, _find(self, public_id, Verb.LIST)))

    @extend_schema(
        operation_id="sweeps_change", request=AtOnceShape, responses={200: SweepShape, **REFUSED, **ABSENT}
    )
    def patch(self, request: Request, public_id: str) -> Response:
        """Let another number of its jobs be under way at a time."""
        sweep = _find(self, public_id, Verb.CONTROL)
        commands.change(self.person, sweep, AtOnceShape.parse(request.data)["at_once"])
        sweep.refresh_from_db()
        return Response(_render(self, sweep))


class SweepFileView(NativeView):
    """The file of a sweep that came as one: a job array."""

    @extend_schema(operation_id="sweeps_file", responses={200: SweepFileShape, **ABSENT})
    def get(self, request: Request, public_id: str) -> Response:
        """The script with its --array, and as many at once as are allowed now."""
        sweep = _find(self, public_id, Verb.READ)
        if not sweep.file:
            raise Http404
        return Response({"dialect": arrays.DIALECT, "text": arrays.file_of(sweep)})


class Stop(NativeView):
    """All of it ends."""

    scopes = {"POST": "stop"}

    @extend_schema(operation_id="sweeps_stop", request=None, responses={202: SweepShape, **ABSENT})
    def post(self, request: Request, public_id: str) -> Response:
        """Ask for the end of all its jobs."""
        sweep = _find(self, public_id, Verb.CONTROL)
        commands.stop(self.person, sweep)
        return Response(_render(self, sweep), status=202)


class RetrySweep(NativeView):
    """The failed ones once more."""

    scopes = {"POST": "submit"}

    @extend_schema(
        operation_id="sweeps_again",
        request=None,
        parameters=[IDEMPOTENCY_KEY],
        responses={200: SweepShape, 409: shapes.ProblemDetails, **REFUSED, **ABSENT},
    )
    @idempotent
    def post(self, request: Request, public_id: str) -> Response:
        """Run its failed jobs again, all or none."""
        sweep = _find(self, public_id, Verb.CONTROL)
        try:
            commands.again(self.person, sweep)
        except Refused as refused:
            return problems.refuse_file("", refused.problems)
        return Response(_render(self, sweep))


def _find(view: NativeView, public_id: str, verb: Verb) -> Sweep:
    """The sweep, for `verb`; a right that comes from managing a workspace needs the scope `admin` too."""
    rows = Sweep.objects.visible_to(view.person).select_related("owner", "workspace")
    sweep = rows.filter(public_id=public_id).first()
    if sweep is None:
        raise Http404
    if not can(view.person, verb, sweep):
        raise submission.Forbidden
    if verb is not Verb.LIST and sweep.owner_id != view.person.pk and not view.allows("admin"):
        raise MissingScope("admin")
    return sweep


def _read_parameters(data: Mapping[str, Any]) -> SweepValues:
    """Return the parameters that were sent as text.  Raises ValidationError."""
    if any(data[name] for name in ("grid", "combinations", "random", "objective")):
        detail = problems.one_of("parameters", "grid", "combinations", "random")
        raise ValidationError({"parameters": [detail]})
    try:
        return parameter_text.parse_parameters(data["parameters"])
    except InvalidParameters as error:
        raise ValidationError({"parameters": [*error.messages]}) from error


def _draw(drawn: Mapping[str, Any]) -> list[Values]:
    """Return the combinations of a random search.  Raises CannotSweepError."""
    ranges = {
        name: Range(Kind(each["distribution"]), each["low"], each["high"], each["values"])
        for name, each in drawn["parameters"].items()
    }
    return random_search.draw(ranges, drawn["trials"], drawn["seed"])


def _render(view: NativeView, sweep: Sweep) -> dict[str, Any]:
    runs = commands.latest(sweep)
    pending_reasons.load_reasons([run.job for run in runs])
    reads = can(view.person, Verb.READ, sweep) and (sweep.owner_id == view.person.pk or view.allows("admin"))
    states: dict[str, int] = {}
    for run in runs:
        states[run.job.state] = states.get(run.job.state, 0) + 1
    trials = list_trials(sweep, runs) if reads else [Trial(run, {}, is_best=False) for run in runs]
    rows = [_render_trial(trial, sweep.objective, reads=reads) for trial in trials]
    objective = ObjectiveShape.render(sweep, metric=sweep.objective) if reads and sweep.objective else None
    return SweepShape.render(sweep, states=states, objective=objective, runs=rows)


def _render_trial(trial: Trial, objective: str, *, reads: bool) -> dict[str, Any]:
    result = trial.results.get(objective)
    return SweepRunShape.render(
        trial.run,
        values=trial.run.values if reads else None,
        best=result.best if result else None,
        last=result.last if result else None,
        is_best=trial.is_best,
        job=shapes.JobShape.render(trial.run.job),
    )
