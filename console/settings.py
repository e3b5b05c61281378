"""Every setting of the console. What a person may change comes from the environment: docs/settings.md.

It imports nothing of Django, so that what needs no Django can read it too: beat does.
"""

from typing import Any

from console import config, keys
from console.home import CHECKOUT
from console.servers import address, celery_broker, database, mail, private_redis

env = config.env

# --- Where everything is --------------------------------------------------------------------------

env.group("Where and how it listens")
CONSOLE_HOME = config.HOME
PORT = config.PORT
CONSOLE_BIND = config.BIND
CONSOLE_HOSTS = config.HOSTS
CONSOLE_APPS_DOMAIN = env.text(
    "CONSOLE_APPS_DOMAIN", "apps.localhost", "Jobs' endpoints have host names under this domain."
)
CONSOLE_TLS = env.flag(
    "CONSOLE_TLS", False, "People reach the console by https: cookies become `__Host-` and Secure."
)
CONSOLE_TRUSTED_PROXIES = env.words(
    "CONSOLE_TRUSTED_PROXIES",
    (),
    "Reverse proxies whose X-Forwarded-For and -Proto are believed.",
)
DEBUG = env.flag("CONSOLE_DEBUG", False, "Django's debug pages; for development on loopback only.")

KEYS = keys.load(CONSOLE_HOME)
CONSOLE_INSTALLATION = KEYS.installation
CONSOLE_FERNET_KEYS = KEYS.fernet
SECRET_KEY = KEYS.secret_key

# --- Servers --------------------------------------------------------------------------------------

env.group("Servers")
DATABASES = {
    "default": database(
        env.secret(
            "DATABASE_URL",
            "sqlite:///db.sqlite3",
            "`postgres://user:password@host:port/name`, or `sqlite:///file` beneath CONSOLE_HOME.",
            shown="sqlite:///db.sqlite3",
        ),
        CONSOLE_HOME,
        pool=env.integer("CONSOLE_DB_POOL", 10, "The most PostgreSQL connections of one process.", least=1),
    )
}
CONSOLE_THREADS = env.integer(
    "CONSOLE_THREADS",
    16,
    "Requests that the web server works on at a time; the others wait in turn.",
    least=2,
)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CONSOLE_REDIS_IS_PRIVATE = not config.REDIS_URL
REDIS_URL = config.REDIS_URL or private_redis(CONSOLE_HOME, KEYS.redis)

# --- Django ---------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "auditlog",  # before ours: its page in the admin makes way for our own
    "console",
    "jobs",
    "quotas",
    "unfold.contrib.import_export",  # before the library whose templates it replaces
    "import_export",
    "unfold.apps.BasicAppConfig",  # before the admin, whose templates it replaces
    "console.apps.ConsoleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "axes",
    "console.accounts.oidc",
    "csp",
    "django_htmx",
    "django_structlog",
    "drf_spectacular",
    "rest_framework",
]

# All of them work without a thread under ASGI, except where Django's own do not.
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "console.middleware.person_settings",
    "console.middleware.whence",
    "console.readonly.read_only",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "console.accounts.second_factor.required",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",  # the last one, as its documentation asks
]

ROOT_URLCONF = "console.urls"
ASGI_APPLICATION = "console.asgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [CHECKOUT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "console.context.frame",
            ]
        },
    }
]

# --- People ---------------------------------------------------------------------------------------

env.group("People")
CONSOLE_ADMIN_PASSWORD = env.secret(
    "CONSOLE_ADMIN_PASSWORD", "", "The first admin's password, instead of one made up at the first start."
)
AUTH_USER_MODEL = "quotas.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
CONSOLE_TRUST_EVERYBODY = env.flag(
    "CONSOLE_TRUST_EVERYBODY",
    False,
    "Several people may use a machine that cannot keep their jobs from the console and from each other.",
)
CONSOLE_STREAMS_PER_PERSON = env.integer(
    "CONSOLE_STREAMS_PER_PERSON", 20, "Live pages that one person may have open at a time.", least=1
)

# --- Signing in: docs/signing-in.md ---------------------------------------------------------------

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
    "console.accounts.backends.LocalBackend",
    *(["console.accounts.directory.Directory"] if CONSOLE_LDAP else []),
]

