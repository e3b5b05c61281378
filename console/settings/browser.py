"""Browser settings: cookies, content security policy, the admin's look, static files; storages."""

from typing import Any

from console.home import RESOURCES
from console.settings.location import (
    CONSOLE_HOME,
    CONSOLE_HOSTS,
    CONSOLE_OPENPAI_HOST,
    CONSOLE_SHARED_FOLDER,
    CONSOLE_TLS,
    DEBUG,
)

# A job file of 1 MiB (jobs.dialects.base.MAX_BYTES) in a form: each of its bytes may take three there.
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024
# The quota tree of a large cluster is one form, with six fields a quota.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 6000

ALLOWED_HOSTS = [*CONSOLE_HOSTS, *([CONSOLE_OPENPAI_HOST] if CONSOLE_OPENPAI_HOST else [])]
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
# For a browser that came by https once, plain http to this host name does not exist any more.
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if CONSOLE_TLS else 0
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

# The admin's look; its pages have a policy of their own: console/administration/adminsite.py.
UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Job Console",
    "SITE_HEADER": "Job Console",
    "SITE_ICON": "console.administration.adminsite.mark",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": "console.administration.adminsite.mark"}
    ],
    "STYLES": ["console.administration.adminsite.stylesheet"],
    "SCRIPTS": ["console.administration.adminsite.script"],
    "THEME": "console.administration.adminsite.theme",
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_LANGUAGES": True,
    "SIDEBAR": {"navigation": "console.administration.adminsite.navigation", "show_all_applications": True},
}

STATIC_URL = "/static/"
STATIC_ROOT = CONSOLE_HOME / "static"
STATICFILES_DIRS = [RESOURCES / "static"]
# gzip alone, whatever else is installed: brotli takes six times as long, and the first start waits for it.
SERVESTATIC_USE_BROTLI = False
SERVESTATIC_USE_ZSTD = False
STORAGES: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": CONSOLE_SHARED_FOLDER / "uploads"},
    },
    "logs": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": CONSOLE_SHARED_FOLDER / "logs", "file_permissions_mode": 0o600},
    },
    "uploads": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {
            "location": CONSOLE_SHARED_FOLDER / "uploads",
            "file_permissions_mode": 0o600,
            "directory_permissions_mode": 0o700,
        },
    },
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "console.server.statics.HashedStorage"
    },
}
