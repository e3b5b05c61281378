"""Location settings: addresses, folder, keys, database, Redis."""

from pathlib import Path

from console.configuration import config, keys
from console.configuration.config import env
from console.configuration.servers import database, private_redis
from console.configuration.tls import Mode

env.group("Where and how it listens")
CONSOLE_HOME = config.HOME
CONSOLE_SHARED_FOLDER = Path(config.SHARED_FOLDER or CONSOLE_HOME)
CONSOLE_HAS_SEVERAL_HOSTS = bool(config.SHARED_FOLDER)
PORT = config.PORT
CONSOLE_BIND = config.BIND
CONSOLE_WEB_PROCESSES = config.WEB_PROCESSES
CONSOLE_HOSTS = config.HOSTS
CONSOLE_APPS_DOMAIN = config.APPS_DOMAIN
CONSOLE_OPENPAI_HOST = env.text(
    "CONSOLE_OPENPAI_HOST",
    "",
    "Under this host name everything is OpenPAI's REST server, for clients that only know a host and a port. "
    "Under the other names it is at `/rest-server`.",
    shown="none",
).lower()
CONSOLE_TLS_SERVED = config.TLS
CONSOLE_TLS = config.TLS.mode is not Mode.OFF
CONSOLE_TRUSTED_PROXIES = env.networks(
    "CONSOLE_TRUSTED_PROXIES",
    "Addresses or networks of reverse proxies whose X-Forwarded-For and -Proto are believed.",
)
CONSOLE_CONNECTIONS_PER_ADDRESS = env.integer(
    "CONSOLE_CONNECTIONS_PER_ADDRESS",
    1000,
    "The most connections that one address may have open to a web process; trusted proxies may have more.",
    least=1,
)
CONSOLE_BODY_SECONDS = env.seconds(
    "CONSOLE_BODY_SECONDS",
    30,
    "A request's body that keeps the console waiting so long, and a second for each 4 KiB, is given up.",
    least=0.1,
)
DEBUG = env.flag("CONSOLE_DEBUG", False, "Django's debug pages; for development on loopback only.")

KEYS = keys.load(CONSOLE_HOME)
CONSOLE_INSTALLATION = KEYS.installation
CONSOLE_FERNET_KEYS = KEYS.fernet
SECRET_KEY, *SECRET_KEY_FALLBACKS = KEYS.secret_key

env.group("Servers")
DATABASES = {
    "default": database(
        config.DATABASE_URL,
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
