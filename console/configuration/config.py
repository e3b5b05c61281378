"""Settings that `make run` needs before Django starts; `console.settings` builds on them."""

import os

from console.configuration import tls
from console.configuration.env import Env
from console.home import console_home

env = Env(os.environ)

env.group("Where and how it listens")
HOME = console_home(os.environ)
env.path("CONSOLE_HOME", HOME, "The folder with all that this console owns; on a local disk.", shown="var")
SHARED_FOLDER = env.text(
    "CONSOLE_SHARED_FOLDER",
    "",
    "Where several hosts serve one console: a folder that all of them see under this path, with logs, "
    "uploads and the folders of jobs. Then no cluster can be the console's own machine. Empty: CONSOLE_HOME.",
)
PORT = env.integer("PORT", 8000, "The port of the web server.", least=1, most=65535)
BIND = env.text("CONSOLE_BIND", "127.0.0.1", "The address of the web server.")
HOSTS = env.words(
    "CONSOLE_HOSTS", ("localhost", "127.0.0.1", "[::1]"), "The names under which people reach the console."
)
APPS_DOMAIN = env.text(
    "CONSOLE_APPS_DOMAIN", "apps.localhost", "Jobs' endpoints have host names under this domain."
)
TLS = tls.read(
    env.text(
        "CONSOLE_TLS",
        "0",
        "Https, without which only one person can be active where jobs run on this machine. `auto`: the "
        "console makes a certificate of its own; `certificate.pem,key.pem`: it has this one; `proxy`: a "
        "proxy in front speaks TLS. Cookies become `__Host-` and Secure.",
    ),
    HOME,
)

env.group("Servers")
DATABASE_URL = env.secret(
    "DATABASE_URL",
    "sqlite:///db.sqlite3",
    "`postgres://user:password@host:port/name`, or `sqlite:///file` beneath CONSOLE_HOME.",
    shown="sqlite:///db.sqlite3",
)
REDIS_URL = env.secret(
    "REDIS_URL",
    "",
    "`redis://`, `rediss://` or `unix://`; by default the server that `make run` starts for itself.",
    shown="a private server",
)

env.group("Web processes")
WEB_PROCESSES = env.integer(
    "CONSOLE_WEB_PROCESSES",
    1,
    "Processes that serve pages, the API and live streams; as many as cores where hundreds of people watch.",
    least=1,
)

env.group("Workers")
WORKERS = {
    "control": env.integer("CONSOLE_WORKERS_CONTROL", 2, "Processes that move jobs along.", least=1),
    "logs": env.integer("CONSOLE_WORKERS_LOGS", 1, "Processes that ship logs.", least=1),
    "notices": env.integer("CONSOLE_WORKERS_NOTICES", 1, "Processes that send notifications.", least=1),
}

env.group("Logs and metrics")
LOG_FILE_MIB = env.integer(
    "CONSOLE_LOG_FILE_MIB",
    10,
    "A log of the console's own programs, `run/<program>.log`, is rotated at this size.",
    unit="MiB",
    least=1,
)
LOG_FILES = env.integer(
    "CONSOLE_LOG_FILES",
    5,
    "So many rotated logs of each program are kept, as `<program>.log.1` and so on.",
)
