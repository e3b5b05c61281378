"""<log-view> in a real browser: what bytes become, the window into a long log, and following its end."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.static.pages import put_log
from tests.static.site import Site
from tests.waiting import wait_for

pytestmark = pytest.mark.browser


def lines(page: Page) -> list[str]:
    """The log's rows, as text."""
    found: list[str] = page.eval_on_selector_all(".log-line", "rows => rows.map(row => row.textContent)")
    return found


def wait_for_others(page: Page, edge: int, line: str) -> list[str]:
    """The rows, once the first (0) or the last (-1) of them is another than `line`."""

    def others() -> list[str]:
        found = lines(page)
        return [] if found[edge] == line else found

    return wait_for(others)


def numbered(first: int, last: int) -> bytes:
    return b"".join(b"line %d\n" % number for number in range(first, last))


def open_log(page: Page, site: Site) -> None:
    put_log(site)
    page.goto("/")
    expect(page.locator("log-view")).to_have_attribute("data-following", "")


# What bytes become -----------------------------------------------------------------------------------


def test_hostile_bytes_are_shown_as_text_without_effect(page: Page, site: Site) -> None:
    site.log += (
        b"<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>\n"
        b"\x1b]8;;javascript:window.hacked=1\x07a link\x1b]8;;\x07 and \x1b]0;a title\x1b\\after\n"
        b"\x1bPdevice string\x1b\\\x1b_application\x1b\\kept\x1b[2J\x1b[10;10H\x1b[?25l\n"
        b"\x1b]52;c;c3RvbGVu\x07\x00\x07\x08bell\xc2\x9b31mC1\n"
        b"\xff\xfe not UTF-8 \xe6\x97\n"
    )
    open_log(page, site)
    expect(page.locator(".log-line")).to_have_count(5)
    assert lines(page) == [
        "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>",
        "a link and after",
        "kept",
        "bell31mC1",
        "\ufffd\ufffd not UTF-8 \ufffd",
    ]
    assert page.evaluate("window.hacked") is None
    assert page.locator(".log-lines a, .log-lines img, .log-lines script").count() == 0


def test_colours_become_classes_and_carry_over_lines(page: Page, site: Site) -> None:
    site.log += (
        b"\x1b[1;31mred\nstill red\x1b[0m plain \x1b[38;5;208mpalette\x1b[0m \x1b[48;2;1;2;3mtrue\x1b[0m\n"
    )
    open_log(page, site)
    expect(page.locator(".ansi-bold.ansi-red-fg")).to_have_text(["red", "still red"])
    expect(page.locator(".ansi-any-fg")).to_have_text("palette")
    expect(page.locator(".ansi-any-bg")).to_have_text("true")


def test_progress_bar_overwrites_itself(page: Page, site: Site) -> None:
    open_log(page, site)
    for percent in range(0, 101, 10):
        site.log += b"\r%3d%%|bar" % percent
    expect(page.locator(".log-line")).to_have_text(["100%|bar"])
    site.log += b"\r\nnext\r\n"
    expect(page.locator(".log-line")).to_have_text(["100%|bar", "next"])


def test_characters_and_sequences_split_between_chunks_become_whole(page: Page, site: Site) -> None:
    open_log(page, site)
    expect(page.locator("[data-live-status]")).to_have_attribute("data-state", "live")
    parts = (
        b"\xe6",
        b"\x97\xa5\xe6\x9c",
        b"\xac \x1b",
        b"[3",
        b"2mgreen\x1b]8;;http://x",
        b"\x07!\x1b[",
        b"0m\n",
    )
    for part in parts:
        site.log += part
        site.send_all()
    expect(page.locator(".log-line")).to_have_text(["日本 green!"])
    expect(page.locator(".ansi-green-fg")).to_have_text("green!")


def test_line_of_hundred_thousand_characters_is_cut_until_expanded(page: Page, site: Site) -> None:
    site.log += b"x" * 100_000 + b"\nafter\n"
    open_log(page, site)
    first = page.locator(".log-line").first
    more = first.get_by_role("button", name="show all 100,000 characters")
    expect(more).to_be_visible()
    assert len(lines(page)[0]) < 5000
    more.click()
    assert lines(page) == ["x" * 100_000, "after"]


def test_endless_line_is_broken_and_never_fills_the_page(page: Page, site: Site) -> None:
    site.log += b"y" * 3_000_000
    open_log(page, site)
    expect(page.locator(".log-line").first).to_be_visible()
    assert sum(map(len, lines(page))) < 200_000


# The window ------------------------------------------------------------------------------------------


