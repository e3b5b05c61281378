"""Signing in: docs/signing-in.md."""

from console.configuration.config import env
from console.settings.location import (
    CONSOLE_HAS_SEVERAL_HOSTS,
    CONSOLE_SHARED_FOLDER,
    CONSOLE_TLS,
    CONSOLE_WEB_PROCESSES,
)

env.group("Signing in")
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
CONSOLE_OIDC = env.mapping(
    "CONSOLE_OIDC",
    "OIDC providers by name, each a button: "
    '`{"corp": {"label": "Company account", "issuer": "https://sso.example.org", "client_id": "console"}}`.',
)
CONSOLE_OIDC_SECRETS = env.secrets(
    "CONSOLE_OIDC_SECRETS", 'What each provider gave the console: `{"corp": "…"}`.'
)
CONSOLE_OIDC_SECONDS = env.seconds(
    "CONSOLE_OIDC_SECONDS",
    30,
    "Providers that gave a refresh token are asked so often about whoever is signed in by them.",
    least=1,
)
CONSOLE_LDAP = env.mapping(
    "CONSOLE_LDAP",
    "A directory behind the password form: "
    '`{"url": "ldaps://ldap.example.org", "people": "ou=people,dc=example,dc=org"}`.',
)
CONSOLE_LDAP_PASSWORD = env.secret(
    "CONSOLE_LDAP_PASSWORD", "", "The password of the `bind_dn` in CONSOLE_LDAP."
)
CONSOLE_LDAP_SECONDS = env.seconds(
    "CONSOLE_LDAP_SECONDS", 30, "The directory is asked so often who is there, and in which groups.", least=1
)
CONSOLE_LOCAL_SIGN_IN = env.choice(
    "CONSOLE_LOCAL_SIGN_IN",
    "everybody",
    "Whose password of the console's own is accepted: everybody's, or only that of break-glass accounts.",
    of=("everybody", "break-glass"),
)
CONSOLE_BREAK_GLASS_SECONDS = env.seconds(
    "CONSOLE_BREAK_GLASS_SECONDS", 600, "A link of `manage.py break_glass` works for so long.", least=1
)
CONSOLE_SECOND_FACTOR = env.choice(
    "CONSOLE_SECOND_FACTOR",
    "optional",
    "Who has to set up a second factor before anything else.",
    of=("optional", "admins", "everybody"),
)
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "console.sign_in.backends.LocalBackend",
    *(["console.sign_in.directory.Directory"] if CONSOLE_LDAP else []),
]

ACCOUNT_ADAPTER = "console.sign_in.adapter.AccountAdapter"
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_FORMS = {
    "add_email": "console.sign_in.forms.AddressForm",
    "change_password": "console.sign_in.forms.ChangeForm",
    "login": "console.sign_in.forms.SignInForm",
    "reauthenticate": "console.sign_in.forms.AgainForm",
    "reset_password": "console.sign_in.forms.ResetForm",
    "reset_password_from_key": "console.sign_in.forms.NewPasswordForm",
    "signup": "console.sign_in.forms.JoinForm",
}
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_PRESERVE_USERNAME_CASING = True
ACCOUNT_RATE_LIMITS = {
    "login": "300/m/ip",  # an institute may come from one address
    "login_failed": "10/5m/key",  # of second factors; passwords are counted by axes
}
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*"]
SOCIALACCOUNT_ADAPTER = "console.sign_in.arrival.ProviderAdapter"
SOCIALACCOUNT_EMAIL_VERIFICATION = "none"  # what the provider says of an address is taken over
SOCIALACCOUNT_LOGIN_ON_GET = True  # a link: a form could not lead to another site under our policy
SOCIALACCOUNT_REQUESTS_TIMEOUT = 10
SOCIALACCOUNT_STORE_TOKENS = False
MFA_ADAPTER = "console.sign_in.adapter.SecondFactorAdapter"
MFA_FORMS = {
    "activate_totp": "console.sign_in.forms.AppForm",
    "add_webauthn": "console.sign_in.forms.KeyForm",
    "authenticate": "console.sign_in.forms.CodeForm",
    "edit_webauthn": "console.sign_in.forms.KeyNameForm",
    "reauthenticate": "console.sign_in.forms.CodeAgain",
}
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_SUPPORTED_TYPES = ["recovery_codes", "totp", "webauthn"]
MFA_TOTP_ISSUER = "Job Console"
MFA_TOTP_TOLERANCE = 1
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not CONSOLE_TLS

# Rate limits, used codes, and what providers publish: where there are several web processes, all know them.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "OPTIONS": {"MAX_ENTRIES": 20_000},
    }
    if CONSOLE_WEB_PROCESSES == 1 and not CONSOLE_HAS_SEVERAL_HOSTS
    else {
        "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
        "LOCATION": CONSOLE_SHARED_FOLDER / "run" / "cache",
        "OPTIONS": {"MAX_ENTRIES": 20_000},
    }
}

SESSION_ENGINE = "quotas.accounts.session_store"
SESSION_COOKIE_AGE = 3600 * env.integer(
    "CONSOLE_SESSION_HOURS", 336, "A sign-in lasts so long.", unit="hours", least=1
)

AXES_FAILURE_LIMIT = env.integer("CONSOLE_LOGIN_FAILURES", 5, "Wrong passwords before a pause.", least=1)
AXES_COOLOFF_TIME = (
    env.integer("CONSOLE_LOGIN_PAUSE", 15, "How long that pause is.", unit="minutes", least=1) / 60
)
CONSOLE_LOGIN_FAILURES_EVERYWHERE = env.integer(
    "CONSOLE_LOGIN_FAILURES_EVERYWHERE",
    50,
    "Wrong passwords for one account from all addresses together before a pause, which does not hold for "
    "browsers that have signed in to it before.",
    least=1,
)
AXES_USERNAME_CALLABLE = "console.sign_in.signins.account_name"
# One person's mistakes lock neither the others behind the same address, nor that person from elsewhere.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False
AXES_LOCKOUT_TEMPLATE = "console/locked_out.html"
AXES_HANDLER = "console.sign_in.signins.AuditedAxesHandler"