ACCOUNT_ADAPTER = "console.accounts.adapter.AccountAdapter"
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_FORMS = {
    "add_email": "console.accounts.forms.AddressForm",
    "change_password": "console.accounts.forms.ChangeForm",
    "login": "console.accounts.forms.SignInForm",
    "reauthenticate": "console.accounts.forms.AgainForm",
    "reset_password": "console.accounts.forms.ResetForm",
    "reset_password_from_key": "console.accounts.forms.NewPasswordForm",
    "signup": "console.accounts.forms.JoinForm",
}
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_PRESERVE_USERNAME_CASING = True
ACCOUNT_RATE_LIMITS = {
    "login": "300/m/ip",  # an institute may come from one address
    "login_failed": "10/5m/key",  # of second factors; passwords are counted by axes
}
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*"]
SOCIALACCOUNT_ADAPTER = "console.accounts.arrival.ProviderAdapter"
SOCIALACCOUNT_EMAIL_VERIFICATION = "none"  # what the provider says of an address is taken over
SOCIALACCOUNT_LOGIN_ON_GET = True  # a link: a form could not lead to another site under our policy
SOCIALACCOUNT_REQUESTS_TIMEOUT = 10
SOCIALACCOUNT_STORE_TOKENS = False
MFA_ADAPTER = "console.accounts.adapter.SecondFactorAdapter"
MFA_FORMS = {
    "activate_totp": "console.accounts.forms.AppForm",
    "add_webauthn": "console.accounts.forms.KeyForm",
    "authenticate": "console.accounts.forms.CodeForm",
    "edit_webauthn": "console.accounts.forms.KeyNameForm",
    "reauthenticate": "console.accounts.forms.CodeAgain",
}
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_SUPPORTED_TYPES = ["recovery_codes", "totp", "webauthn"]
MFA_TOTP_ISSUER = "Job Console"
MFA_TOTP_TOLERANCE = 1
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not CONSOLE_TLS

CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "OPTIONS": {
            "MAX_ENTRIES": 20_000
        },  # a web server is one process: rate limits, and what providers publish
    }
}

SESSION_COOKIE_AGE = 3600 * env.integer(
    "CONSOLE_SESSION_HOURS", 336, "A sign-in lasts so long.", unit="hours", least=1
)

AXES_FAILURE_LIMIT = env.integer("CONSOLE_LOGIN_FAILURES", 5, "Wrong passwords before a pause.", least=1)
AXES_COOLOFF_TIME = (
    env.integer("CONSOLE_LOGIN_PAUSE", 15, "How long that pause is.", unit="minutes", least=1) / 60
)
# One person's mistakes lock neither the others behind the same address, nor that person from elsewhere.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False
AXES_LOCKOUT_TEMPLATE = "console/locked_out.html"
AXES_HANDLER = "console.signins.Told"

CONSOLE_CURRENCY = env.text(
    "CONSOLE_CURRENCY", "", "What prices are in, as reports name it: `CNY`, `EUR`, `credits` …"
)

env.group("Audit")
CONSOLE_AUDIT_DAYS = env.integer(
    "CONSOLE_AUDIT_DAYS", 1095, "Changes stay in the audit trail so long; 0 keeps them for ever.", unit="days"
)
CONSOLE_AUDIT_REFUSED_DAYS = env.integer(
    "CONSOLE_AUDIT_REFUSED_DAYS",
    90,
    "Refusals and failed sign-ins stay there so long; 0 keeps them for ever.",
    unit="days",
)
AUDITLOG_LOGENTRY_MODEL = "quotas.AuditEntry"
AUDITLOG_STORE_JSON_CHANGES = True
AUDITLOG_USE_FK_STRING_REPRESENTATION = True
# A file whose changes are shown first waits for the answer beneath CONSOLE_HOME, not in /tmp.
IMPORT_EXPORT_TMP_STORAGE_CLASS = "import_export.tmp_storages.MediaStorage"
# Its own table is not made: the one above stands in its place.
MIGRATION_MODULES = {"auditlog": None}

