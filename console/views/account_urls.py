"""The addresses of signing in: django-allauth's views, under the names that it looks for."""

from __future__ import annotations

from allauth.account import views as account
from allauth.mfa.base import views as factor
from allauth.mfa.recovery_codes import views as codes
from allauth.mfa.totp import views as app
from allauth.mfa.webauthn import views as key
from allauth.socialaccount import views as social
from django.urls import path, re_path

from console.sign_in.confirmation import require_confirmation
from console.sign_in.oidc import views as oidc
from console.views import break_glass as glass
from console.views import members, sign_in

urlpatterns = [
    path("sign-in", sign_in.sign_in, name="login"),
    path("sign-in", sign_in.sign_in, name="account_login"),
    path("sign-out", sign_in.sign_out, name="logout"),
    path("sign-out", sign_in.sign_out, name="account_logout"),
    path("join", account.signup, name="account_signup"),
    path("sign-in/inactive", account.account_inactive, name="account_inactive"),
    path("sign-in/again", account.reauthenticate, name="account_reauthenticate"),
    path("sign-in/again/code", factor.reauthenticate, name="mfa_reauthenticate"),
    path("sign-in/again/key", key.reauthenticate_webauthn, name="mfa_reauthenticate_webauthn"),
    path("sign-in/code", factor.authenticate, name="mfa_authenticate"),
    path("sign-in/passkey", key.login_webauthn, name="mfa_login_webauthn"),
    path("sign-in/confirm", account.email_verification_sent, name="account_email_verification_sent"),
    path("sign-in/confirm/<str:key>", account.confirm_email, name="account_confirm_email"),
    path("sign-in/reset", sign_in.reset, name="account_reset_password"),
    path("sign-in/reset/sent", account.password_reset_done, name="account_reset_password_done"),
    path(
        "sign-in/reset/done",
        account.password_reset_from_key_done,
        name="account_reset_password_from_key_done",
    ),
    re_path(
        r"^sign-in/reset/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>[^/]+)$",
        account.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    path("sign-in/break-glass/<slug:uid>/<slug:token>", glass.break_glass, name="break_glass"),
    path("sign-in/with/cancelled", social.login_cancelled, name="socialaccount_login_cancelled"),
    path("sign-in/with/failed", social.login_error, name="socialaccount_login_error"),
    path("sign-in/with/join", social.signup, name="socialaccount_signup"),
    path("sign-in/with/<slug:provider>", oidc.login, name="oidc_login"),
    path("sign-in/with/<slug:provider>/back", oidc.callback, name="oidc_callback"),
    path("sign-in/with/<slug:provider>/ended", oidc.back_channel, name="oidc_ended"),
    path("invitations/<str:secret>", members.invitation, name="invitation"),
    path("workspaces/<slug:slug>/members", members.members_page, name="members"),
    path("workspaces/<slug:slug>/members/<int:pk>", members.change_member, name="member_change"),
    path("workspaces/<slug:slug>/invitations", members.invite, name="invite"),
    path(
        "workspaces/<slug:slug>/invitations/<int:pk>/revoke",
        members.revoke_invitation,
        name="invitation_revoke",
    ),
    path("workspaces/<slug:slug>/services", members.new_service, name="service_new"),
    path("workspaces/<slug:slug>/services/<int:pk>", members.change_service, name="service_change"),
    path(
        "workspaces/<slug:slug>/services/<int:pk>/tokens",
        members.new_service_token,
        name="service_token_new",
    ),
    path(
        "workspaces/<slug:slug>/services/<int:pk>/tokens/<int:token>/revoke",
        members.revoke_service_token,
        name="service_token_revoke",
    ),
    path("workspaces/<slug:slug>/services/<int:pk>/keys", members.new_service_key, name="service_key_new"),
    path(
        "workspaces/<slug:slug>/services/<int:pk>/keys/<int:key>/rotate",
        members.rotate_service_key,
        name="service_key_rotate",
    ),
    path(
        "workspaces/<slug:slug>/services/<int:pk>/keys/<int:key>/revoke",
        members.revoke_service_key,
        name="service_key_revoke",
    ),
    path("settings/sign-in", sign_in.sign_in_settings, name="sign_in_settings"),
    path("settings/sign-in", sign_in.to_settings, name="socialaccount_connections"),
    path("settings/sign-in/end", sign_in.end_other_sign_ins, name="sign_ins_end"),
    path("settings/sign-in/<int:pk>/end", sign_in.end_sign_in, name="sign_in_end"),
    path("settings/connections/<int:pk>/remove", sign_in.disconnect, name="connection_remove"),
    path("settings/password", account.password_change, name="account_change_password"),
    path("settings/password/none", sign_in.to_settings, name="account_set_password"),
    path("settings/email", require_confirmation(account.email), name="account_email"),
    path("settings/second-factor", sign_in.to_settings, name="mfa_index"),
    path("settings/second-factor/app", require_confirmation(app.activate_totp), name="mfa_activate_totp"),
    path(
        "settings/second-factor/app/remove",
        require_confirmation(app.deactivate_totp),
        name="mfa_deactivate_totp",
    ),
    path("settings/second-factor/codes", codes.view_recovery_codes, name="mfa_view_recovery_codes"),
    path(
        "settings/second-factor/codes/new",
        require_confirmation(codes.generate_recovery_codes),
        name="mfa_generate_recovery_codes",
    ),
    path(
        "settings/second-factor/codes/file", codes.download_recovery_codes, name="mfa_download_recovery_codes"
    ),
    path("settings/second-factor/keys", sign_in.to_settings, name="mfa_list_webauthn"),
    path("settings/second-factor/keys/new", require_confirmation(key.add_webauthn), name="mfa_add_webauthn"),
    path(
        "settings/second-factor/keys/<int:pk>/remove",
        require_confirmation(key.remove_webauthn),
        name="mfa_remove_webauthn",
    ),
    path(
        "settings/second-factor/keys/<int:pk>",
        require_confirmation(key.edit_webauthn),
        name="mfa_edit_webauthn",
    ),
]
