"""The caller's own account over the native API: who they are, tokens, SSH keys, secrets."""

from __future__ import annotations

from typing import Final

from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.access import sshkeys
from jobs.api.native import shapes
from jobs.api.native.base import ABSENT, REFUSED, NativeView
from jobs.api.native.idempotency import IDEMPOTENCY_KEY, idempotent
from jobs.assets import personal_secrets
from jobs.messages.ssh import key_message
from jobs.models import PersonalSecret, SshKey
from quotas.accounts import tokens
from quotas.models import AccessToken, Membership, Role

CREATED: Final = {
    **dict.fromkeys((409, 413), shapes.ProblemDetails),
    **REFUSED,
}


class MembershipShape(shapes.ApiShape):
    """A workspace of the caller, and their role in it."""

    workspace = serializers.CharField(source="workspace.slug")
    name = serializers.CharField(source="workspace.title")
    role = serializers.ChoiceField(Role.values)


class AccountShape(shapes.ApiShape):
    """The caller; `scopes` are those of the token, null for a session."""

    username = serializers.CharField()
    is_admin = serializers.BooleanField(source="is_superuser")
    scopes = serializers.ListField(child=serializers.CharField(), allow_null=True)
    workspaces = MembershipShape(many=True)


class TokenShape(shapes.ApiShape):
    """An access token that works, without the token itself."""

    id = serializers.IntegerField(source="pk")
    name = serializers.CharField(allow_blank=True)
    prefix = serializers.CharField(help_text="how the token begins")
    scopes = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)


class TokensShape(shapes.ApiShape):
    """The caller's access tokens."""

    tokens = TokenShape(many=True)


class NewKeyShape(shapes.ApiShape):
    """A public key, the line of a `.pub` file."""

    text = shapes.TextField(max_length=sshkeys.LONGEST)
    title = shapes.TextField(max_length=100, allow_blank=True, default="")


class KeyShape(shapes.ApiShape):
    """An SSH key of the caller; `job` names the only job that it opens, if it was made for one."""

    id = serializers.IntegerField(source="pk")
    title = serializers.CharField()
    algorithm = serializers.CharField()
    fingerprint = serializers.CharField()
    job = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)


class KeysShape(shapes.ApiShape):
    """The caller's SSH keys."""

    keys = KeyShape(many=True)


class SecretShape(shapes.ApiShape):
    """A secret's name; its value is never shown."""

    name = serializers.CharField()
    created_at = serializers.DateTimeField()


class SecretsShape(shapes.ApiShape):
    """The caller's secrets."""

    secrets = SecretShape(many=True)


class SecretValueShape(shapes.ApiShape):
    """The value of a secret."""

    value = shapes.TextField(trim_whitespace=False, max_length=personal_secrets.LONGEST, write_only=True)


class Account(NativeView):
    """The caller."""

    @extend_schema(operation_id="me", responses={200: AccountShape, **REFUSED})
    def get(self, request: Request) -> Response:
        """Return who calls, with which scopes, and their workspaces."""
        rows = Membership.objects.filter(user=self.person).select_related("workspace").order_by("pk")
        token = request.auth
        return Response(
            AccountShape.render(
                self.person,
                scopes=token.scopes if isinstance(token, AccessToken) else None,
                workspaces=[MembershipShape.render(row) for row in rows],
            )
        )


class Tokens(NativeView):
    """The caller's access tokens.  New ones are created in the settings, after a confirmation."""

    @extend_schema(operation_id="tokens_list", responses={200: TokensShape, **REFUSED})
    def get(self, request: Request) -> Response:
        """List the tokens that are not revoked."""
        rows = AccessToken.objects.filter(user=self.person, revoked_at=None).order_by("-pk")
        return Response({"tokens": [TokenShape.render(row) for row in rows]})