env.group("E-mail")
CONSOLE_MAIL = env.secret(
    "CONSOLE_MAIL",
    "",
    "The server that sends e-mail: `smtp://user:password@host:587` (STARTTLS), `smtps://` or, "
    "without encryption, `smtp+plain://`.",
)
CONSOLE_MAIL_FROM = env.text("CONSOLE_MAIL_FROM", "console@localhost", "Whom e-mail comes from.")
_MAIL = mail(CONSOLE_MAIL)
EMAIL_BACKEND = _MAIL.backend
EMAIL_HOST = _MAIL.host
EMAIL_PORT = _MAIL.port
EMAIL_HOST_USER = _MAIL.user
EMAIL_HOST_PASSWORD = _MAIL.password
EMAIL_USE_TLS = _MAIL.starttls
EMAIL_USE_SSL = _MAIL.tls
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = SERVER_EMAIL = CONSOLE_MAIL_FROM
ACCOUNT_EMAIL_NOTIFICATIONS = bool(CONSOLE_MAIL)
ACCOUNT_EMAIL_VERIFICATION = "optional" if CONSOLE_MAIL else "none"

# --- The browser ----------------------------------------------------------------------------------

# A job file of 1 MiB (jobs.dialects.base.MAX_BYTES) in a form: each of its bytes may take three there.
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024
# The quota tree of a large cluster is one form, with six fields a quota.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 6000

ALLOWED_HOSTS = CONSOLE_HOSTS
CSRF_TRUSTED_ORIGINS = [f"https://{host.removeprefix('.')}" for host in CONSOLE_HOSTS] if CONSOLE_TLS else []

# No cookie has a Domain: endpoints of jobs live on other host names and must not see them.
SESSION_COOKIE_NAME = "__Host-session" if CONSOLE_TLS else "session"
SESSION_COOKIE_SECURE = CONSOLE_TLS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_NAME = "__Host-csrftoken" if CONSOLE_TLS else "csrftoken"
CSRF_COOKIE_SECURE = CONSOLE_TLS
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_SECURE = CONSOLE_TLS
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

# The admin's look; its pages have a policy of their own: console/adminsite.py.
UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Job Console",
    "SITE_HEADER": "Job Console",
    "SITE_ICON": "console.adminsite.mark",
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": "console.adminsite.mark"}],
    "STYLES": ["console.adminsite.stylesheet"],
    "THEME": "console.adminsite.theme",
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_LANGUAGES": True,
    "SIDEBAR": {"navigation": "console.adminsite.navigation", "show_all_applications": True},
}

STATIC_URL = "/static/"
STATIC_ROOT = CONSOLE_HOME / "static"
STATICFILES_DIRS = [CHECKOUT / "static"]
# gzip alone, whatever else is installed: brotli takes six times as long, and the first start waits for it.
SERVESTATIC_USE_BROTLI = False
SERVESTATIC_USE_ZSTD = False
STORAGES: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": CONSOLE_HOME / "uploads"},
    },
    "logs": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": CONSOLE_HOME / "logs", "file_permissions_mode": 0o600},
    },
    "uploads": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {
            "location": CONSOLE_HOME / "uploads",
            "file_permissions_mode": 0o600,
            "directory_permissions_mode": 0o700,
        },
    },
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "console.statics.HashedStorage"
    },
}

# --- Languages and time ---------------------------------------------------------------------------

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文"), ("ja", "日本語")]
LOCALE_PATHS = [CHECKOUT / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = env.text("CONSOLE_TIME_ZONE", "UTC", "The zone of people who have not chosen one.")

# --- The API --------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Job Console",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "ENUM_NAME_OVERRIDES": {
        "Dialect": "jobs.dialects.NAMES",
        "JobState": "jobs.states.State",
        "TaskState": "jobs.states.TaskState",
    },
}

# --- Workers: Celery is a doorbell, the database is the queue -------------------------------------

env.group("Workers")
CONSOLE_WORKERS = config.WORKERS
CELERY_BROKER_URL = celery_broker(REDIS_URL)
# A kick fails at once when the broker is away, and the sweep makes up for it. Workers reconnect for ever.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_connect_timeout": 1.0,
    "socket_timeout": 5.0,
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0,
    "interval_max": 0,
    "visibility_timeout": 120,
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_CONNECTION_TIMEOUT = 1.0
CELERY_TASK_PUBLISH_RETRY = False
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = "json"
CELERY_RESULT_SERIALIZER = "json"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_STORE_ERRORS_EVEN_IF_IGNORED = False
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_SOFT_TIME_LIMIT = 50
CELERY_TASK_TIME_LIMIT = 60
CELERY_TASK_DEFAULT_QUEUE = "control"
CELERY_TASK_QUEUES = {name: {"exchange": name, "routing_key": name} for name in CONSOLE_WORKERS}
CELERY_TASK_CREATE_MISSING_QUEUES = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_MAX_MEMORY_PER_CHILD = 300_000  # KiB; a leak ends with the process
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_TIMEZONE = "UTC"
DJANGO_STRUCTLOG_CELERY_ENABLED = True

