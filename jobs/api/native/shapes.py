"""The shapes of requests and answers, each written once: it checks, it renders, and it is the schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, Final

from rest_framework import serializers

from jobs import dialects, messages, submission
from jobs.lifecycle import pending_reasons
from jobs.messages.endpoints import endpoint_message
from jobs.models import Dependency, Endpoint, Event, Job, Replica, Visibility
from jobs.states import REPLICA_TERMINAL, PortSource, ReplicaState, State

MOST_REPLICAS: Final = 100
"""As many replicas stand in the job itself; the rest is paged."""


class ApiShape(serializers.Serializer[Any]):
    """What every shape begins with.  A field of an answer is read from the attribute that is its `source`."""

    @classmethod
    def parse(cls, data: Any) -> dict[str, Any]:
        """Return the values of a request.  Raises ValidationError."""
        shape = cls(data=data)
        shape.is_valid(raise_exception=True)
        return dict(shape.validated_data)

    @classmethod
    def render(cls, row: Any, /, **given: Any) -> dict[str, Any]:
        """Return `row` in this shape; what is `given` by a field's name is not read from it.

        Values are as they stand in the row, so that a list of jobs costs no more than to read them.
        """
        return {name: given[name] if name in given else read(row) for name, read in cls._readers()}

    @classmethod
    def field_names(cls) -> frozenset[str]:
        """Return the names of its fields."""
        return frozenset(cls._declared_fields)

    @classmethod
    @cache
    def _readers(cls) -> Sequence[tuple[str, Callable[[Any], Any]]]:
        """Return what reads each field's value from a row."""
        return [(name, attrgetter(field.source or name)) for name, field in cls._declared_fields.items()]


class FixShape(ApiShape):
    """A change that would cure a problem: the value to put at `pointer`; null takes it away.

    Where `key` is not null the member at `pointer` gets that name, and its value stays.
    """

    pointer = serializers.CharField()
    value = serializers.JSONField(allow_null=True)
    key = serializers.CharField(allow_null=True)


class ActionShape(ApiShape):
    """A change of the job, by its kind and what it sets."""

    kind = serializers.CharField(max_length=40)
    value = serializers.CharField(max_length=300, allow_blank=True, default="")


class OfferedActionShape(ActionShape):
    """Something that can be done about a problem: `check` does it.  The kind `quota` changes no file: the job
    goes to the quota at `value`, WORKSPACE/CLUSTER/QUOTA.
    """

    label = serializers.CharField(  # type: ignore[assignment]  # the field of that name
        help_text="what it does, in words"
    )


class ProblemShape(ApiShape):
    """Something wrong with, or worth knowing about, a job file."""

    pointer = serializers.CharField(help_text="RFC 6901; empty for the whole text")
    line = serializers.IntegerField(allow_null=True)
    column = serializers.IntegerField(allow_null=True)
    code = serializers.CharField()
    message = serializers.CharField()
    params = serializers.DictField(help_text="what the sentence was made of")
    fix = FixShape(allow_null=True)
    source = serializers.CharField(  # type: ignore[assignment]  # the field of that name
        allow_blank=True, help_text="whose rule it is"
    )
    actions = OfferedActionShape(many=True, help_text="what can be done about it")


class LossShape(ProblemShape):
    """What a conversion could not carry over; `pointer` is a path of the JobSpec or of the file.

    Codes: `lost`, `approximated`, `added`, `not_carried`, `needs_value` (to be filled in), and what the
    target's own system would refuse.
    """

    capability = serializers.CharField(allow_blank=True, help_text="what the target lacks, in words")
    side = serializers.ChoiceField(
        choices=["source", "target"], help_text="whose line it is: the file's, or the converted text's"
    )


class ProblemDetails(ApiShape):
    """RFC 9457; `problems` where a job file or a field was refused."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    problems = ProblemShape(many=True, required=False)


class TextField(serializers.CharField):
    """Text as it stands; a number is not quietly made one."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class FileShape(ApiShape):
    """A job file, and its dialect when it should not be worked out."""

    file = TextField(trim_whitespace=False)
    dialect = serializers.ChoiceField(choices=dialects.NAMES, allow_null=True, default=None)


class PlacedFileShape(FileShape):
    """A job file and where it should go; what is null is chosen."""

    cluster = serializers.SlugField(allow_null=True, default=None)
    workspace = serializers.SlugField(allow_null=True, default=None)
    quota = serializers.SlugField(allow_null=True, default=None)


class CheckShape(PlacedFileShape):
    """The same, and what is to be done to the file first: actions that an earlier answer offered."""

    actions = ActionShape(many=True, default=list)


