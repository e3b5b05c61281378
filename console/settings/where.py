"""Where the console listens, and what it lives on: its folder, its keys, its database, Redis."""

from console import config, keys
from console.config import env
from console.servers import database, private_redis

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

CONSOLE_REDIS_IS_PRIVATE = not config.REDIS_URL
REDIS_URL = config.REDIS_URL or private_redis(CONSOLE_HOME, KEYS.redis)
