"""The page as a person uses it: mouse, keyboard, phone; every page is checked by axe in both themes."""

from __future__ import annotations

from pathlib import Path

import pytest
from served_view import ViewPage, served
from viewed_run import write_viewed_run

EPISODE, VIDEO, HOSTILE_ONE, FAILED = (
    "#rollout/grpo_s0/36/21",
    "#rollout/grpo_s0/36/17",
    "#rollout/grpo_s0/39/12",
    "#rollout/grpo_s0/39/23",
)
EVERY = (
    "#curves",
    "#health",
    "#rollouts",
    "#rollout/grpo_s0/39/0",
    EPISODE,
    VIDEO,
    FAILED,
    "#compare",
    "#compare/grpo_s0/36/21",
    "#time",
)


def rows(page: ViewPage) -> int:
    page.until("document.querySelectorAll('.list .row').length > 0")
    return int(page.value("document.querySelectorAll('.list .row').length"))


def test_curves_overlay_runs_and_seeds(page: ViewPage) -> None:
    panels = page.texts(".grid h3")
    assert panels[:4] == ["reward/mean", "heldout/accuracy_greedy", "reward/answer_exact", "reward/tags"]
    assert set(page.texts(".controls .legend span")) == {"grpo (2 seeds)", "faster"}
    lines = "document.querySelectorAll('.grid .panel:first-child .plot polyline').length"
    page.until(f"{lines} === 2")
    assert page.value("document.querySelectorAll('.grid .panel .band').length") > 0
    page.press(".check input")
    page.until(f"{lines} === 3")
    page.press(".check input")
    page.until(f"{lines} === 2")
    page.choose(".controls select", "hours")
    page.until("document.querySelector('.plot') && !document.body.dataset.busy")
    page.value("document.querySelector('.plot').focus()")
    page.until("document.querySelector('.plot svg')")
    page.key("ArrowRight")
    page.until("document.querySelector('.tip:not([hidden])')")
    assert page.text(".tip:not([hidden]) b").startswith("hour ")
    page.choose(".controls select", "step")
    page.choose(".controls input[type=range]", "10")
    page.until("document.querySelector('.grid .panel svg .faint')")
    page.choose(".controls input[type=range]", "1")
    page.choose("#find", "entropy")
    page.until("document.querySelectorAll('.grid .panel').length === 1")
    page.choose("#find", "")


def test_a_run_is_hidden_and_shown(page: ViewPage) -> None:
    page.until("document.querySelector('.grid .panel polyline')")
    page.press("#runs button:nth-child(3)")
    page.until("document.querySelector('.grid .panel svg')?.querySelectorAll('polyline').length === 1")
    assert (
        page.value("document.querySelector('#runs button:nth-child(3)').getAttribute('aria-pressed')")
        == "false"
    )
    page.press("#runs button:nth-child(3)")
    page.until("document.querySelector('.grid .panel svg')?.querySelectorAll('polyline').length === 2")


def test_health_marks_what_is_unusual_and_leads_to_its_rollouts(page: ViewPage) -> None:
    page.go("#health")
    kinds = page.texts(".of-run:nth-of-type(2) .finding h3")
    assert any("entropy collapse" in kind for kind in kinds) and any("KL spike" in kind for kind in kinds)
    page.until("document.querySelector('.oddmark')")
    page.press(".finding a[href*='kind=failed']")
    page.until(
        "document.body.dataset.page === 'rollouts' && document.querySelectorAll('.list .row').length > 0"
    )
    assert "of 960 rollouts" in page.text(".side .count") and set(page.texts(".list .name")) <= {
        "desk-000",
        "desk-001",
        "desk-002",
    }


def test_the_list_holds_what_is_seen_only(page: ViewPage) -> None:
    page.go("#rollouts?view=rollouts")
    page.until("document.querySelector('.side .count').textContent.startsWith('960 rollouts')")
    assert rows(page) < 30
    page.value("document.querySelector('.list').scrollTop = 30000")
    page.until("document.querySelector('.list .row').index > 300")
    assert rows(page) < 30


def test_sorting_filtering_and_searching(page: ViewPage) -> None:
    page.go("#rollouts?sort=worst&view=rollouts&kind=scored&source=shapes")
    page.until("document.querySelectorAll('.list .row').length > 5")
    assert page.texts(".list .mean")[0] == "0.10"
    page.choose(".filters select", "best")
    page.until("document.querySelector('.list .mean').textContent === '1.10'")
    page.go("#rollouts?view=rollouts&text=TYPETEXT%20nothing-such")
    page.until("document.querySelector('.side .count').textContent.startsWith('0 of')")
    page.choose("#find", "typetext")
    page.until("document.querySelector('.side .count').textContent.startsWith('160 of 960')")
    page.go("#rollouts?from=5&to=6&max=0.5&min=0")
    page.until("document.querySelectorAll('.list .row').length > 0")
    assert {text.split()[1] for text in page.texts(".list .line .soft")} <= {"5", "6"}


