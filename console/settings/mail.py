"""E-mail."""

from console.configuration import servers
from console.configuration.config import env

env.group("E-mail")
CONSOLE_MAIL = env.secret(
    "CONSOLE_MAIL",
    "",
    "The server that sends e-mail: `smtp://user:password@host:587` (STARTTLS), `smtps://` or, "
    "without encryption, `smtp+plain://`.",
)
CONSOLE_MAIL_FROM = env.text("CONSOLE_MAIL_FROM", "console@localhost", "Whom e-mail comes from.")
_MAIL = servers.mail(CONSOLE_MAIL)
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
