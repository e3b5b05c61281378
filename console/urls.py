"""The URLs."""

from django.contrib import admin
from django.urls import include, path
from django.views.decorators.cache import cache_control
from django.views.i18n import JavaScriptCatalog

from console.monitoring import health, metrics
from console.views import (
    access_keys,
    audit,
    client,
    documentation,
    home,
    own_secrets,
    people,
    reports,
    schemas,
    search,
    settings,
    ssh_keys,
    tokens,
)

admin.autodiscover()

urlpatterns = [
    # First: programs ask most often, and one look tells whether it is for them.
    path("api/console/v1/", include("jobs.api.native.urls")),
    path("api/console/v1/admin/", include("console.admin_api.urls")),
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
    path("healthz", health.healthz, name="healthz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("", home.root, name="home"),
    path("", include("console.views.account_urls")),
    path("language", people.set_language, name="set_language"),
    path("theme", people.set_theme, name="set_theme"),
    path("jsi18n", cache_control(max_age=3600)(JavaScriptCatalog.as_view()), name="jsi18n"),
    path("banners/<int:pk>/dismiss", people.dismiss_banner, name="banner_dismiss"),
    path("audit/", audit.audit_log_page, name="audit"),
    path("audit/export", audit.audit_export, name="audit_export"),
    path("client/<str:name>", client.client, name="client"),
    path("help/", documentation.show, name="documentation"),
    path("help/images/<slug:name>.png", documentation.image, name="documentation_image"),
    path("help/<path:name>", documentation.show, name="documentation_page"),
    path("schemas/site.json", schemas.site, name="site_schema"),
    path("reports/", reports.reports, name="reports"),
    path("search", search.search, name="search"),
    path("settings", settings.settings, name="settings"),
    path("settings/workspaces", settings.workspaces, name="settings_workspaces"),
    path("settings/secrets", own_secrets.secrets, name="settings_secrets"),
    path("settings/secrets/<int:pk>/remove", own_secrets.remove_secret, name="secret_remove"),
    path("settings/keys", ssh_keys.ssh_keys, name="settings_ssh_keys"),
    path("settings/keys/<int:pk>/remove", ssh_keys.remove_key, name="ssh_key_remove"),
    path("settings/tokens", tokens.tokens, name="settings_tokens"),
    path("settings/tokens/<int:pk>/revoke", tokens.revoke_token, name="token_revoke"),
    path("settings/access-keys", access_keys.access_keys, name="settings_access_keys"),
    path("settings/access-keys/<int:pk>/rotate", access_keys.rotate_key, name="access_key_rotate"),
    path("settings/access-keys/<int:pk>/revoke", access_keys.revoke_key, name="access_key_revoke"),
    path("", include("jobs.urls")),
    path("", include("jobs.api.urls")),
    path("admin/", admin.site.urls),
]

handler400 = "console.views.errors.bad_request"
handler403 = "console.views.errors.forbidden"
handler404 = "console.views.errors.not_found"
handler500 = "console.views.errors.server_error"