class SubmissionShape(PlacedFileShape):
    """The same, and how it is submitted."""

    keep_original = serializers.BooleanField(
        default=False, help_text="do not apply the fixes that the notes offer"
    )
    like = serializers.SlugField(
        allow_null=True, default=None, help_text="the job that the file was made from, to be linked with it"
    )
    template = serializers.CharField(
        max_length=80,
        allow_null=True,
        default=None,
        help_text="the version of a template that the file comes from, ID@VERSION; its locks hold",
    )


class HoldShape(ApiShape):
    """Why a job is held."""

    reason = serializers.CharField(
        max_length=submission.LONGEST_REASON,
        allow_blank=True,
        default="",
        help_text="why; the job's owner reads it, and only the owner may leave it out",
    )


class JobChangeShape(ApiShape):
    """What of a job can be changed."""

    visibility = serializers.ChoiceField(choices=list(Visibility), required=False)
    description = TextField(required=False, allow_blank=True, max_length=2000)
    tags = serializers.ListField(child=TextField(max_length=255), required=False, max_length=100)


class JobFileShape(ApiShape):
    """The file a job came from, with placeholders for secret values, and its roles in their order."""

    dialect = serializers.CharField()
    text = serializers.CharField()
    roles = serializers.ListField(child=serializers.CharField())


class CheckedShape(ApiShape):
    """What there is to say about a file; `dialect` is null when it is not known, `file` where no actions were
    to be done.
    """

    dialect = serializers.CharField(allow_null=True)
    file = serializers.CharField(allow_null=True, help_text="the file with the actions done")
    ok = serializers.BooleanField()
    problems = ProblemShape(many=True)
    notes = ProblemShape(many=True)


class PriceOfRoleShape(ApiShape):
    """What one replica of a role costs in an hour, in millionths; null is no price set."""

    count = serializers.IntegerField()
    spec = serializers.CharField(allow_null=True, help_text="the size by which it is priced")
    hour_micro = serializers.IntegerField(allow_null=True, source="micro")


class PriceShape(ApiShape):
    """What the job would cost, in millionths; null where anything in it has no price, or no end."""

    billing = serializers.ChoiceField(choices=["as_you_go", "subscription"], source="estimate.billing.value")
    hour_micro = serializers.IntegerField(allow_null=True, source="estimate.hour_micro")
    most_hour_micro = serializers.IntegerField(
        allow_null=True,
        help_text="of preemptible resources, at the most that is bid",
        source="estimate.most_hour_micro",
    )
    limit_seconds = serializers.IntegerField(
        allow_null=True, help_text="the longest running time", source="limit_s"
    )
    limit_micro = serializers.IntegerField(allow_null=True)
    kept_seconds = serializers.IntegerField(
        help_text="for so long it goes on holding resources after its end; 0 on every cluster so far"
    )
    kept_micro = serializers.IntegerField(allow_null=True)
    roles = PriceOfRoleShape(many=True)


class LevelShareShape(ApiShape):
    """One resource under a limit; `free` is what would be left."""

    kind = serializers.CharField(help_text="gpu, a type of GPU, cpu_milli, memory_mib or jobs")
    used = serializers.IntegerField()
    wanted = serializers.IntegerField()
    limit = serializers.IntegerField(allow_null=True)
    free = serializers.IntegerField(allow_null=True)


class LevelShape(ApiShape):
    """A limit under which the job would count: a quota's, or that of one person in it."""

    name = serializers.CharField()
    of = serializers.ChoiceField(choices=["quota", "person"])
    resources = LevelShareShape(many=True)


class WouldStartShape(ApiShape):
    """Why it would wait, or that it starts, in one sentence."""

    code = serializers.CharField()
    message = serializers.CharField()


class QuotaNamedShape(ApiShape):
    """Where it would go."""

    name = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]  # the field of that name


class WouldBeShape(ApiShape):
    """What would become of the job."""

    place = serializers.CharField(help_text="workspace/cluster/quota")
    quota = QuotaNamedShape()
    amounts = serializers.DictField(help_text="cpu_milli, memory_mib and gpus by type: what is reserved")
    starts = serializers.BooleanField()
    reason = WouldStartShape()
    nodes = serializers.ListField(child=serializers.CharField())
    by_engine = serializers.BooleanField(help_text="its cluster's own scheduler decides when it starts")
    jobs = serializers.IntegerField(help_text="for how many jobs the file is: more than one with --array")
    at_once = serializers.IntegerField(help_text="how many of them may run at a time")
    price = PriceShape()
    levels = LevelShape(many=True)