class OneToken(NativeView):
    """One token."""

    scopes = {"DELETE": "admin"}

    @extend_schema(operation_id="tokens_revoke", responses={204: None, **ABSENT})
    def delete(self, request: Request, token: int) -> Response:
        """Revoke it now, even the one that calls."""
        if not tokens.revoke(self.person, token):
            raise Http404
        return Response(status=204)


class Keys(NativeView):
    """The caller's SSH keys."""

    scopes = {"POST": "admin"}

    @extend_schema(operation_id="ssh_keys_list", responses={200: KeysShape, **REFUSED})
    def get(self, request: Request) -> Response:
        """List them, the newest first."""
        rows = SshKey.objects.filter(user=self.person).select_related("job").order_by("-pk")
        return Response({"keys": [_render_key(row) for row in rows]})

    @extend_schema(
        operation_id="ssh_keys_add",
        request=NewKeyShape,
        parameters=[IDEMPOTENCY_KEY],
        responses={201: KeyShape, 200: KeyShape, **CREATED},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Add a key, with a token: a session has to confirm itself in the settings first."""
        if not isinstance(request.auth, AccessToken):
            raise PermissionDenied(_("Add SSH keys in the settings, or with an access token."))
        data = NewKeyShape.parse(request.data)
        try:
            key = sshkeys.add(self.person, data["text"], data["title"])
        except sshkeys.BadKey as bad:
            raise ValidationError(
                {"text": [ErrorDetail(key_message(bad.code, bad.params), bad.code)]}
            ) from bad
        key.refresh_from_db()
        return Response(_render_key(key), status=201)


class OneKey(NativeView):
    """One SSH key."""

    scopes = {"DELETE": "admin"}

    @extend_schema(operation_id="ssh_keys_remove", responses={204: None, **ABSENT})
    def delete(self, request: Request, key: int) -> Response:
        """Remove it; connections that use it are closed."""
        if not sshkeys.remove(self.person, key):
            raise Http404
        return Response(status=204)


class Secrets(NativeView):
    """The caller's secrets, by name."""

    @extend_schema(operation_id="secrets_list", responses={200: SecretsShape, **REFUSED})
    def get(self, request: Request) -> Response:
        """List their names."""
        rows = PersonalSecret.objects.filter(owner=self.person).order_by("name")
        return Response({"secrets": [SecretShape.render(row) for row in rows]})


class OneSecret(NativeView):
    """One secret."""

    scopes = {"PUT": "submit", "DELETE": "submit"}

    @extend_schema(
        operation_id="secrets_save",
        request=SecretValueShape,
        responses={200: SecretShape, 201: SecretShape, **CREATED, **ABSENT},
    )
    def put(self, request: Request, name: str) -> Response:
        """Save its value; jobs that start from now on get the new one."""
        value = SecretValueShape.parse(request.data)["value"].replace("\r\n", "\n")
        if not personal_secrets.NAME.fullmatch(name) or len(name) > 100:
            text = _("Letters, digits and _ only; can't start with a digit.")
            raise ValidationError({"name": [ErrorDetail(text, code="invalid")]})
        try:
            is_new = personal_secrets.keep(self.person, name, value)
        except personal_secrets.TooMany as error:
            text = _("Limit of %(most)s secrets reached. Remove one first.")
            raise ValidationError({"name": [text % {"most": personal_secrets.MOST}]}) from error
        row = PersonalSecret.objects.get(owner=self.person, name=name)
        return Response(SecretShape.render(row), status=201 if is_new else 200)

    @extend_schema(operation_id="secrets_remove", responses={204: None, **ABSENT})
    def delete(self, request: Request, name: str) -> Response:
        """Remove it; jobs that name it are rejected from now on."""
        row = PersonalSecret.objects.filter(owner=self.person, name=name).first()
        if row is None or not personal_secrets.remove(self.person, row.pk):
            raise Http404
        return Response(status=204)


def _render_key(row: SshKey) -> dict[str, object]:
    return KeyShape.render(row, job=row.job.public_id if row.job else None)