def test_a_rollout_by_keyboard(page: ViewPage) -> None:
    page.go("#rollouts?kind=failed")
    page.until("location.hash.startsWith('#rollout/grpo_s0/39/23') && document.querySelector('.episode')")
    page.key("j")
    page.until("location.hash.startsWith('#rollout/grpo_s0/38/23')")
    page.until("document.querySelector('.rollout').ariaLabel.endsWith('step 38')")
    page.key("k")
    page.until("location.hash.startsWith('#rollout/grpo_s0/39/23')")
    page.until("document.querySelector('.rollout').ariaLabel.endsWith('step 39')")
    assert page.text(".turn-at") == "Turn 1 of 4"
    assert "exit code 139" in page.text(".failure") and page.text(".score b") == "no score"
    page.key("ArrowRight")
    page.until("document.querySelector('.turn-at').textContent === 'Turn 2 of 4'")
    assert page.text(".gesture") == "drag at (200, 300) to (520, 380) on slider"
    assert (
        page.value(
            "document.querySelector('.stage .marks polyline').getAttribute('points').split(' ').length"
        )
        == 4
    )
    assert page.value("document.querySelector('.stage .marks rect').getAttribute('width')") == "380"
    page.key("p")
    page.until("location.hash.startsWith('#rollout/grpo_s0/39/22')")
    page.key("/")
    page.until("document.activeElement.id === 'find'")
    page.key("Escape")
    page.key("?")
    page.until("document.querySelector('#keys').open")
    assert "next and previous in the list" in page.text("#keys")
    page.press("#keys button")
    page.until("!document.querySelector('#keys').open")
    page.key("1")
    page.until("document.body.dataset.page === 'curves'")


def test_back_before_the_next_was_loaded_keeps_the_turn_that_was_reached(page: ViewPage) -> None:
    page.go("#rollout/grpo_s0/20/23?kind=failed")
    page.until("document.querySelector('.episode') && document.querySelectorAll('.list .row').length > 1")
    page.key("ArrowRight")
    page.until("document.querySelector('.turn-at').textContent === 'Turn 2 of 4'")
    page.value("window.quick = fetch; window.fetch = () => new Promise(() => {}); 0")  # nothing arrives
    try:
        page.key("j")
        page.until("document.querySelector('.detail').ariaBusy === 'true'")
        page.key("k")
        page.until("document.querySelector('.detail').ariaBusy !== 'true'")
    finally:
        page.value("window.fetch = window.quick; 0")
    page.key("ArrowRight")
    page.until("document.querySelector('.turn-at').textContent === 'Turn 3 of 4'")


def test_a_click_on_a_member_opens_it(page: ViewPage) -> None:
    page.go("#rollouts")
    page.until("document.querySelectorAll('.list .row').length > 5")
    page.press(".list .row:nth-child(2) .signs .sign:nth-child(3)")
    page.until("document.querySelector('.members a:nth-child(3)')?.getAttribute('aria-current') === 'page'")


def test_a_video_has_its_frames_on_a_time_line(page: ViewPage) -> None:
    page.go(VIDEO)
    page.until("document.querySelectorAll('.film .cell').length === 8")
    assert page.texts(".film .cell span")[:3] == ["0.0 s", "0.5 s", "1.0 s"]
    page.key("ArrowRight")
    page.until("document.querySelector('.scrub output').textContent === '0.5 s · 2/8'")
    assert "translateX(-12.5%)" in page.value("document.querySelector('.stage-image img').style.transform")


def test_tokens_are_coloured_and_read(page: ViewPage) -> None:
    page.go("#rollout/grpo_s0/39/0")
    page.until("document.querySelector('.tokens')")
    assert page.texts("#colour option") == [
        "what was generated",
        "log-probability when sampled",
        "log-ratio, trainer − sampler",
        "weight version",
        "entropy",
        "advantage",
    ]
    assert page.value("document.querySelectorAll('.tokens .gen').length") > 10
    assert "▦×12" in page.text(".tokens")
    for mode, name in (
        ("ratio", "[class*=' d']"),
        ("entropy", ".q0"),
        ("version", ".v1"),
        ("advantage", "[class*=' d']"),
        ("logprob", ".q0"),
    ):
        page.choose("#colour", mode)
        page.until(f'document.querySelectorAll(".tokens {name}").length > 0')
    page.value("document.querySelector('.tokens').focus()")
    page.key("ArrowRight")
    assert page.text(".token-told").startswith("token 0 · id ")
    page.value(
        "document.querySelector('.tokens .q0').dispatchEvent(new PointerEvent('pointerover', "
        "{bubbles: true}))"
    )
    assert all(
        word in page.text(".token-told")
        for word in ("logprob", "log-ratio", "entropy", "advantage", "version")
    )
    page.choose("#colour", "mask")


