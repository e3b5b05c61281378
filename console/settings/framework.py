"""Django: applications, middleware, templates, languages."""

from typing import Any

from console.home import CHECKOUT, RESOURCES

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "auditlog",  # before ours: its page in the admin makes way for our own
    "console",
    "jobs",
    "quotas",
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
    "console.sign_in.oidc",
    "csp",
    "django_htmx",
    "django_structlog",
    "drf_spectacular",
    "rest_framework",
]

# All of them work without a thread under ASGI, except where Django's own do not.
MIDDLEWARE = [
    "console.monitoring.http_timings.time_requests",
    "console.middleware.compression.compress_answers",
    "django.middleware.security.SecurityMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "console.middleware.person_settings.person_settings",
    "console.middleware.request_origin.record_origin",
    "console.middleware.button_pages.page_instead",
    "console.middleware.null_characters.NullCharacters",
    "console.middleware.read_only.read_only",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "console.sign_in.second_factor.require_second_factor",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",  # the last one, as its documentation asks
]

ROOT_URLCONF = "console.urls"
ASGI_APPLICATION = "console.asgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [RESOURCES / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "console.views.context.frame",
            ]
        },
    }
]

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文"), ("ja", "日本語")]
LOCALE_PATHS = [CHECKOUT / "locale"]  # those of a wheel lie in the package `jobs`
USE_I18N = True
USE_TZ = True
