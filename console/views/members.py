"""The members of a workspace: who is in it and as what, whom one invites, and its service accounts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from allauth.account.adapter import get_adapter
from django.conf import settings
from django.contrib import messages as notes
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from console.addresses import absolute
from console.sign_in import invitations as invited
from console.sign_in.confirmation import request_confirmation
from console.views import shown_keys
from console.views.memberforms import InviteForm, ServiceForm, ServiceKeyForm, ServiceTokenForm
from jobs.web import one_time_values
from jobs.web.http import SignedIn, page, signed_in
from quotas import egress
from quotas.access import Verb, can, workspaces_of
from quotas.accounts import access_keys, groups, invitations, members, services, tokens
from quotas.accounts.members import Refused
from quotas.models import AccessKey, AccessToken, Membership, Role, ServiceAccount, User, Workspace

REASONS: Final = {
    "right": gettext_lazy("Only managers of the workspace can do this."),
    "role": gettext_lazy("Only workspace admins can assign or change the admin role."),
    "groups": gettext_lazy("This membership comes from a group. Change it in the directory."),
    "last_admin": gettext_lazy(
        "This would leave nobody to manage the workspace. Repeat the action to confirm."
    ),
}


def _workspace(request: SignedIn, slug: str, verb: Verb) -> Workspace:
    """Strangers do not learn that there is such a workspace; members get a 403."""
    workspace = workspaces_of(request.user).filter(slug=slug).first()
    if workspace is None:
        raise Http404
    if not can(request.user, verb, workspace):
        raise PermissionDenied(_("Only managers of the workspace can do this."))
    return workspace


@require_safe
@signed_in
def members_page(request: SignedIn, slug: str) -> HttpResponseBase:
    """Every member sees who else is there; whoever keeps the workspace changes it."""
    return _page(request, _workspace(request, slug, Verb.LIST))


def _page(request: SignedIn, workspace: Workspace, *, status: int = 200, **more: Any) -> HttpResponse:
    roles = members.roles_to_give(request.user, workspace)
    people = workspace.memberships.filter(user__kind=User.Kind.PERSON).select_related("user")
    context: dict[str, Any] = {
        "workspace": workspace,
        "egress": egress.describe(workspace.egress),
        "can_change_egress": request.user.is_staff and request.user.has_perm("quotas.change_workspace"),
        "roles": roles,
        "rows": [
            {
                "row": row,
                "groups": groups.behind(row),
                "may": not row.by_groups and row.role in roles,
                "mine": row.user_id == request.user.pk and not row.by_groups,
            }
            for row in people.order_by("user__username")
        ],
    }
    if roles:
        tokens_of = AccessToken.objects.filter(revoked_at=None)
        keys_of = AccessKey.objects.filter(revoked_at=None)
        context |= {
            "made_link": one_time_values.pop(request, _link(workspace)),
            "made_token": one_time_values.pop(request, _token_name(workspace)),
            "made_key": shown_keys.pop(request, _key_name(workspace)),
            "invite_form": InviteForm(roles=roles),
            "service_form": ServiceForm(roles=roles),
            "token_form": ServiceTokenForm(),
            "key_form": ServiceKeyForm(),
            "waiting": invitations.open_invitations(workspace),
            "can_mail": bool(settings.CONSOLE_MAIL),
            "services": [
                {
                    "row": row,
                    "tokens": tokens_of.filter(user=row.user_id),
                    "keys": keys_of.filter(user=row.user_id),
                }
                for row in workspace.service_accounts.select_related("user", "made_by")
            ],
        }
    return page(request, "console/members.html", {**context, **more}, status=status)


@require_POST
@signed_in
def change_member(request: SignedIn, slug: str, pk: int) -> HttpResponseBase:
    """Another role, or out; `sure` says that the warning was read."""
    workspace = _workspace(request, slug, Verb.LIST)
    row = workspace.memberships.select_related("workspace", "user").filter(pk=pk).first()
    if row is None:
        raise Http404
    if row.user_id != request.user.pk:
        _workspace(request, slug, Verb.MANAGE)
    knowing = request.POST.get("sure") == str(pk)
    try:
        _change(request, row, knowing=knowing)
    except Refused as refused:
        notes.error(request, REASONS[refused.code])
        sure = pk if refused.code == "last_admin" else None
        return _page(request, workspace, sure=sure, status=409)
    still = workspaces_of(request.user).filter(pk=workspace.pk).exists()
    return redirect("members", slug) if still else redirect("home")


def _change(request: SignedIn, row: Membership, *, knowing: bool) -> None:
    role = request.POST.get("role", "")
    if not role:
        members.remove(request.user, row, knowing=knowing)
        notes.success(request, _("%(name)s is no longer a member.") % {"name": row.user})
    elif role in Role.values:
        members.change_role(request.user, row, Role(role), knowing=knowing)
        notes.success(request, _("The role was changed."))


# --- Invitations ------------------------------------------------------------------------------------------


@require_POST
@signed_in
def invite(request: SignedIn, slug: str) -> HttpResponseBase:
    """Invite by e-mail, or by a link that the page of members shows, this once."""
    workspace = _workspace(request, slug, Verb.MANAGE)
    form = InviteForm(request.POST, roles=members.roles_to_give(request.user, workspace))
    if not form.is_valid():
        return _page(request, workspace, invite_form=form, status=422)
    email = form.cleaned_data["email"]
    mailed = bool(email and settings.CONSOLE_MAIL)
    role = Role(form.cleaned_data["role"])
    invitation, secret = invitations.invite(request.user, workspace, role, email=email, mailed=mailed)
    link = absolute(reverse("invitation", args=[secret]))
    if not mailed:
        one_time_values.store(request, _link(workspace), link)
        return redirect("members", slug)
    about = {"invitation": invitation, "link": link, "by": request.user}
    get_adapter(request).send_mail("console/email/invitation", email, about)
    notes.success(request, _("The invitation was sent to %(address)s.") % {"address": email})
    return redirect("members", slug)


@require_POST
@signed_in
def revoke_invitation(request: SignedIn, slug: str, pk: int) -> HttpResponseBase:
    """The link no longer works."""
    if not invitations.revoke(_workspace(request, slug, Verb.MANAGE), pk):
        raise Http404
    notes.success(request, _("The invitation was withdrawn."))
    return redirect("members", slug)


@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, secret: str) -> HttpResponseBase:
    """Show an invitation: signed-in users join by a button, others sign in or register first."""
    found = invitations.find(secret)
    if found is None:
        raise Http404
    if not isinstance(request.user, User):
        invited.hold(request, secret)
        return redirect("login")
    if request.method == "POST":
        invitations.accept(found, request.user)
        notes.success(request, _("You are now a member of %(workspace)s.") % {"workspace": found.workspace})
        return redirect("home")
    return page(request, "console/invitation.html", {"invitation": found})  # type: ignore[arg-type]  # signed in


# --- Service accounts -------------------------------------------------------------------------------------


def _service(workspace: Workspace, pk: int) -> ServiceAccount:
    found = workspace.service_accounts.select_related("user").filter(pk=pk).first()
    if found is None:
        raise Http404
    return found


@require_POST
@signed_in
def new_service(request: SignedIn, slug: str) -> HttpResponseBase:
    """A script gets a name."""
    workspace = _workspace(request, slug, Verb.MANAGE)
    form = ServiceForm(request.POST, roles=members.roles_to_give(request.user, workspace))
    if not form.is_valid():
        return _page(request, workspace, service_form=form, status=422)
    data = form.cleaned_data
    services.make(
        request.user,
        workspace,
        data["username"],
        role=Role(data["role"]),
        contact=data["contact"],
        about=data["about"],
    )
    notes.success(request, _("Service account created. Create a token or an access key for it next."))
    return redirect("members", slug)


@require_POST
@signed_in
def change_service(request: SignedIn, slug: str, pk: int) -> HttpResponseBase:
    """Disable it, or enable it again."""
    account = _service(_workspace(request, slug, Verb.MANAGE), pk)
    active = request.POST.get("do") == "enable"
    services.set_active(account, active=active)
    text = (
        _("Service account enabled.")
        if active
        else _("Service account disabled. Its tokens and access keys are rejected.")
    )
    notes.success(request, text)
    return redirect("members", slug)


@require_POST
@signed_in
def new_service_token(request: SignedIn, slug: str, pk: int) -> HttpResponseBase:
    """Make a token; the page of members shows it, this once."""
    workspace = _workspace(request, slug, Verb.MANAGE)
    account = _service(workspace, pk)
    if (elsewhere := request_confirmation(request)) is not None:
        return elsewhere
    form = ServiceTokenForm(request.POST)
    if not form.is_valid():
        return _page(request, workspace, token_form=form, status=422)
    made = tokens.issue(
        account.user,
        name=account.user.get_username(),
        scopes=form.cleaned_data["scopes"],
        lifetime=timedelta(days=form.cleaned_data["days"]),
    )
    one_time_values.store(request, _token_name(workspace), made)
    return redirect("members", slug)


def _link(workspace: Workspace) -> str:
    """The name of an invitation's link, for `once`."""
    return f"invitation to workspace {workspace.pk}"


