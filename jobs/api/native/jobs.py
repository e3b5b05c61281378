"""Jobs over the native API: list, submit, read, stop, delete."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.db.models import Q
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import submission
from jobs.api.native import problems, shapes
from jobs.api.native.base import ABSENT, AFTER, LIMIT, REFUSED, NativeView
from jobs.api.native.idempotency import IDEMPOTENCY_KEY, REPLAYED, key_of
from jobs.api.native.parts import first_replicas
from jobs.api.native.sparse_fields import FIELDS, Sparse
from jobs.api.native.versions import IF_MATCH, IF_NONE_MATCH
from jobs.dialects.base import Note, Refused
from jobs.dialects.document import Document
from jobs.fault_tolerance.decisions import Fault
from jobs.lifecycle import failure_lines, pending_reasons
from jobs.messages.searches import query_message
from jobs.models import Attempt, Job, JobFile, Visibility
from jobs.search.job_pages import EVERY, JobListing, first_keys, load_jobs
from jobs.search.query import JobQuery, Term, parse
from jobs.states import State
from jobs.submission import dependencies, tags
from jobs.submission.checks.findings import notes_of, stored_notes
from quotas.access import Verb, rights

PAGE: Final = 50


class Jobs(NativeView):
    """All jobs one may see, and submission."""

    scopes = {"POST": "submit"}
    sparse = Sparse(shapes.JobShape, "jobs")

    @extend_schema(
        operation_id="jobs_list",
        parameters=[
            AFTER,
            LIMIT,
            OpenApiParameter("state", str, many=True, enum=[state.value for state in State]),
            OpenApiParameter("owner", str, description="`me`, or a user name"),
            OpenApiParameter("workspace", str),
            OpenApiParameter("name", str, description="the whole name"),
            OpenApiParameter("q", str, description="a query line, such as `state:failed gpu>4`"),
            FIELDS,
            IF_NONE_MATCH,
        ],
        responses={200: shapes.JobPage, 304: None, **REFUSED},
    )
    def get(self, request: Request) -> Response:
        """Newest first, by keys: the hundredth page costs what the first does.

        A search that no index answers ends after a time: its page may have fewer jobs than `limit`, or none,
        and `next` goes on.  Where `next` is null everything was searched.
        """
        query = self._read_query()
        name = request.query_params.get("name")
        extra = Q(name=name) if name else EVERY
        limit = self.limit(PAGE)
        listing = JobListing(query, after=self.number("after", 0) or None)
        is_indexed = bool(name) and [term.key for term in query.terms] == ["owner"]
        found = first_keys(
            self.person,
            listing,
            limit + 1,
            descending=True,
            extra=extra,
            is_limited=not is_indexed,
        )
        page, following = self.cut(load_jobs(found.keys), limit)
        if following is None and found.searched_to is not None:
            following = self.address_after(found.searched_to)
        pending_reasons.load_reasons(page)
        load_failures(self, page)
        return Response({"jobs": [shapes.JobShape.render(row) for row in page], "next": following})

    def _read_query(self) -> JobQuery:
        """Return the query line with the parameters of their own.  Raises ValidationError."""
        given = self.request.query_params
        query = parse(given.get("q", ""))
        if query.problems:
            errors = [ErrorDetail(query_message(each), each.code) for each in query.problems]
            raise ValidationError({"q": errors})
        more = [Term("state", state.lower()) for state in given.getlist("state")]
        more += [Term(key, value) for key in ("owner", "workspace") if (value := given.get(key))]
        return JobQuery((*query.terms, *more))

    @extend_schema(
        operation_id="jobs_submit",
        request=shapes.SubmissionShape,
        parameters=[IDEMPOTENCY_KEY],
        responses={
            201: shapes.WholeJobShape,
            200: OpenApiResponse(shapes.WholeJobShape, description="The same request came before."),
            409: shapes.ProblemDetails,
            413: shapes.ProblemDetails,
            **REFUSED,
        },
    )
    def post(self, request: Request) -> Response:
        """Submit a job file."""
        data = shapes.SubmissionShape.parse(request.data)
        origin = self.job(data["like"], Verb.READ) if data["like"] else None
        document = Document(data["file"], data["dialect"])
        try:
            done = submission.submit(
                self.person,
                document,
                place=submission.JobTarget(*(data[name] or "" for name in ("workspace", "cluster", "quota"))),
                idempotency_key=key_of(self),
                keep_original=data["keep_original"],
                origin=origin,
                template=data["template"] or "",
            )
        except Refused as refused:
            return problems.refuse_file(data["file"], refused.problems)
        if done.replayed:
            return Response(whole(self, done.job), headers=REPLAYED)
        body = shapes.WholeJobShape.render(
            done.job,
            after=after(self, done.job) if done.waits else [],
            tags=tags.tags_of(done.job) if done.has_tags else [],
            notes=render_notes(document, done.notes),
            tasks=[],
            tasks_next=None,
            failure=None,
        )
        return Response(body, status=201, headers={"Location": address(self, done.job)})


class OneJob(NativeView):
    """One job."""

    scopes = {"PATCH": "submit", "DELETE": "stop"}
    sparse = Sparse(shapes.WholeJobShape)
    has_versions = True

    @extend_schema(
        operation_id="jobs_read",
        parameters=[FIELDS, IF_NONE_MATCH],
        responses={200: shapes.WholeJobShape, 304: None, **REFUSED, **ABSENT},
    )
    def get(self, request: Request, public_id: str) -> Response:
        """The job; its notes and replicas are null for whoever may not read them."""
        job = self.job(public_id, Verb.LIST)
        self.version = job.version
        return Response(whole(self, job))

    @extend_schema(
        operation_id="jobs_change",
        request=shapes.JobChangeShape,
        parameters=[IF_MATCH],
        responses={200: shapes.WholeJobShape, 412: shapes.ProblemDetails, **REFUSED, **ABSENT},
    )
    def patch(self, request: Request, public_id: str) -> Response:
        """Share the job with its workspace or keep it private; set its description and tags."""
        job = self.job(public_id, Verb.CONTROL)
        data = shapes.JobChangeShape.parse(request.data)
        if "visibility" in data:
            submission.share(self.person, job, Visibility(data["visibility"]))
        if data.keys() & {"description", "tags"}:
            names = data.get("tags", tags.tags_of(job))
            tags.relabel(self.person, job, data.get("description", job.description), names)
        return Response(whole(self, self.job(public_id, Verb.LIST)))

    @extend_schema(
        operation_id="jobs_delete",
        parameters=[IF_MATCH],
        responses={204: None, **dict.fromkeys((409, 412), shapes.ProblemDetails), **ABSENT},
    )
    def delete(self, request: Request, public_id: str) -> Response:
        """Take an ended job off every page."""
        submission.delete(self.person, self.job(public_id, Verb.CONTROL))
        return Response(status=204)


class JobFileView(NativeView):
    """The file a job came from."""

    @extend_schema(operation_id="jobs_file", responses={200: shapes.JobFileShape, **ABSENT})
    def get(self, request: Request, public_id: str) -> Response:
        """As it was submitted, but for secret values."""
        job = self.job(public_id, Verb.READ)
        file = JobFile.objects.get(job=job)
        roles = [role.name for role in file.spec.roles]
        return Response({"dialect": job.dialect, "text": file.text, "roles": roles})


def address(view: NativeView, job: Job) -> str:
    """Return the job's address."""
    return view.request.build_absolute_uri(reverse("api_job", kwargs={"public_id": job.public_id}))


