"""What widgets do when they are clicked, dragged and typed into."""

from __future__ import annotations

from collections.abc import Callable

from gallery import Bench

from vlrl.envs.gui.actions import (
    ButtonDown,
    ButtonUp,
    Click,
    Drag,
    Key,
    KeyDown,
    KeyUp,
    Move,
    Scroll,
    TypeText,
)
from vlrl.envs.gui.emu.input.events import Activate, Change, Command, Drop, KeyPress, Stroke
from vlrl.envs.gui.emu.oracle.intents import choose, menu, slide, type_into

MakeBench = Callable[..., Bench]


def test_a_button_sends_its_command_and_a_disabled_one_nothing(bench: MakeBench) -> None:
    desk = bench().click("press")
    assert desk.last == Command("press")
    desk.click("off")
    assert desk.state.events == (Command("press"),)
    assert desk.click("more").last == Command("more")


def test_a_click_counts_only_where_it_ends_where_it_began(bench: MakeBench) -> None:
    desk = bench()
    desk.do(ButtonDown(point=desk.where("press")), ButtonUp(point=desk.where("more")))
    assert desk.state.events == ()
    desk.do(ButtonDown(point=desk.where("press")), Move((1, 1)), ButtonUp(point=desk.where("press")))
    assert desk.last == Command("press")


def test_a_value_lands_in_the_field_of_the_state_that_has_its_name(bench: MakeBench) -> None:
    desk = bench().click("agreed").click("pet.dog")
    assert desk.state.agreed and desk.state.pet == "dog"
    assert desk.state.events == (Change("agreed", True), Change("pet", "dog"))
    assert "checked" in desk.element("checkbox", "Agree").states
    assert "checked" not in desk.element("radio", "Cat").states
    assert desk.click("count.more").state.count == 4
    assert desk.click("count.less").state.count == 3