def test_long_log_renders_few_rows_and_reaches_all_lines(page: Page, site: Site) -> None:
    site.log += numbered(0, 200_000)
    open_log(page, site)
    expect(page.locator(".log-line").last).to_have_text("line 199999")
    seen = lines(page)
    scroller = page.locator(".log-scroll")
    for _ in range(6):
        scroller.evaluate("element => { element.scrollTop = 0 }")
        seen = wait_for_others(page, 0, seen[0])
        assert len(seen) <= 2000
        start = int(seen[0].removeprefix("line "))
        assert seen == [f"line {number}" for number in range(start, start + len(seen))]
    page.get_by_role("button", name="Jump to the start").click()
    expect(page.locator(".log-line").first).to_have_text("line 0")
    seen = lines(page)
    for _ in range(4):
        scroller.evaluate("element => { element.scrollTop = element.scrollHeight }")
        seen = wait_for_others(page, -1, seen[-1])
    start = int(seen[0].removeprefix("line "))
    assert seen == [f"line {number}" for number in range(start, start + len(seen))]
    assert len(seen) <= 2000
    page.get_by_role("button", name="jump to the end").click()
    expect(page.locator(".log-line").last).to_have_text("line 199999")


def test_scrolling_up_preserves_the_reading_position(page: Page, site: Site) -> None:
    site.log += numbered(0, 50_000)
    open_log(page, site)
    expect(page.locator(".log-line").last).to_have_text("line 49999")
    first = lines(page)[0]
    at_top = """() => {
      const box = document.querySelector(".log-scroll").getBoundingClientRect();
      return document.elementFromPoint(box.x + 40, box.y + 30).textContent;
    }"""
    reading = page.evaluate(f"document.querySelector('.log-scroll').scrollTop = 300; ({at_top})()")
    wait_for_others(page, 0, first)
    assert page.evaluate(at_top) == reading


def test_lines_are_numbered_and_linked(page: Page, site: Site) -> None:
    site.log += numbered(1, 30_001) + b"z" * 300_000 + b"\nend\n"
    open_log(page, site)
    expect(page.locator(".log-line").last).to_have_attribute("data-line", "30002")
    page.evaluate("location.hash = '#L20000'")
    expect(page.locator(".log-line-here")).to_have_text("line 20000")
    expect(page.locator(".log-line-here")).to_be_in_viewport()
    rows = "rows => rows.every(row => row.textContent === `line ${row.dataset.line}`)"
    expect(page.locator(".log-line").first).to_have_attribute("data-line", re.compile("[0-9]+"))
    seen = lines(page)
    page.locator(".log-scroll").evaluate("element => { element.scrollTop = 0 }")
    wait_for_others(page, 0, seen[0])
    assert page.eval_on_selector_all(".log-line", rows)
    page.get_by_text("line 19999", exact=True).click(position={"x": 5, "y": 5})
    assert page.evaluate("location.hash") == "#L19999"
    page.reload()
    expect(page.locator(".log-line-here")).to_have_text("line 19999")


def test_flood_of_lines_is_followed_with_bounded_rows(page: Page, site: Site) -> None:
    open_log(page, site)
    for block in range(20):
        site.log += numbered(block * 50_000, (block + 1) * 50_000)
        page.evaluate("new Promise(requestAnimationFrame)")
        assert page.locator(".log-line").count() <= 2000
    expect(page.locator(".log-line").last).to_have_text("line 999999")
    seen = lines(page)
    assert seen == [f"line {number}" for number in range(1_000_000 - len(seen), 1_000_000)]


def test_truncation_gap_is_shown_and_passed_in_both_directions(page: Page, site: Site) -> None:
    site.state = "truncated"
    site.log += numbered(0, 40_000)
    start, end = site.log.index(b"line 300\n") + 4, site.log.index(b"line 39900\n") + 4
    site.gap = (start, end)
    expected = [*(f"line {number}" for number in range(300)), "line", "[left out]", " 39900"]
    expected += [f"line {number}" for number in range(39_901, 40_000)]
    open_log(page, site)
    expect(page.locator(".log-edge").last).to_have_text("End of the log.")
    page.locator(".log-scroll").evaluate("element => { element.scrollTop = 0 }")
    expect(page.locator(".log-line").first).to_have_text("line 0")
    assert lines(page) == expected
    page.get_by_role("button", name="Jump to the start").click()
    expect(page.locator(".log-line")).to_have_count(301)
    page.locator(".log-scroll").evaluate("element => { element.scrollTop = element.scrollHeight }")
    expect(page.locator(".log-edge").last).to_have_text("End of the log.")
    assert lines(page) == expected