def test_the_image_is_shown_large_beside_the_prompt(page: ViewPage) -> None:
    for width in (1280, 390):
        page.screen(width, 844)
        page.go("#rollout/grpo_s0/39/0")
        page.until("document.querySelector('.images img')?.naturalWidth === 336")
        box = "(b => [b.width, b.height])(document.querySelector('.images .frame').getBoundingClientRect())"
        shown_width, shown_height = page.value(box)
        assert shown_width > 250 and abs(shown_width / shown_height - 336 / 252) < 0.02


def test_reward_parts_are_explained(page: ViewPage) -> None:
    page.go("#rollout/grpo_s0/39/0")
    page.until("document.querySelector('.parts .words')")
    assert "answer" in page.text(".parts tbody tr .words").lower() and "weight 1.0" in page.text(
        ".parts tbody tr .words"
    )


def test_what_a_reward_says_of_the_rollout_stands_beside_its_part(page: ViewPage) -> None:
    page.go("#rollout/grpo_s0/39/0")
    page.until("document.querySelector('.parts .why')")
    assert page.value("document.querySelectorAll('.parts .why').length") == 1
    assert page.text(".parts .why") == "<b>one</b> tag"


def test_the_same_prompt_through_training(page: ViewPage) -> None:
    page.go("#rollout/grpo_s0/39/12")
    page.until("document.querySelector('.rollout .fold summary')")
    page.value("document.querySelector('.rollout .fold').open = true")
    page.until("document.querySelectorAll('.same li').length === 40")
    page.value("document.querySelector('.rollout .fold .plot').scrollIntoView()")
    page.until(
        "document.querySelectorAll('.rollout .fold svg .mark').length > 40"
    )  # one mark a step, both runs
    page.value("document.querySelector('.same li a').click()")
    page.until(
        "location.hash.startsWith('#rollout/grpo_s0/0/12') && document.querySelector('.rollout "
        ".soft').textContent.startsWith('step 0')"
    )


def test_two_rollouts_side_by_side_and_most_changed(page: ViewPage) -> None:
    page.go("#compare")
    page.until("document.querySelectorAll('.changes li').length > 10")
    page.choose("fieldset:nth-of-type(2) select", "grpo_s0")
    page.until("document.querySelector('fieldset:nth-of-type(2) select').value === 'grpo_s0'")
    page.press(".changes li a")
    page.until("document.querySelectorAll('.sides .rollout').length === 2")
    assert len(set(page.texts(".sides h2"))) == 1
    page.go("#compare/grpo_s0/36/20/faster/0/20")
    page.until("document.querySelectorAll('.sides .episode').length === 2")
    page.key("ArrowRight")
    page.until("[...document.querySelectorAll('.turn-at')].every(e => e.textContent === 'Turn 2 of 4')")


def test_time_has_parts_and_a_timeline(page: ViewPage) -> None:
    page.go("#time")
    page.until("document.querySelectorAll('.span').length > 50")
    assert page.texts("table th[scope=row]")[:6] == ["generate", "reward", "train", "sync", "wait", "other"]
    page.value("document.querySelector('.span').dispatchEvent(new PointerEvent('pointerenter'))")
    assert page.text(".wide .hint").startswith("trainer: tokens are generated, 0.6 s")


def test_hostile_text_is_shown_and_never_run(page: ViewPage) -> None:
    page.go(HOSTILE_ONE)
    page.until("document.querySelector('.tokens')")
    shown = page.text(".rollout")
    assert "<script>window.hacked = 1</script>" in shown and "onerror=" in shown
    assert "⟨U+202E⟩gnp.exe⟨U+202C⟩" in shown and "⟨U+200B⟩" in shown and "␛[31m␀" in shown
    assert page.value("typeof window.hacked") == "undefined"
    assert page.value("document.querySelectorAll('main script, main img[src=x]').length") == 0
    assert page.value("document.documentElement.scrollWidth") == 1280
    page.value("document.querySelector('.said .more').click()")
    page.until("[...document.querySelectorAll('.said')].some(each => each.textContent.length > 50000)")
    page.go("#rollouts?text=hacked")
    page.until("document.querySelector('.side .count').textContent.startsWith('4 of')")
    page.go("#rollout/%3Cscript%3E/1/2")
    page.until("document.querySelector('.detail .empty, main .empty')")
    assert page.value("typeof window.hacked") == "undefined"