class RoleSentShape(ApiShape):
    """One role as the cluster's backend would be handed it; values of secrets are `***`."""

    role = serializers.CharField()
    replicas = serializers.IntegerField()
    cpu_milli = serializers.IntegerField()
    memory_mib = serializers.IntegerField()
    gpus = serializers.IntegerField()
    gpu_type = serializers.CharField(allow_blank=True)
    shm_mib = serializers.IntegerField()
    image = serializers.CharField(allow_blank=True)
    contained = serializers.BooleanField()
    env = serializers.DictField(help_text="null is a value that is only known at the start")
    mounts = serializers.ListField(child=serializers.ListField(), help_text="place, source, read-only")
    ports = serializers.ListField(child=serializers.ListField(), help_text="label, first port or 0, count")
    script = serializers.CharField()


class SentShape(ApiShape):
    """What the backend would be handed."""

    roles = RoleSentShape(many=True)
    time_limit_s = serializers.IntegerField(allow_null=True)
    grace_s = serializers.IntegerField()


class PreviewShape(ApiShape):
    """What would become of a file; `preview` is null with problems, `sent` where it can't be shown."""

    dialect = serializers.CharField(allow_null=True)
    problems = ProblemShape(many=True)
    preview = WouldBeShape(allow_null=True)
    sent = SentShape(allow_null=True)


class ConversionShape(FileShape):
    """A job file, and the dialect to write it in."""

    to = serializers.ChoiceField(choices=dialects.NAMES)


class ConvertedShape(ApiShape):
    """The file in the other dialect, with placeholders for secret values; `text` is null with problems."""

    dialect = serializers.CharField(allow_null=True, help_text="that the file came in")
    text = serializers.CharField(allow_null=True)
    notes = LossShape(many=True)
    problems = ProblemShape(many=True)


class ReasonShape(ApiShape):
    """Why, as a code and as a sentence in the reader's language."""

    code = serializers.CharField()
    message = serializers.CharField()


class EndpointShape(ApiShape):
    """A port of a replica; `url` opens it through the gateway, for whoever may enter and whose token may.

    `host` and `port` are where it listens inside the cluster's network; `reason` is null once it is `ready`.
    """

    label = serializers.CharField()  # type: ignore[assignment]  # the field of that name
    url = serializers.CharField(allow_null=True)
    host = serializers.CharField()
    port = serializers.IntegerField()
    ready = serializers.BooleanField()
    reason = ReasonShape(allow_null=True)
    origin = serializers.ChoiceField(
        choices=list(PortSource),
        help_text="the file asked for it, the job announced it, or it was found",
        source="source",
    )
    path = serializers.CharField(allow_blank=True, help_text="where the job says to begin")


class ServedShape(EndpointShape):
    """An endpoint, and the replica that serves it."""

    role = serializers.CharField()
    index = serializers.IntegerField()


class MatchShape(ApiShape):
    """A line in which something was found, by the offset of its first byte."""

    offset = serializers.IntegerField()
    text = serializers.CharField()


class MatchesShape(ApiShape):
    """Lines of a log, and where to search on: null once all of it was searched."""

    matches = MatchShape(many=True)
    next_offset = serializers.IntegerField(allow_null=True)


class MergedLineShape(ApiShape):
    """A line of a replica's log; `time` is null where it is not known."""

    replica = serializers.CharField(help_text="ROLE/INDEX")
    rank = serializers.IntegerField()
    offset = serializers.IntegerField()
    time = serializers.DateTimeField(allow_null=True)
    text = serializers.CharField(allow_blank=True)


class MergedLogShape(ApiShape):
    """Lines, and cursors: `before` is null at the beginning.  The first `replicas` of `total` are merged."""

    lines = MergedLineShape(many=True)
    before = serializers.CharField(allow_null=True)
    after = serializers.CharField()
    replicas = serializers.IntegerField()
    total = serializers.IntegerField()
    state = serializers.ChoiceField(choices=["open", "complete"])


class MergedMatchesShape(ApiShape):
    """Lines that were found, and the cursor to go on from; null: all of the `size` bytes were searched."""

    matches = MergedLineShape(many=True)
    next = serializers.CharField(allow_null=True)
    searched = serializers.IntegerField()
    size = serializers.IntegerField()


class ReplicaShape(ApiShape):
    """One replica.  `exit_code` is 128+n after signal n."""

    role = serializers.CharField()
    index = serializers.IntegerField()
    attempt = serializers.IntegerField()
    run = serializers.IntegerField()
    state = serializers.ChoiceField(choices=list(ReplicaState))
    exit_code = serializers.IntegerField(allow_null=True)
    signal = serializers.IntegerField(allow_null=True)
    node = serializers.CharField(allow_blank=True)
    endpoints = EndpointShape(many=True)


