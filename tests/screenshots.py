"""`make screenshots`: every page, light, dark and on a phone, in three languages, into var/screenshots.

`python -m tests.screenshots [PAGE …]` takes only those of these names; with `--docs`, those that docs/ shows.
docs/images has some more that were taken by hand.
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from PIL import Image
from playwright.sync_api import Browser, FloatRect, Page, ViewportSize

from console.home import CHECKOUT
from tests import slurm
from tests.browser import chromium
from tests.scenes import MACHINE, fill, fill_slurm
from tests.stack import ADMIN, Stack, running

INTO: Final = CHECKOUT / "var" / "screenshots"
LANGUAGES: Final = ("en", "zh-hans", "ja")
LOOKS: Final[Mapping[str, tuple[int, int, Literal["light", "dark"]]]] = {
    "light": (1440, 900, "light"),
    "dark": (1440, 900, "dark"),
    "phone": (390, 844, "light"),
}
SETTLED_MS: Final = 700
TLS: Final = {"CONSOLE_TLS": "auto"}
"""Without it every page would say that there are several people and no TLS."""

DOCS: Final = CHECKOUT / "docs" / "images"
COLOURS: Final = 128
"""A picture for docs/ has a palette of so many: a page has few colours, and git keeps every version."""

FRAME, MARGIN = 3, 16
"""Pixels around an inset, and between it and the edge."""

SECTIONS: Final = ("basic", "environment", "resources", "faults", "roles")
SIZES: Final[Mapping[str, tuple[int, int]]] = {"light": (1440, 800), "dark": (1440, 800), "phone": (390, 844)}
TALLEST: Final = 1600
"""Of a section that is unfolded, so much is shown: it is the head that tells it apart."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture for docs/: of a page as it stands, or from where to where on it.

    `acts` are done first: what is typed into what, or pressed, where nothing is typed.  `width` and `height`
    are the window's, where they are not the look's.  `inset` is another page, shown smaller in a corner.
    """

    page: str
    parts: tuple[str, ...] = ()
    look: str = "light"
    acts: tuple[tuple[str, str], ...] = ()
    width: int = 0
    height: int = 0
    inset: str = ""

    @property
    def window(self) -> ViewportSize:
        """How large the window is for it."""
        width, height = SIZES[self.look]
        return {"width": self.width or width, "height": self.height or height}


def _of_section(section: str, look: str) -> Picture:
    return Picture(
        "new-environment", (f"#section-{section}",), look, height=12_000
    )  # so that nothing scrolls


IN_DOCS: Final[Mapping[str, Picture]] = {
    "overview": Picture("new-seed", width=1440, height=1000, inset="job-seed-log"),
    "connect": Picture(
        "job-connect", ("[aria-labelledby=ssh-title]", "[aria-labelledby=keys-title]"), width=1200
    ),
    "terminal": Picture("job-terminal", width=1200, height=620),
    "settings-keys": Picture("settings-keys", ("#ssh-keys",), width=1200),
    "start": Picture("start-jupyterlab", width=1280, height=760),
    "starter-set": Picture("start", width=1280, height=900),
    "sign-in-settings": Picture("sign-in-settings", width=1280, height=900),
    "second-factor": Picture("second-factor-app", width=1280, height=760),
    "members": Picture("members", width=1280, height=620),
    "admin-what-follows": Picture(
        "admin-incidents",
        acts=(
            ("#end_person summary", ""),
            ("#end_person [name=person]", ADMIN),
            ("#end_person [name=why]", "Has left"),
            ("#end_person button", ""),
        ),
        width=1280,
        height=480,
    ),
    "form-short": Picture("new-form", width=1280, height=860),
    "form-file": Picture("new", width=1440, height=900),
    "form-phone": Picture("new-form", look="phone"),
    "form-dark": Picture("new", look="dark", width=1440, height=900),
    **{f"form-{name}": _of_section(name, "light") for name in SECTIONS},
    **{f"form-{name}-dark": _of_section(name, "dark") for name in SECTIONS},
    **{f"form-{name}-phone": _of_section(name, "phone") for name in SECTIONS},
    "panel": Picture(
        "new-helloworld", ("section[aria-labelledby=job-panel-title]",), width=1440, height=2000
    ),
    "panel-sent": Picture(
        "new-helloworld",
        ("section[aria-labelledby=job-panel-title]",),
        acts=(("text=Generated script", ""),),
        width=1440,
        height=2000,
    ),
    "assets": Picture("assets", width=1280, height=360),
    "asset": Picture("asset", width=1280, height=860),
    "template": Picture("template", width=1280, height=860),
    "template-fields": Picture("template-edit", (".who-fills-panel",), width=1280, height=1600),
    "template-locked": Picture("new-from-template", width=1280, height=760),
    "template-questions": Picture("start-pytorch", width=1280, height=760),
    "history": Picture("job-history", width=1280, height=420),
    "sweep": Picture("sweep", width=1280, height=640),
    "admin-day": Picture("admin", width=1280, height=860),
    "admin-tree": Picture("admin-tree", width=1280, height=860),
    "admin-jobs": Picture("admin-jobs", width=1280, height=860),
    "admin-incidents": Picture("admin-incidents", width=1280, height=860),
    "audit": Picture("audit", width=1280, height=820),
    "files": Picture("job-files-text", width=1440, height=900),
    "notifications": Picture("notifications", width=1440, height=953),
    "notifications-channel": Picture("notifications-new", width=1440, height=900),
    "reports": Picture("reports", width=1280, height=820),
    "show-as": Picture("new-seed", acts=(("text=Convert to …", ""),), width=1180, height=740),
    "sweep-new": Picture("new-form", ("#sweep",), acts=(("#sweep summary", ""),), height=2000),
}
"""The pictures of docs/images that are taken by `--docs`."""

ON_SLURM: Final[Mapping[str, Picture]] = {
    "slurm-waits": Picture("waits", width=1280, height=640),
    "slurm-nodes": Picture("nodes", ("section:has(h2:text-is('HPC'))",), width=1280, height=900),
    "slurm-others": Picture("others", width=1280, height=620),
}
"""Those of a console with a Slurm, by `--slurm`."""

AS_DELIVERED: Final = {"CONSOLE_SSH_PORT": "2222", "CONSOLE_SSH_HOST": "console.example.com"}


def pages(jobs: Mapping[str, str]) -> dict[str, str]:
    """Each page's name and address."""
    job = {name: f"/jobs/{public_id}/" for name, public_id in jobs.items()}
    return {
        "second-factor-app": "/settings/second-factor/app",  # these two first: they want a fresh password
        "second-factor-key": "/settings/second-factor/keys/new",
        "sign-in-again": "/sign-in/again",
        "sign-in-reset": "/sign-in/reset",
        "sign-in-settings": "/settings/sign-in",
        "sign-in-password": "/settings/password",
        "sign-in-email": "/settings/email",
        "members": "/workspaces/default/members",
        "home": "/",
        "new": "/jobs/new",
        "new-helloworld": "/jobs/new?example=helloworld",
        "new-form": "/jobs/new?view=form",
        "new-file": "/jobs/new?view=file",
        "new-seed": "/jobs/new?draft=2",
        "job-seed-log": job["seed"] + "?tab=logs",
        "new-environment": "/jobs/new?view=form&unfold#section-environment",
        "new-resources": "/jobs/new?view=form&unfold#section-resources",
        "new-faults": "/jobs/new?view=form&unfold#section-faults",
        "again": f"/jobs/new?like={jobs['failed']}",
        "jobs": "/jobs/",
        "jobs-none": "/jobs/?q=no-such-job",
        "jobs-compare": "/jobs/compare?" + "&".join(f"id={jobs[name]}" for name in ("failed", "succeeded")),
        "job-waiting": job["waiting"],
        "job-running": job["running"],
        "job-replicas": job["running"] + "?tab=replicas",
        "job-metrics": job["running"] + "?tab=metrics",
        "job-log": job["running"] + "?tab=logs",
        "job-serving": job["serving"],
        "job-succeeded": job["succeeded"],
        "job-partly": job["partly"],
        "job-failed": job["failed"],
        "job-events": job["failed"] + "?tab=events",
        "job-file": job["failed"] + "?tab=file",
        "job-connect": job["running"] + "?tab=connect",
        "job-terminal": job["running"] + "?tab=terminal",
        "start": "/start/",
        "start-search": "/start/?q=pytorch",
        "start-pytorch": "/start/pytorch-ddp",
        "start-kept": f"/start/{jobs['template']}",
        "templates": "/templates/",
        "template": f"/templates/{jobs['template']}",
        "template-edit": f"/templates/{jobs['template']}/edit",
        "template-new": f"/templates/new?job={jobs['failed']}",
        "new-from-template": f"/jobs/new?template={jobs['template']}",
        "job-history": job["again"] + "history",
        "start-jupyterlab": "/start/jupyterlab",
        "start-tensorboard": "/start/tensorboard",
        "job-opening": job["waiting"] + "opening?to=jupyterlab",
        "job-files": job["writing"] + "?tab=files",
        "job-files-text": job["writing"] + "?tab=files&path=results%2Fmetrics.csv",
        "job-files-ended": job["succeeded"] + "?tab=files",
        "others": "/jobs/others",
        "sweeps": "/sweeps/",
        "sweep": f"/sweeps/{jobs['sweep']}",
        "drafts": "/drafts/",
        "notices": "/notices/",
        "notifications": "/settings/notifications",
        "notifications-new": "/settings/notifications/new/dingtalk",
        "draft-versions": "/drafts/1/versions",
        "assets": "/assets/?kind=datasets",
        "assets-none": "/assets/?kind=vpcs",
        "assets-specs": "/assets/?kind=specs",
        "asset": f"/assets/datasets/{jobs['dataset']}",
        "asset-new": "/assets/datasets/new",
        "nodes": "/nodes/",
        "quotas": "/quotas/",
        "audit": "/audit/",
        "reports": "/reports/",
        "settings": "/settings",
        "settings-keys": "/settings/keys",
        "settings-tokens": "/settings/tokens",
        "settings-access-keys": "/settings/access-keys",
        "settings-secrets": "/settings/secrets",
        "settings-workspaces": "/settings/workspaces",
        "help": "/help/",
        "help-page": "/help/slurm",
        "not-found": "/nowhere",
        "admin": "/admin/",
        "admin-tree": "/admin/tree/local/",
        "admin-incidents": "/admin/incidents/?open=freeze",
        "admin-jobs": "/admin/jobs/job/",
    }