def test_the_policy_stops_scripts_that_get_in(page: ViewPage) -> None:
    page.value(
        "(e => { e.textContent = 'window.hacked = 2'; document.body.append(e); })"
        "(document.createElement('script'))"
    )
    page.value(
        "(e => { e.innerHTML = `<img src=x onerror='window.hacked = 3'>`; document.body.append(e);"
        " setTimeout(() => e.remove(), 200); })(document.createElement('div'))"
    )
    page.value("new Promise(done => setTimeout(done, 400))")
    assert page.value("typeof window.hacked") == "undefined"


def test_broken_images_are_told(page: ViewPage, run_dirs: list[Path]) -> None:
    page.go("#rollout/faster/5/0")
    page.until("document.querySelector('.images img')")
    name = page.value("document.querySelector('.images img').src.split('/').pop()")
    file = run_dirs[2] / "media" / name
    kept = file.read_bytes()
    try:
        file.write_text("<svg xmlns='http://www.w3.org/2000/svg' onload='window.hacked = 1'/>")
        page.call("Network.clearBrowserCache")
        page.go("#curves")
        page.go("#rollout/faster/5/1")
        page.until("document.querySelector('.images .lost, .images img')")
        page.value(
            "document.querySelector('.images img') && (document.querySelector('.images img').src += '?again')"
        )
        page.until("document.querySelector('.images .lost')")
        assert page.value("typeof window.hacked") == "undefined"
    finally:
        file.write_bytes(kept)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_contrast_names_and_roles(page: ViewPage, width: int, theme: str) -> None:
    page.screen(width, 900, theme=theme)
    wrong = []
    for address in EVERY:
        page.go(address)
        page.value("new Promise(done => setTimeout(done, 150))")
        wrong += [f"{address}: {each}" for each in page.violations()]
        assert page.value("document.documentElement.scrollWidth") <= width, address
        if address.endswith("/39/0"):
            for mode in ("ratio", "entropy", "version", "advantage", "logprob", "mask"):
                page.choose("#colour", mode)
                wrong += [f"{mode}: {each}" for each in page.violations()]
    assert not wrong, "\n".join(wrong)


def test_a_phone_shows_the_list_or_the_rollout(page: ViewPage) -> None:
    page.screen(390, 844)
    page.go("#rollouts?kind=failed")
    page.until("document.querySelectorAll('.list .row').length > 3")
    assert not page.value("document.querySelector('.detail').checkVisibility()")
    page.press(".list .row")
    page.until(
        "document.querySelector('.rollout')?.checkVisibility() && "
        "!document.querySelector('.list').checkVisibility()"
    )
    page.press(".back")
    page.until("document.querySelector('.list').checkVisibility()")
    assert location_keeps(page, "kind=failed")


def location_keeps(page: ViewPage, words: str) -> bool:
    return words in str(page.value("location.hash"))


def test_new_steps_arrive_without_a_reload(tmp_path: Path) -> None:
    writer = write_viewed_run(tmp_path / "live", 3)
    with (
        served([tmp_path / "live"]) as server,
        ViewPage(f"{server.url}#rollouts", tmp_path / "profile") as page,
    ):
        page.start()
        page.until("document.querySelector('.side .count').textContent.startsWith('72 rollouts')")
        assert page.text("#live") == "live"
        page.value("document.querySelector('.list').scrollTop = 300")
        page.until("document.querySelector('.list').scrollTop === 300")
        writer.step(3, [writer.question(77, 1.0)])
        page.until("document.querySelector('.side .count').textContent.startsWith('76 rollouts')")
        assert (
            page.value("document.querySelector('.list').scrollTop") == 300 + 76
        )  # what is read stays where it is
        page.go("#curves")
        page.until("document.querySelector('.panel .mark')")
        before = page.value("document.querySelector('.plot').getAttribute('aria-label')")
        writer.log(4)
        page.until(f"document.querySelector('.plot').getAttribute('aria-label') !== {before!r}")
        assert not page.errors


def test_a_run_before_its_first_rollouts(tmp_path: Path) -> None:
    writer = write_viewed_run(tmp_path / "early", 0)
    writer.log(0)
    with (
        served([tmp_path / "early"]) as server,
        ViewPage(f"{server.url}#rollouts", tmp_path / "profile") as page,
    ):
        page.start()
        assert "kept no rollouts" in page.value("document.querySelector('.list').dataset.words")
        for address in ("#health", "#time", "#compare", "#curves"):
            page.go(address)
            assert page.text("main") and not page.errors