CONSOLE_LOCAL = env.mapping(
    "CONSOLE_LOCAL",
    "What local clusters are told beside their own settings, the inventory for one: "
    '`{"cpu_milli": 8000, "memory_mib": 65536, "gpus": {"TITANX": 2}}`.',
)

CONSOLE_SLURM_FOLDER = env.text(
    "CONSOLE_SLURM_FOLDER",
    "",
    "A folder that the console and every node of its Slurm clusters see under this name, where their jobs' "
    "files and logs lie. Empty: the folder `jobs` in CONSOLE_HOME.",
)
CONSOLE_SLURM_TOKEN_COMMAND = env.words(
    "CONSOLE_SLURM_TOKEN_COMMAND",
    (),
    "The command that prints a token for slurmrestd, for Slurm clusters that are asked by it and whose "
    "settings hold none: `scontrol,token,username={user},lifespan=600`. With identity `jwt` also one for "
    "each user as whom jobs run.",
)
CONSOLE_SLURM_JWT_KEY = env.text(
    "CONSOLE_SLURM_JWT_KEY",
    "",
    "A file with the key of slurmctld (`jwt_key`), for the console's user alone to read: with it the console "
    "makes tokens for the users as whom jobs run, on Slurm clusters with identity `jwt`. It goes before the "
    "command. Whoever has it can be anybody at Slurm.",
)

env.group("Intervals")
CONSOLE_SWEEP_SECONDS = env.seconds(
    "CONSOLE_SWEEP_SECONDS", 2, "Every row that is due is looked at again so often.", least=0.1
)
CONSOLE_SLOWEST_LOOK_SECONDS = env.seconds(
    "CONSOLE_SLOWEST_LOOK_SECONDS",
    60,
    "A cluster whose controller is slow is looked at more rarely, but at least so often.",
    least=1,
)
INVENTORY_SECONDS = env.seconds(
    "CONSOLE_INVENTORY_SECONDS", 30, "Every cluster is asked what it has so often.", least=1
)
CONSOLE_MEASURE_SECONDS = env.seconds(
    "CONSOLE_MEASURE_SECONDS", 60, "What running jobs use is measured so often.", least=1
)
USAGE_SECONDS = env.seconds(
    "CONSOLE_USAGE_SECONDS", 300, "What was held in an hour is written down so soon after it.", least=1
)
TIDY_SECONDS = env.seconds(
    "CONSOLE_TIDY_SECONDS",
    10,
    "Ended attempts are looked at for logs to store and folders to remove.",
    least=1,
)
NOTICES_SECONDS = env.seconds(
    "CONSOLE_NOTICES_SECONDS", 5, "Notifications that are due are looked for so often.", least=0.5
)
WATCH_NOTICES_SECONDS = env.seconds(
    "CONSOLE_WATCH_NOTICES_SECONDS",
    60,
    "Long waits and quotas that are nearly used are looked for so often.",
    least=1,
)


def _every(seconds: float, task: str, queue: str = "control", *, of: str = "jobs") -> dict[str, Any]:
    """A beat entry; one that no worker took for a long while expires, so that a stalled queue stays short."""
    return {
        "task": f"{of}.tasks.{task}",
        "schedule": seconds,
        "options": {"expires": max(30.0, 5 * seconds), "queue": queue},
    }