def test_log_of_one_line_has_status_in_the_singular(page: Page, site: Site) -> None:
    site.state = "complete"
    site.log += b"only this\n"
    open_log(page, site)
    expect(page.locator('[data-log="status"]')).to_have_text("1 line, 10\u00a0B")


# Live ------------------------------------------------------------------------------------------------


def test_new_lines_are_followed_until_scrolling_up(page: Page, site: Site) -> None:
    site.log += numbered(0, 500)
    open_log(page, site)
    site.log += numbered(500, 501)
    expect(page.locator(".log-line").last).to_have_text("line 500")
    expect(page.locator(".log-line").last).to_be_in_viewport()
    page.locator(".log-scroll").evaluate("element => { element.scrollTop = 500 }")
    expect(page.get_by_role("button", name="Jump to the end")).to_be_visible()
    top = page.locator(".log-scroll").evaluate("element => element.scrollTop")
    site.log += numbered(501, 600)
    expect(page.locator(".log-line").last).to_have_text("line 599")
    assert page.locator(".log-scroll").evaluate("element => element.scrollTop") == top
    page.get_by_role("button", name="Jump to the end").click()
    expect(page.locator(".log-line").last).to_be_in_viewport()
    assert page.locator(".log-jump").is_hidden()


def followed_from(site: Site, count: int) -> list[int]:
    """Where the streams of the log were asked to begin, once there have been so many."""

    def offsets() -> list[int]:
        found = [int(query["offset"]) for query in site.asks("/stream") if "log" in query]
        return found if len(found) >= count else []

    return wait_for(offsets, timeout=60)


def test_log_view_after_lost_connections_has_no_gap_and_no_duplicate(page: Page, site: Site) -> None:
    open_log(page, site)
    for block in range(8):
        followed_from(site, block + 1)
        site.log += numbered(block * 40, block * 40 + 20)
        site.drop_streams()
        site.log += numbered(block * 40 + 20, block * 40 + 40)
        expect(page.locator(".log-line").last).to_have_text(f"line {block * 40 + 39}")
    assert lines(page) == [f"line {number}" for number in range(320)]
    offsets = followed_from(site, 9)
    assert offsets == sorted(offsets)
    assert site.most_open_streams <= 2  # the one that was cut may not have noticed yet


def test_invalid_bytes_in_live_text_do_not_shift_later_lines(page: Page, site: Site) -> None:
    open_log(page, site)
    site.log += b"\xff\xff\xff broken\n"
    expect(page.locator(".log-line").last).to_have_text("\ufffd\ufffd\ufffd broken")
    site.log += numbered(0, 50)
    expect(page.locator(".log-line").last).to_have_text("line 49")
    assert lines(page)[1:] == [f"line {number}" for number in range(50)]


def test_log_view_without_a_stream_polls_the_log(page: Page, site: Site) -> None:
    site.streaming = False
    site.log += numbered(0, 3)
    open_log(page, site)
    site.log += numbered(3, 6)
    expect(page.locator(".log-line").last).to_have_text("line 5")
    expect(page.locator("[data-live-status]")).to_have_attribute("data-state", "late")
    expect(page.locator("[data-live-status]")).to_have_text(re.compile(r"as of \d"))


def test_end_of_log_is_shown_and_its_stream_closed(page: Page, site: Site) -> None:
    open_log(page, site)
    site.log += b"last words\xe6"
    site.state = "complete"
    expect(page.locator(".log-edge").last).to_have_text("End of the log.")
    assert lines(page) == ["last words\ufffd"]
    wait_for(lambda: "log" not in site.asks("/stream")[-1])


def test_another_attempt_starts_a_new_log(page: Page, site: Site) -> None:
    site.log += numbered(0, 100)
    open_log(page, site)
    expect(page.locator(".log-line").last).to_have_text("line 99")
    site.log = bytearray(b"second attempt\n")
    site.attempt = 2
    expect(page.locator(".log-line")).to_have_text(["second attempt"])


def test_search_hit_is_listed_and_leads_to_its_line(page: Page, site: Site) -> None:
    site.log += numbered(0, 30_000) + b"\x1b[31mneedle\x1b[0m <b>\n" + numbered(30_000, 90_000)
    open_log(page, site)
    page.get_by_role("searchbox", name="Find in this log").fill("needle")
    page.keyboard.press("Enter")
    hit = page.locator(".log-hit")
    expect(hit).to_have_text("needle <b>")
    hit.click()
    here = page.locator(".log-line-here")
    expect(here).to_have_text("needle <b>")
    expect(here).to_be_in_viewport()
    assert page.locator(".log-line").count() <= 2000
    page.get_by_role("searchbox", name="Find in this log").press("Escape")
    expect(page.locator(".log-hits")).to_be_hidden()