def test_a_slider_is_clicked_dragged_and_moved_by_keys(bench: MakeBench) -> None:
    desk = bench().want(slide("level", 80))
    assert desk.state.level == 80 and desk.element("slider", "Level").value == "80"
    x0, y0, x1, y1 = desk.box("level")
    desk.do(Drag(((x0 + 5, (y0 + y1) // 2), (x1 + 200, y0 - 50))))
    assert desk.state.level == 100
    desk.do(Key(("left",)), Key(("left",)))
    assert desk.state.level == 90


def test_a_drop_down_list_is_chosen_from_by_mouse_and_keys(bench: MakeBench) -> None:
    desk = bench().want(choose("pet", "owl"))
    assert desk.state.pet == "owl" and desk.desktop.world.popup is None
    desk = bench()
    combo = desk.element("combobox", "Pet").box
    desk.do(Click(((combo[0] + combo[2]) // 2, (combo[1] + combo[3]) // 2)))
    assert [e.name for e in desk.desktop.elements() if e.role == "option"] == ["Cat", "Dog", "Owl"]
    desk.do(Key(("down",)), Key(("down",)), Key(("enter",)))
    assert desk.state.pet == "dog"


def test_a_menu_has_commands_shortcuts_and_deeper_menus(bench: MakeBench) -> None:
    assert bench().want(menu("file", "save")).last == Command("save")
    assert bench(menus="button").want(menu("file", "save")).last == Command("save")
    assert bench().do(Key(("ctrl", "s"))).last == Command("save")
    desk = bench().click("menu.file").do()
    desk.do(Move(desk.where("deeper"))).click("deepest")
    assert desk.last == Command("deepest")
    desk = bench().click("menu.file").click("no")
    assert desk.state.events == () and desk.desktop.world.popup is not None
    desk.do(Key(("escape",)))
    assert desk.desktop.world.popup is None
    desk.click("menu.file").click("press")  # a click elsewhere only puts the menu away
    assert desk.state.events == ()


def test_one_types_into_what_was_clicked(bench: MakeBench) -> None:
    desk = bench().click("city").do(TypeText("Porto"))
    assert desk.state.city == "Porto" and desk.element("textbox", "City").value == "Porto"
    assert "focused" in desk.element("textbox", "City").states
    desk.do(Key(("enter",)))
    assert desk.last == Activate("city", "Porto")
    desk.do(Key(("home",)), TypeText("O "), Key(("shift", "right")), Key(("delete",)))
    assert desk.state.city == "O orto"
    assert desk.want(type_into("city", "Graz")).state.city == "Graz"


def test_an_area_has_lines_words_and_paragraphs(bench: MakeBench) -> None:
    desk = bench()
    x0, y0, _, _ = desk.box("story")
    word = (x0 + 45, y0 + 10)
    desk.do(Click(word, count=2), TypeText("2"))
    assert desk.state.story == "one 2 three\nfour five six"
    desk.do(Click(word, count=3), TypeText("line"))
    assert desk.state.story == "line\nfour five six"
    desk.do(Key(("down",)), Key(("end",)), TypeText("\nend"))
    assert desk.state.story == "line\nfour five six\nend"
    desk.do(Key(("ctrl", "backspace")), Key(("backspace",)))
    assert desk.state.story == "line\nfour five six"


def test_text_is_selected_cut_copied_pasted_and_undone(bench: MakeBench) -> None:
    desk = bench().click("story").do(Key(("ctrl", "home")))
    desk.do(KeyDown("shift"), Key(("right",)), Key(("right",)), Key(("right",)), KeyUp("shift"))
    desk.do(Key(("ctrl", "c")))
    assert desk.desktop.world.clipboard == "one"
    desk.click("city").do(Key(("ctrl", "v")), Key(("ctrl", "v")))
    assert desk.state.city == "oneone"
    desk.do(Key(("ctrl", "z")))
    assert desk.state.city == "one"
    desk.do(Key(("ctrl", "a")), Key(("ctrl", "x")))
    assert desk.state.city == "" and desk.desktop.world.clipboard == "one"
    x0, y0, x1, _ = desk.box("story")
    desk.do(Drag(((x0 + 3, y0 + 10), (x1 - 20, y0 + 10))), Key(("delete",)))
    assert desk.state.story == "\nfour five six"
    desk.do(Click((x0 + 8, y0 + 10), "right"))
    assert [e.name for e in desk.desktop.elements() if e.role == "menuitem"][-4:] == [
        "Cut",
        "Copy",
        "Paste",
        "Select all",
    ]
    desk.click("edit.paste")
    assert desk.state.story == "one\nfour five six"


def test_rows_are_selected_opened_scrolled_and_have_a_menu(bench: MakeBench) -> None:
    desk = bench("second").click("chosen.2")
    assert desk.state.chosen == 2 and "selected" in desk.element("option", "Row 2").states
    assert desk.click("chosen.3", count=2).last == Activate("chosen", 3)
    desk.do(Key(("down",)), Key(("enter",)))
    assert desk.last == Activate("chosen", 4)
    desk.do(*[Key(("page_down",))] * 9)
    assert desk.state.chosen == 39 and "hidden" not in desk.element("option", "Row 39").states
    desk.do(Scroll(0, -9999, desk.where("chosen")))
    desk.click("chosen.1", button="right").click("rename")
    assert desk.state.chosen == 1 and desk.last == Command("rename", 1)
    x0, y0, _, y1 = desk.box("chosen.bar")
    desk.do(Drag(((x0 + 4, y0 + 4), (x0 + 4, y1))))
    assert "hidden" not in desk.element("option", "Row 39").states


def test_several_rows_are_selected_with_ctrl_and_shift(bench: MakeBench) -> None:
    desk = bench("second").click("many.1").click("many.4", modifiers=("ctrl",))
    assert desk.state.many == (4, 1)
    assert desk.click("many.1", modifiers=("ctrl",)).state.many == (4,)
    assert desk.click("many.6", modifiers=("shift",)).state.many == (4, 5, 6)
    assert len(desk.do(Key(("ctrl", "a"))).state.many) == 30
    assert desk.click("many.sort.1").last == Command("many.sort", 1)


def test_a_row_is_dragged_onto_another_one_and_into_another_list(bench: MakeBench) -> None:
    desk = bench("second")
    desk.do(Drag((desk.where("many.2"), desk.where("many.5"))))
    assert desk.last == Drop("many", 2, 5)
    desk.do(Drag((desk.where("many.2"), desk.where("chosen.3"))))
    assert desk.last == Drop("chosen", 2, 3)
    before = desk.state.events
    desk.do(Drag((desk.where("chosen.2"), desk.where("chosen.5"))))  # that list's rows cannot be dragged
    assert desk.state.events == before


def test_a_canvas_is_drawn_on_in_its_own_pixels(bench: MakeBench) -> None:
    desk = bench("third")
    x, y, _, _ = desk.box("board")
    desk.do(Drag(((x + 3, y + 4), (x + 10, y + 20), (x + 30, y + 4))))
    assert desk.last == Stroke("board", ((3, 4), (10, 20), (30, 4)))
    desk.do(Click((x + 7, y + 8)))
    assert desk.last == Stroke("board", ((7, 8),))


def test_an_area_scrolls_to_what_is_below(bench: MakeBench) -> None:
    desk = bench("third")
    assert "hidden" in desk.element("checkbox", "Line 29").states
    desk.do(Scroll(0, 5000, desk.where("long")))
    assert "hidden" not in desk.element("checkbox", "Line 29").states
    assert desk.click("line29").last == Change("line29", True)


def test_tab_goes_from_widget_to_widget_and_keys_work_them(bench: MakeBench) -> None:
    desk = bench().click("press").do(Key(("tab",)), Key(("tab",)), Key(("space",)))
    assert desk.state.agreed
    desk.do(Key(("shift", "tab")), Key(("enter",)))
    assert desk.last == Command("more")
    desk.do(Key(("ctrl", "b")), Key(("f5",)))
    assert desk.state.events[-2:] == (KeyPress("ctrl+b"), KeyPress("f5"))
