"""The API."""

from console.configuration.config import env

env.group("API")
CONSOLE_API_REQUESTS_PER_MINUTE = env.integer(
    "CONSOLE_API_REQUESTS_PER_MINUTE",
    3000,
    "Requests that one access token may make a minute; the next are answered 429. 0: no limit.",
)

REST_FRAMEWORK = {
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Job Console",
    "VERSION": "1.0",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "jobs.api.native.openapi.complete",
    ],
    "ENUM_NAME_OVERRIDES": {
        "Dialect": "jobs.dialects.NAMES",
        "JobState": "jobs.states.State",
        "ReplicaState": "jobs.states.ReplicaState",
        "Visibility": "jobs.models.Visibility",
        "WorkspaceRole": "quotas.models.Role",
    },
}