def photograph(browser: Browser, stack: Stack, wanted: Mapping[str, str]) -> None:
    """Every page of `wanted`, in every look and language, and the sign-in page."""
    for look, (width, height, scheme) in LOOKS.items():
        for language in LANGUAGES:
            folder = INTO / language / look
            folder.mkdir(parents=True, exist_ok=True)
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=scheme,
                locale=language,
                base_url=stack.base_url,
                ignore_https_errors=True,
            )
            page = context.new_page()
            _take(page, "/sign-in", folder / "sign-in.png")
            sign_in(page, stack)
            show_again(page, stack)
            for name, address in wanted.items():
                _take(page, address, folder / f"{name}.png")
            context.close()


def illustrate(
    browser: Browser, stack: Stack, every: Mapping[str, str], pictures: Mapping[str, Picture]
) -> None:
    """The parts of pages that docs/ shows, in English."""
    for look in SIZES:
        context = browser.new_context(
            color_scheme=LOOKS[look][2],
            locale="en",
            base_url=stack.base_url,
            reduced_motion="reduce",
            ignore_https_errors=True,
        )
        page = context.new_page()
        sign_in(page, stack)
        show_again(page, stack)
        for name, picture in pictures.items():
            if picture.look == look:
                taken = _illustration(page, picture, every[picture.page])
                if picture.inset:
                    inset = Picture(picture.inset, width=1000, height=560)
                    taken = _with_inset(taken, _illustration(page, inset, every[inset.page]))
                _keep(taken, DOCS / f"{name}.png")
        context.close()


