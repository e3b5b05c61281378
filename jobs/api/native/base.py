"""The base of all views of the native API: authentication, scopes, bodies and pages by key."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, cast

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from drf_spectacular.utils import OpenApiParameter
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser, JSONParser
from rest_framework.permissions import BasePermission
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from jobs.api.native import problems, shapes, versions
from jobs.api.native.auth import MissingScope, Scope, TokenAuthentication
from jobs.api.native.rate_limit import RateLimit
from jobs.api.native.sparse_fields import Sparse
from jobs.dialects.base import MAX_BYTES
from jobs.lifecycle.transitions import lock_job
from jobs.models import Job
from jobs.submission.access import find_job
from quotas.access import Verb
from quotas.models import AccessToken, User

MOST: Final = 500
"""A page has at most so many rows."""

AFTER = OpenApiParameter("after", int, description="go on after this key; `next` has it filled in")
MOST_LISTED_BYTES: Final = 32 * MAX_BYTES
"""The list of an uploaded folder's files is at most so long."""

LIMIT = OpenApiParameter("limit", int, description=f"rows of a page; at most {MOST}")

REFUSED: Final = dict.fromkeys((400, 401, 403, 429), shapes.ProblemDetails)
ABSENT: Final = dict.fromkeys((401, 403, 404, 429), shapes.ProblemDetails)


class BoundedJSON(JSONParser):
    """JSON of at most 1 MiB, which is refused before it is read."""

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        return _json_of(stream, MAX_BYTES)


class LargeJSON(BaseParser):
    """JSON of at most `MOST_LISTED_BYTES`: the list of an uploaded folder's files, and nothing else.

    It is no JSONParser, which Django REST framework hands a body that Django has limited for forms.
    """

    media_type = "application/json"

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        return _json_of(stream, MOST_LISTED_BYTES)


class BodyLeftAlone(BaseParser):
    """For a view that takes the body itself, piece by piece: whoever asks for fields on the way finds none.

    Who comes with a session is asked for the token of the form, which is looked for among the fields first.
    """

    media_type = "*/*"

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        return {}


def _json_of(stream: Any, most: int) -> Any:
    body = stream.read(most + 1)
    if len(body) > most:
        raise problems.BodyTooLarge(most)
    try:
        value = json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ParseError(f"This is no JSON: {error}") from error
    _check_characters(value)
    return value


def _check_characters(value: Any) -> None:
    """Refuse what no database and no answer can hold; a job file is told with its places instead."""
    fields = (
        {key: inner for key, inner in value.items() if key != "file"} if isinstance(value, dict) else value
    )
    try:
        text = json.dumps(fields, ensure_ascii=False)
        text.encode()
    except (UnicodeEncodeError, RecursionError) as error:
        raise ParseError("A text in it has half of a surrogate pair, which is no character.") from error
    if "\\u0000" in text:
        raise ParseError("A text in it has a null character.")


class AlwaysJSON(BaseContentNegotiation):
    """JSON whatever `Accept` says: there is nothing else, and a 406 would help nobody."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], renderers[0].media_type


class NativeView(APIView):
    """Token or session; problem details; the scope that the method needs (`scopes`, else `read`).

    `sparse` says which fields of a GET can be selected; with `has_versions` changes heed If-Match.
    """

    authentication_classes: Sequence[type[BaseAuthentication]] = (
        TokenAuthentication,
        SessionAuthentication,
    )
    permission_classes: Sequence[type[BasePermission]] = (Scope,)
    parser_classes: Sequence[type[BaseParser]] = (BoundedJSON,)
    throttle_classes: Sequence[type[BaseThrottle]] = (RateLimit,)
    content_negotiation_class = AlwaysJSON
    scopes: ClassVar[dict[str, str]] = {}
    sparse: ClassVar[Sparse | None] = None
    has_versions: ClassVar[bool] = False
    version: int | None = None
    """The version of the object that a GET answers."""

    _selected: frozenset[str] | None = None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer a request; a change under If-Match in one transaction, so that nothing comes between."""
        if "If-Match" in request.headers and request.method not in versions.SAFE:
            with transaction.atomic():
                return super().dispatch(request, *args, **kwargs)
        return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check who calls and how, before the method runs."""
        super().initial(request, *args, **kwargs)
        if request.method in versions.SAFE:
            self._selected = self.sparse.select(request.query_params) if self.sparse else None
        elif "If-Match" in request.headers and not self.has_versions:
            raise versions.PreconditionFailed(versioned=False)

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Any:
        """Select the fields of an answer, and give it a tag; files and streams are left as they are."""
        answer: HttpResponseBase = super().finalize_response(request, response, *args, **kwargs)
        if isinstance(answer, Response) and request.method in versions.SAFE and answer.status_code == 200:
            if self.sparse and self._selected is not None:
                answer.data = self.sparse.prune(answer.data, self._selected)
            versions.add_tag(answer, request._request, self.version)  # noqa: SLF001  # Django's own request
        return answer

    def get_exception_handler(self) -> Any:
        return problems.handle

    @property
    def person(self) -> User:
        """The caller; Scope refuses everybody else."""
        return cast("User", self.request.user)

    def allows(self, scope: str) -> bool:
        """Whether the caller came with that scope; a session has all of them."""
        token = self.request.auth
        return token is None or (isinstance(token, AccessToken) and scope in token.scopes)

    def job(self, public_id: str, verb: Verb) -> Job:
        """The job, for `verb`; raises Http404, PermissionDenied or MissingScope.

        A right that comes from managing a workspace, rather than from owning the job, needs `admin` too.
        """
        job = find_job(self.person, public_id, verb)
        mine = job.owner_id == self.person.pk or (verb is Verb.READ and job.is_public)
        if verb is not Verb.LIST and not mine and not self.allows("admin"):
            raise MissingScope("admin")
        if verb is not Verb.LIST and self.if_match:
            versions.require_version(self.if_match, lock_job(job.pk).version)
        return job

    @property
    def if_match(self) -> str:
        """The tags of an object that is changed only if it has one of them; empty without a condition."""
        is_change = self.has_versions and self.request.method not in versions.SAFE
        return self.request.headers.get("If-Match", "") if is_change else ""

    def number(self, name: str, default: int, most: int | None = None) -> int:
        """The whole number of a query parameter; raises ValidationError."""
        text = self.request.query_params.get(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise ValidationError({name: [problems.not_a_number()]})
        return min(int(text), most) if most is not None else int(text)

    def page(self, rows: QuerySet[Any], size: int, key: str = "pk") -> tuple[list[Any], str | None]:
        """Return at most `limit` of `rows`, by default `size`, and the address of what follows by `key`."""
        limit = self.limit(size)
        return self.cut(list(rows[: limit + 1]), limit, key)

    def limit(self, size: int) -> int:
        """Return how many rows a page has, by default `size`."""
        return max(1, self.number("limit", size, MOST))

    def cut(self, found: list[Any], limit: int, key: str = "pk") -> tuple[list[Any], str | None]:
        """Return at most `limit` of the rows found, one more than that where there are more, likewise."""
        if len(found) <= limit:
            return found, None
        return found[:limit], self.address_after(getattr(found[limit - 1], key))

    def address_after(self, key: object) -> str:
        """Return the address of what follows the row of a key."""
        query = self.request.query_params.copy()
        query["after"] = str(key)
        return self.request.build_absolute_uri(f"{self.request.path}?{query.urlencode()}")