CELERY_BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    "sweep": _every(CONSOLE_SWEEP_SECONDS, "sweep"),
    "inventories": _every(INVENTORY_SECONDS, "sweep_inventories"),
    "logs": _every(TIDY_SECONDS, "sweep_logs", "logs"),
    "notices": _every(NOTICES_SECONDS, "notices", "notices"),
    "watch-notices": _every(WATCH_NOTICES_SECONDS, "watch_notices", "notices"),
    "usage": _every(USAGE_SECONDS, "roll_up", "logs"),
    **(
        {"directory": _every(CONSOLE_LDAP_SECONDS, "ask_directory", "logs", of="console")}
        if CONSOLE_LDAP
        else {}
    ),
    **(
        {"providers": _every(CONSOLE_OIDC_SECONDS, "ask_providers", "logs", of="console")}
        if CONSOLE_OIDC
        else {}
    ),
    "audit": _every(3600, "tidy_audit", "logs"),
    "measures": _every(CONSOLE_MEASURE_SECONDS, "sweep_measures", "logs"),
    "uploads": _every(600, "tidy_uploads", "logs"),
}

# --- Endpoints of jobs ----------------------------------------------------------------------------

env.group("Gateway")
CONSOLE_GATEWAY_CONNECTIONS = env.integer(
    "CONSOLE_GATEWAY_CONNECTIONS", 2000, "Requests and WebSockets to jobs under way at a time.", least=1
)
CONSOLE_GATEWAY_CONNECTIONS_PER_PERSON = env.integer(
    "CONSOLE_GATEWAY_CONNECTIONS_PER_PERSON", 200, "The most of them that one person may have.", least=1
)
CONSOLE_GATEWAY_RECHECK_SECONDS = env.seconds(
    "CONSOLE_GATEWAY_RECHECK_SECONDS",
    20,
    "What streams is ended so soon after a sign-out, a lost right or the job's end; at most 60.",
    least=0.05,
)
CONSOLE_GATEWAY_IDLE_SECONDS = env.seconds(
    "CONSOLE_GATEWAY_IDLE_SECONDS", 3600, "A request to which a job says nothing for so long ends.", least=1
)
CONSOLE_GATEWAY_BODY_MIB = env.integer(
    "CONSOLE_GATEWAY_BODY_MIB", 16384, "The longest body of a request to a job.", unit="MiB", least=1
)
CONSOLE_GATEWAY_MESSAGE_MIB = env.integer(
    "CONSOLE_GATEWAY_MESSAGE_MIB", 64, "The longest WebSocket message from a job.", unit="MiB", least=1
)

env.group("SSH and terminals")
CONSOLE_SSH_PORT = env.integer(
    "CONSOLE_SSH_PORT",
    2222,
    "SSH into running jobs is served here, on CONSOLE_BIND; 0 serves none.",
    most=65535,
)
CONSOLE_SSH_HOST = env.text(
    "CONSOLE_SSH_HOST",
    "",
    "The name of this machine in the SSH commands that pages show.",
    shown="the page's own",
)
CONSOLE_SSH_FAILURES = env.integer(
    "CONSOLE_SSH_FAILURES",
    30,
    "Connections from one address that end without a known key, before it is turned away for ten minutes.",
    least=1,
)
CONSOLE_ENTRIES = env.integer(
    "CONSOLE_ENTRIES", 500, "SSH connections and terminals that are open at a time.", least=1
)
CONSOLE_ENTRIES_PER_PERSON = env.integer(
    "CONSOLE_ENTRIES_PER_PERSON", 50, "The most of them that one person may have.", least=1
)
CONSOLE_TERMINAL_KEEP_SECONDS = env.seconds(
    "CONSOLE_TERMINAL_KEEP_SECONDS",
    1800,
    "A terminal that no page shows any more is kept for so long.",
    least=1,
)

env.group("Files of jobs")
CONSOLE_TRANSFERS = env.integer(
    "CONSOLE_TRANSFERS", 100, "Looks into jobs' folders, downloads and uploads under way at a time.", least=1
)
CONSOLE_TRANSFERS_PER_PERSON = env.integer(
    "CONSOLE_TRANSFERS_PER_PERSON", 8, "The most of them that one person may have.", least=1
)
CONSOLE_UPLOAD_MIB = env.integer(
    "CONSOLE_UPLOAD_MIB",
    10240,
    "The largest file that can be uploaded into a job's folder.",
    unit="MiB",
    least=1,
)

# --- Code that people send along ------------------------------------------------------------------