def _illustration(page: Page, picture: Picture, address: str) -> bytes:
    page.set_viewport_size(picture.window)
    page.goto(address)
    for place, words in picture.acts:
        where = page.locator(place).first
        where.fill(words) if words else where.click()
    page.wait_for_load_state("load")
    page.wait_for_timeout(SETTLED_MS)
    boxes = [box for part in picture.parts if (box := page.locator(part).first.bounding_box())]
    return page.screenshot(full_page=bool(boxes), clip=_around(boxes))


def _with_inset(taken: bytes, smaller: bytes) -> bytes:
    """Put a picture into the lower right corner of another, in a frame."""
    with Image.open(io.BytesIO(taken)) as whole, Image.open(io.BytesIO(smaller)) as part:
        inset = part.convert("RGB").resize(
            (part.width * 3 // 4, part.height * 3 // 4), Image.Resampling.LANCZOS
        )
        framed = Image.new("RGB", (inset.width + 2 * FRAME, inset.height + 2 * FRAME), "#206bc4")
        framed.paste(inset, (FRAME, FRAME))
        both = whole.convert("RGB")
        both.paste(framed, (both.width - framed.width - MARGIN, both.height - framed.height - MARGIN))
        into = io.BytesIO()
        both.save(into, "PNG")
        return into.getvalue()


def _keep(taken: bytes, path: Path) -> None:
    """With a palette, which is a third of the bytes."""
    with Image.open(io.BytesIO(taken)) as whole:
        upper = whole.convert("RGB").crop((0, 0, whole.width, min(whole.height, TALLEST)))
        few = upper.quantize(COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        few.save(path, optimize=True)


def _around(boxes: Sequence[FloatRect]) -> FloatRect | None:
    """What encloses all of them, if there are any."""
    if not boxes:
        return None
    left, top = min(box["x"] for box in boxes), min(box["y"] for box in boxes)
    right = max(box["x"] + box["width"] for box in boxes)
    bottom = max(box["y"] + box["height"] for box in boxes)
    return {"x": left, "y": top, "width": right - left, "height": bottom - top}


def sign_in(page: Page, stack: Stack) -> None:
    """As the admin."""
    page.goto("/sign-in")
    page.fill("#id_username", ADMIN)
    page.fill("#id_password", stack.password)
    page.press("#id_password", "Enter")
    page.wait_for_url("/")


def show_again(page: Page, stack: Stack) -> None:
    """Who one is: for a few minutes, the pages that change how one signs in ask no more."""
    page.goto("/sign-in/again?next=/settings/sign-in")
    page.fill("#id_password", stack.password)
    page.press("#id_password", "Enter")
    page.wait_for_url("/settings/sign-in")


def _take(page: Page, address: str, path: Path) -> None:
    page.goto(address)
    page.wait_for_timeout(SETTLED_MS)
    page.screenshot(path=path)


def _wanted(pictures: Mapping[str, Picture], asked: Collection[str]) -> dict[str, Picture]:
    return {name: each for name, each in pictures.items() if not asked or name in asked}


def _of_slurm(asked: Collection[str]) -> None:
    """With a Slurm of its own."""
    with slurm.server() as engine, tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        settings = {**MACHINE, **TLS, "CONSOLE_SLURM_FOLDER": folder}
        with chromium() as browser, running(settings) as stack:
            jobs = fill_slurm(stack, engine)
            every = {"waits": f"/jobs/{jobs['waits']}/", "nodes": "/nodes/", "others": "/jobs/others"}
            illustrate(browser, stack, every, _wanted(ON_SLURM, asked))


def main() -> None:
    """Start a console, fill it, photograph it."""
    parser = argparse.ArgumentParser(prog="make screenshots", description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    parser.add_argument(
        "--docs", action="store_true", help="only the pictures in docs/images, each by its name"
    )
    parser.add_argument("--slurm", action="store_true", help="the pictures of docs/slurm.md, with --docs")
    options = parser.parse_args()
    asked = options.pages
    if options.docs and options.slurm:
        _of_slurm(asked)
        return
    began = time.monotonic()
    settings = {**MACHINE, **TLS, **(AS_DELIVERED if options.docs else {})}
    with chromium() as browser, running(settings) as stack:
        every = pages(fill(stack))
        known = IN_DOCS if options.docs else every
        if unknown := set(asked) - set(known):
            parser.error(f"there is no page {', '.join(sorted(unknown))}; there are {', '.join(known)}")
        if options.docs:
            illustrate(browser, stack, every, _wanted(IN_DOCS, asked))
            return
        photograph(browser, stack, {name: at for name, at in every.items() if not asked or name in asked})
    print(f"{INTO}: {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