def whole(view: NativeView, job: Job) -> dict[str, Any]:
    """WholeJobShape: the job, with its notes and first replicas for those who may read it."""
    pending_reasons.load_reasons([job])
    load_failures(view, [job])
    may = rights(view.person, job)
    if Verb.READ not in may or not _is_open_to_token(view, job):
        notes, replicas, more = None, None, None
    else:
        file = JobFile.objects.get(job=job)
        notes = render_notes(Document(file.text, job.dialect), stored_notes(file))
        replicas, more = first_replicas(view, job, enter=Verb.ENTER in may)
    may_read = notes is not None
    return shapes.WholeJobShape.render(
        job,
        after=after(view, job),
        description=job.description if may_read else None,
        tags=tags.tags_of(job) if may_read else None,
        notes=notes,
        tasks=replicas,
        tasks_next=more,
        failure=_failure(job) if may_read and job.is_ended else None,
    )


def load_failures(view: NativeView, rows: Iterable[Job]) -> None:
    """Set the reasons of the failed ones of `rows`, with a line of output where the token may read it."""
    failure_lines.load_failures(view.person, [row for row in rows if _is_open_to_token(view, row)])


def _is_open_to_token(view: NativeView, job: Job) -> bool:
    return job.owner_id == view.person.pk or job.is_public or view.allows("admin")


def _failure(job: Job) -> dict[str, Any] | None:
    """Return FailureShape of the job's attempt; None where no line of output says why it failed."""
    attempt = Attempt.objects.filter(job=job, number=job.attempt_number, fault__isnull=False).first()
    fault = Fault.from_json(attempt.fault) if attempt and attempt.fault else None
    return shapes.FailureShape.render(fault) if fault and fault.line else None


def after(view: NativeView, job: Job) -> list[dict[str, Any]]:
    """Render the jobs that this one starts after, as far as the person may see them."""
    return [
        shapes.AfterShape.render(link, id=link.job and link.job.public_id, name=link.job and link.job.name)
        for link in dependencies.list_dependencies(view.person, job)
    ]


def render_notes(document: Document, notes: Iterable[Note]) -> list[dict[str, Any]]:
    """Return the notes of a submission in the reader's language, as JSON."""
    rows = tuple(notes)
    return [note.to_json() for note in notes_of(document, rows)] if rows else []