env.group("Uploaded code")
CONSOLE_CODE_FILE_MIB = env.integer(
    "CONSOLE_CODE_FILE_MIB", 1024, "The largest file of uploaded code.", unit="MiB", least=1
)
CONSOLE_CODE_MIB = env.integer(
    "CONSOLE_CODE_MIB", 2048, "What one uploaded folder of code may have in it.", unit="MiB", least=1
)
CONSOLE_CODE_FILES = env.integer(
    "CONSOLE_CODE_FILES", 150_000, "So many files, links and folders may be in it.", least=1
)
CONSOLE_CODE_PERSON_MIB = env.integer(
    "CONSOLE_CODE_PERSON_MIB",
    20_480,
    "What one person may have uploaded at a time, equal files counted once.",
    unit="MiB",
    least=1,
)
CONSOLE_CODE_DAYS = env.integer(
    "CONSOLE_CODE_DAYS",
    30,
    "Uploaded code that no job and no draft uses is kept so long after it was last asked for.",
    unit="days",
    least=1,
)

# --- Notifications ---------------------------------------------------------------------------------

env.group("Notifications")
CONSOLE_URL = (
    env.text(
        "CONSOLE_URL",
        "",
        "The address of the console in messages, such as `https://console.example.org`.",
        shown="the first of CONSOLE_HOSTS",
    )
    or address(CONSOLE_HOSTS, PORT, tls=CONSOLE_TLS)
).rstrip("/")
CONSOLE_EGRESS_HOSTS = env.words(
    "CONSOLE_EGRESS_HOSTS",
    (),
    "Hosts inside that webhooks and chats may lie on: `chat.corp.example`, `10.1.2.3:8443`, `10.1.0.0/16`, "
    "or `http://hook.corp.example:8080` for one without encryption. Everything else has to be public.",
)
CONSOLE_EGRESS_PORTS = env.words(
    "CONSOLE_EGRESS_PORTS", ("443",), "The ports of public addresses that may be connected to."
)
CONSOLE_EGRESS_PROXY = env.text(
    "CONSOLE_EGRESS_PROXY",
    "",
    "An HTTP proxy for webhooks and chats, such as `http://proxy.corp.example:3128`; the environment's is "
    "not used.",
)
CONSOLE_EGRESS_SECONDS = env.seconds(
    "CONSOLE_EGRESS_SECONDS", 10, "An answer that takes longer is none; at most 20.", least=0.1
)
CONSOLE_NOTICE_GATHER_SECONDS = env.seconds(
    "CONSOLE_NOTICE_GATHER_SECONDS", 2, "What happens within so long of each other is one message."
)
CONSOLE_NOTICE_GAP_SECONDS = env.seconds(
    "CONSOLE_NOTICE_GAP_SECONDS", 30, "Two messages to the same channel are at least so far apart."
)
CONSOLE_NOTICE_TRIES = env.integer(
    "CONSOLE_NOTICE_TRIES",
    12,
    "A message is given up after so many tries; the twelfth is five hours later.",
    least=1,
)
CONSOLE_NOTICE_FAILURES = env.integer(
    "CONSOLE_NOTICE_FAILURES",
    5,
    "A channel is turned off after so many messages that were given up.",
    least=1,
)
CONSOLE_NOTICE_DAYS = env.integer(
    "CONSOLE_NOTICE_DAYS",
    30,
    "Notices and the record of messages are kept for so long.",
    unit="days",
    least=1,
)

# --- Logs and metrics -----------------------------------------------------------------------------

env.group("Logs and metrics")
CONSOLE_LOG_CAP_MIB = env.integer(
    "CONSOLE_LOG_CAP_MIB", 10240, "Of a longer log its head and its tail are stored.", unit="MiB", least=16
)
CONSOLE_LOG_FORMAT = env.choice(
    "CONSOLE_LOG_FORMAT", "console", "How log lines look.", of=("console", "json")
)
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
CONSOLE_LOG_LEVEL = env.choice("CONSOLE_LOG_LEVEL", "INFO", "What is worth a line.", of=_LEVELS)
LOGGING_CONFIG = "console.logging.configure"
LOGGING = {"style": CONSOLE_LOG_FORMAT, "level": CONSOLE_LOG_LEVEL}
CONSOLE_METRICS_TOKEN = env.secret(
    "CONSOLE_METRICS_TOKEN",
    "",
    "`Authorization: Bearer …` for /metrics and /healthz; without one they answer on this machine only.",
)
