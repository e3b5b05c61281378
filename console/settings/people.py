"""People: who they are, what they see first, and what is written down of what they do."""

from console.configuration.config import env

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
    "CONSOLE_STREAMS_PER_PERSON", 20, "Live pages that one person may have open at a web process.", least=1
)

TIME_ZONE = env.text("CONSOLE_TIME_ZONE", "UTC", "The zone of people who have not chosen one.")
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
# Its own table is not made: the one above stands in its place.
MIGRATION_MODULES = {"auditlog": None}
