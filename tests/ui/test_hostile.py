"""Goals, outputs, errors and questions that are written to be more than text, looked at in the browser."""

import asyncio
import re
from typing import Any

import pytest
from doubles.chromium import BROWSER
from doubles.layout import flaws
from doubles.runs import call, until
from doubles.web_stack import Handle, WebStack
from doubles.webui import HOSTILE, WebUI
from playwright.async_api import FrameLocator, Route, expect

from sennit.starter.client.request import markdown_summary

pytestmark = BROWSER
TEXTS = {
    "html": f"""</td></tr></table><script>alert(1)</script><img src=//img{HOSTILE} onerror=alert(2)><h1>big
<iframe src="https://frame{HOSTILE}"></iframe><form action="https://form{HOSTILE}"><input autofocus><button>Go</button>
<style>*{{display:none}}</style><meta http-equiv=refresh content="0;url=https://meta{HOSTILE}"><marquee>""",
    "svg": f"""</text></svg><svg onload=alert(1)><image href="https://image{HOSTILE}"/><text x=0>out</text>
<a href="javascript:alert(2)">a<animate attributeName=href to=javascript:alert(3)></a><foreignObject>
<body onload=alert(4)></foreignObject>""",
    "markdown": f"""# heading
![i](https://img{HOSTILE}) [link](https://link{HOSTILE}) [js](javascript:alert(1)) https://auto{HOSTILE}/x
```
fence
- | a | b |
> quote <https://angle{HOSTILE}> www.www{HOSTILE} mail@mail{HOSTILE}
[ref]: https://ref{HOSTILE}
*** ~~x~~ `tick` ``` {{namespace}} &lt;b&gt; &#60;script&#62; $1$""",
    "long": "W" * 5_000 + " " + "slow\u00adly" * 200,
    "scripts": "\u202eevil \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \u2066x\u2069 "
    "👩‍👩‍👧‍👦🏳️‍🌈 Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324a 日本語テキスト" * 5,
    "huge": "0123456789 abcde " * 6_200,
}
PAIRS = (("html", "svg"), ("markdown",), ("scripts",), ("long", "huge"))
"""A board shows no more questions than two texts have."""
FOREIGN = (
    "script, style, img, iframe, form, input, button, meta, marquee, h1, del, image, foreignObject, "
    "pre > :not(code), pre code *"
)


async def made_of(stack: WebStack, kinds: tuple[str, ...]) -> Handle:
    """A blocked run that has these texts wherever a run can have any."""
    nodes: list[dict[str, Any]] = [call("i" * 40)]
    for kind in kinds:
        text = TEXTS[kind]
        nodes += [
            call(f"said_{kind}", args={"value": text}),
            call(f"broke_{kind}", "fail", args={"message": text[:3_000]}),
            call(f"written_{kind}", "note", args={"text": text}),
            {"id": f"asked_{kind}", "kind": "gate", "question": text[:1_500]},
        ]
    nodes.append({"id": "all", "kind": "join", "inputs": [node["id"] for node in nodes[1:]]})
    goal = "\n".join(TEXTS[kind] for kind in kinds)[:30_000]
    run = await stack.start(
        "hostile", goal=goal, plan={"nodes": nodes, "answer": "$all"}, summary=markdown_summary(goal)
    )
    await until(run, lambda view: view["status"] == "blocked" and view["counts"].get("waiting") == 2 * len(kinds))
    return run


async def outsiders(place: FrameLocator) -> list[str]:
    """Return what stands in a rendered text that no part of Sennit has written there. An address may lead to itself."""
    found: list[str] = await place.locator("main").evaluate(
        """(main, foreign) => [
          ...[...main.querySelectorAll(foreign)].map(part => part.outerHTML.slice(0, 100)),
          ...[...main.querySelectorAll("a")].filter(a => !a.textContent.startsWith("https://")).map(a => String(a.href))
            .filter(href => !href.startsWith(location.origin + "/namespaces/")),
          ...[...main.querySelectorAll("*")].flatMap(part => part.getAttributeNames())
            .filter(name => name.startsWith("on")),
        ]""",
        FOREIGN,
    )
    return found


@pytest.mark.parametrize("kinds", PAIRS, ids=str)
async def test_hostile_text_stays_text_on_every_page(ui: WebUI, stack: WebStack, kinds: tuple[str, ...]) -> None:
    run = await made_of(stack, kinds)
    await ui.open(run)
    await ui.wait_for_bar(f"said_{kinds[0]} nap")
    await ui.turn("user-metadata")
    for node in ("all", *(f"{part}_{kind}" for kind in kinds for part in ("said", "broke", "written", "asked"))):
        await expect(ui.board.get_by_text(node, exact=True).first).to_be_visible()
    for kind in kinds:
        await expect(ui.board.get_by_text(f'{{"node": "written_{kind}"}}', exact=True).first).to_be_visible()
    assert await outsiders(ui.board) == []
    assert await ui.board.locator("pre").count() <= 2 * len(kinds), "one for each of the questions"
    await expect(ui.board.get_by_role("link", name=re.compile("https?:"))).to_have_count(0)
    assert await flaws(ui.board) == []
    assert await outsiders(ui.page.frame_locator("#user-metadata-summary")) == []
    assert await ui.warnings() == []
    await ui.turn("queries")
    assert '"status": "blocked"' in await ui.query("plan")
    await asyncio.sleep(0.2)  # what would have been executed or fetched has begun by then


async def test_an_error_is_an_alarm_unless_it_is_of_the_pages_own_scripts(ui: WebUI) -> None:
    origin = ui.url.partition("/namespaces")[0]
    scripts = {f"{origin}/_app/own.js": "[0].forEach(() => null.own)", f"{origin}/else.js": "null.other"}
    texts = "<script>null.inline</script><script>eval('null.text')</script><img src=x: onerror='null.handler'>"
    page = "".join(f'<script src="{address}"></script>' for address in scripts) + texts

    async def serve(route: Route) -> None:
        address = route.request.url
        kind = "text/javascript" if address in scripts else "text/html"
        await route.fulfill(body=scripts.get(address, page), content_type=kind)

    await ui.page.route(f"{origin}/**", serve)
    await ui.page.goto(f"{origin}/page")
    async with asyncio.timeout(100):
        while len(ui.alarms) < 4:
            await asyncio.sleep(0.02)
    errors = sorted(alarm.split("'")[1] for alarm in ui.alarms)
    ui.alarms.clear()
    assert errors == ["handler", "inline", "other", "text"]