def _token_name(workspace: Workspace) -> str:
    """The name of a service account's new token, for `once`."""
    return f"token of workspace {workspace.pk}"


@require_POST
@signed_in
def revoke_service_token(request: SignedIn, slug: str, pk: int, token: int) -> HttpResponseBase:
    """End a token of a service account."""
    if not services.revoke_token(_service(_workspace(request, slug, Verb.MANAGE), pk), token):
        raise Http404
    notes.success(request, _("Token revoked. Requests with this token are now rejected."))
    return redirect("members", slug)


@require_POST
@signed_in
def new_service_key(request: SignedIn, slug: str, pk: int) -> HttpResponseBase:
    """Create an access key; the page of members shows it, this once."""
    workspace = _workspace(request, slug, Verb.MANAGE)
    account = _service(workspace, pk)
    if (elsewhere := request_confirmation(request)) is not None:
        return elsewhere
    form = ServiceKeyForm(request.POST)
    if not form.is_valid():
        return _page(request, workspace, key_form=form, status=422)
    issued = access_keys.issue(
        account.user,
        name=account.user.get_username(),
        scopes=form.cleaned_data["scopes"],
        lifetime=form.lifetime,
    )
    shown_keys.store(request, _key_name(workspace), issued)
    return redirect("members", slug)


@require_POST
@signed_in
def rotate_service_key(request: SignedIn, slug: str, pk: int, key: int) -> HttpResponseBase:
    """Create an access key in the place of another one of the account's, which works one more day."""
    workspace = _workspace(request, slug, Verb.MANAGE)
    account = _service(workspace, pk)
    if (elsewhere := request_confirmation(request)) is not None:
        return elsewhere
    issued = services.rotate_key(account, key)
    if issued is None:
        raise Http404
    shown_keys.store(request, _key_name(workspace), issued)
    notes.success(request, _("Key rotated. The previous key works for one more day."))
    return redirect("members", slug)


@require_POST
@signed_in
def revoke_service_key(request: SignedIn, slug: str, pk: int, key: int) -> HttpResponseBase:
    """End an access key of a service account."""
    if not services.revoke_key(_service(_workspace(request, slug, Verb.MANAGE), pk), key):
        raise Http404
    notes.success(request, _("Key revoked. Requests signed with this key are now rejected."))
    return redirect("members", slug)


def _key_name(workspace: Workspace) -> str:
    """Return the name of a service account's new access key, for `one_time_values`."""
    return f"access key of workspace {workspace.pk}"