class JobShape(ApiShape):
    """A job as everybody in its workspace sees it."""

    id = serializers.CharField(source="public_id")
    name = serializers.CharField()
    state = serializers.ChoiceField(choices=list(State))
    phase = serializers.CharField()
    reason = ReasonShape()
    owner = serializers.CharField(source="owner.username")
    workspace = serializers.CharField(source="workspace.slug")
    cluster = serializers.CharField(source="cluster.slug")
    quota = serializers.CharField(source="quota.slug")
    priority = serializers.IntegerField()
    visibility = serializers.ChoiceField(
        choices=list(Visibility), help_text="`PUBLIC`: every member of the workspace may read it"
    )
    version = serializers.IntegerField(help_text="counts its changes of state")
    attempt = serializers.IntegerField(source="attempt_number")
    run = serializers.IntegerField(source="run_number")
    replicas = serializers.IntegerField(source="replicas_total")
    replicas_running = serializers.IntegerField()
    replicas_failed = serializers.IntegerField()
    gpus = serializers.IntegerField()
    gpu_type = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField(
        allow_null=True, help_text="when it is deleted, with its logs and files: its retention is over"
    )
    idle_since = serializers.DateTimeField(
        allow_null=True, help_text="since when it is known not to use what it holds"
    )

    @classmethod
    def render(cls, row: Job, /, **given: Any) -> dict[str, Any]:
        """Return a row that came with its owner, workspace, cluster and quota, and why it is as it is."""
        why = pending_reasons.reason_of(row)
        given["reason"] = {"code": row.reason_code, "message": messages.reason_message(why.code, why.params)}
        given["idle_since"] = row.idle_since if row.is_idle else None
        return super().render(row, **given)


class AfterShape(ApiShape):
    """A job that this one starts after; `id` and `name` are null where you may not see it."""

    id = serializers.CharField(allow_null=True)
    name = serializers.CharField(allow_null=True)
    when = serializers.ChoiceField(choices=Dependency.When.values)
    state = serializers.ChoiceField(choices=Dependency.State.values)


class FailureShape(ApiShape):
    """The line of output that says why a job failed; `offset` is its first byte in the replica's log."""

    code = serializers.CharField(help_text="what kind of error it is, or the reason's code")
    line = serializers.CharField()
    role = serializers.CharField()
    index = serializers.IntegerField()
    offset = serializers.IntegerField(allow_null=True)


class WholeJobShape(JobShape):
    """With what only those who may read it see: null for the others."""

    description = serializers.CharField(allow_null=True)
    tags = serializers.ListField(child=serializers.CharField(), allow_null=True)
    after = AfterShape(many=True)
    notes = ProblemShape(many=True, allow_null=True)
    tasks = ReplicaShape(many=True, allow_null=True)
    tasks_next = serializers.CharField(allow_null=True, help_text="the address of more replicas")
    failure = FailureShape(allow_null=True)


class EventShape(ApiShape):
    """Something that happened."""

    id = serializers.IntegerField(source="pk")
    at = serializers.DateTimeField()
    kind = serializers.ChoiceField(choices=Event.Kind.choices)
    attempt = serializers.IntegerField()
    actor = serializers.CharField(allow_null=True)
    params = serializers.DictField()


class JobPage(ApiShape):
    """Jobs, newest first, and the address of the next ones."""

    jobs = JobShape(many=True)
    next = serializers.CharField(allow_null=True)


class ReplicaPage(ApiShape):
    """Replicas in their order, and the address of the next ones."""

    replicas = ReplicaShape(many=True)
    next = serializers.CharField(allow_null=True)


class TaskPage(ApiShape):
    """The same as before release 0.2."""

    tasks = ReplicaShape(many=True)
    next = serializers.CharField(allow_null=True)


class EventPage(ApiShape):
    """Events in their order, and the address of the next ones."""

    events = EventShape(many=True)
    next = serializers.CharField(allow_null=True)


def render_replica(row: Replica, attempt: int, opening: Callable[[str], str | None]) -> dict[str, Any]:
    """Return a row that came with its endpoints; `opening` makes a link of an endpoint's slug."""
    ended = ReplicaState(row.state) in REPLICA_TERMINAL
    endpoints = [
        EndpointShape.render(
            endpoint,
            url=None if ended else opening(endpoint.slug),
            ready=endpoint.ready and not ended,
            reason=_lack(endpoint, row),
        )
        for endpoint in row.endpoints.all()
    ]
    return ReplicaShape.render(row, attempt=attempt, endpoints=endpoints)


def _lack(endpoint: Endpoint, row: Replica) -> dict[str, str] | None:
    code = endpoint.lacks(row)
    return {"code": code, "message": endpoint_message(code, endpoint.why_params)} if code else None
