"""Forms in the browser: buy, join, book, write in a forum."""

from __future__ import annotations

from typing import Any

from vlrl.envs.gui.emu.apps.parts.mailbox import Letter, person
from vlrl.envs.gui.emu.oracle.intents import Intent, choose, click, open_app, type_into
from vlrl.envs.gui.emu.records import booking_record, cart_record, member_record, order_record
from vlrl.envs.gui.emu.sites import club, fly, shop
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.task import Draw, Predicate, Setup, template
from vlrl.envs.gui.emu.tasks.content.letters import address, mailbox, numbered
from vlrl.envs.gui.emu.tasks.content.web import (
    PEOPLE,
    STREETS,
    TOWNS_OF_SHOP,
    browse,
    flights,
    follow,
    goods,
    is_at,
)

SHOP, CART = f"{shop.HOST}/", f"{shop.HOST}/cart"


def cart_is(*things: tuple[str, str, int]) -> Predicate:
    """Whether just these are in the cart."""
    return lambda world: sorted(world.store["shop"].cart) == sorted(things)


def add(one: shop.Goods, colour: str, count: int) -> list[Intent]:
    """Steps that put goods from the list into the cart."""
    steps = [*follow(f"{shop.HOST}/item/{one.key}"), choose("colour", colour)]
    return [*steps, *[click("quantity.more")] * (count - 1), click("add")]


@template("forms/cart", levels=(1, 2, 3))
def cart(draw: Draw) -> Setup:
    """Things are to be put into the cart, of a colour and so many."""
    known, oracle, things, told = goods(draw), browse(SHOP), [], []
    for index, one in enumerate(draw.picks(known.goods, (draw.level + 1) // 2)):
        colour, count = draw.pick(shop.COLOURS[1:]), draw.number(1, draw.level + 1)
        things.append((one.key, colour, count))
        told.append(f"{one.name}, {colour}, quantity {count}")
        oracle += [*(follow(SHOP) if index else []), *add(one, colour, count)]
    return Setup(
        goal=f"Put this into the cart of {shop.HOST}: {'; '.join(told)}. Nothing else.",
        data={"shop": known},
        milestones={
            "found": lambda world: (
                is_at(f"{shop.HOST}/item/{things[0][0]}")(world) or bool(world.store["shop"].cart)
            ),
            "added": (2, cart_is(*things)),
        },
        changes=[cart_record(key, colour) for key, colour, _ in things],
        oracle=oracle,
    )


@template("forms/bargain", levels=(2, 3))
def bargain(draw: Draw) -> Setup:
    """The cheapest (or dearest) thing of a category is to be put into the cart."""
    known, category, is_dear = goods(draw), draw.pick(shop.CATEGORIES), draw.level == 3
    some = sorted((one for one in known.goods if one.category == category), key=lambda one: one.price)
    one, colour = some[-1 if is_dear else 0], draw.pick(shop.COLOURS[1:])
    return Setup(
        goal=f"Put the {'most expensive' if is_dear else 'cheapest'} thing of the category {category} "
        f"at {shop.HOST} into the cart, once, in {colour}.",
        data={"shop": known},
        milestones={
            "found": lambda world: (
                is_at(f"{shop.HOST}/item/{one.key}")(world) or bool(world.store["shop"].cart)
            ),
            "added": (2, cart_is((one.key, colour, 1))),
        },
        changes=[cart_record(one.key, colour)],
        oracle=[*browse(SHOP), choose("category", category), choose("order", "price"), *add(one, colour, 1)],
    )


@template("forms/change_cart", levels=(1, 2))
def change_cart(draw: Draw) -> Setup:
    """What is in the cart is to be changed: something removed, at level 2 another thing's quantity, too."""
    known = goods(draw)
    things = [(one.key, draw.pick(shop.COLOURS), draw.number(1, 4)) for one in draw.picks(known.goods, 3)]
    gone, more = draw.picks(things, 2)
    names = {one.key: one.name for one in known.goods}
    after = [thing for thing in things if thing != gone]
    goal, oracle = f"Remove the {names[gone[0]]} from the cart of {shop.HOST}", browse(CART)
    oracle.append(click(f"remove.{gone[0]}.{gone[1]}"))
    if draw.level == 2:
        count = more[2] + draw.number(1, 3)
        after = [(*thing[:2], count) if thing == more else thing for thing in after]
        goal += f", and set the quantity of the {names[more[0]]} to {count}"
        oracle += [click(f"count.{more[0]}.{more[1]}.more")] * (count - more[2])
    return Setup(
        goal=goal + ". Do not order.",
        data={"shop": shop.Shop(known.goods, tuple(things))},
        milestones={"cart": is_at(CART), "changed": (2, cart_is(*after))},
        changes=[cart_record(*thing[:2]) for thing in (gone, more)[: draw.level]],
        oracle=oracle,
    )


def drawn_order(draw: Draw, things: tuple[tuple[str, str, int], ...]) -> shop.Order:
    """Who orders, and how."""
    street = f"{draw.pick(STREETS)} {draw.number(1, 99)}"
    delivery, payment = draw.pick(tuple(shop.DELIVERY)), draw.pick(tuple(shop.PAYMENT))
    who, town = draw.pick(PEOPLE), draw.pick(TOWNS_OF_SHOP)
    return shop.Order(things, who, street, town, delivery, payment, draw.number(0, 1) == 1)


def fill(order: shop.Order) -> list[Intent]:
    """The form of an order."""
    return [
        type_into("name", order.name),
        type_into("street", order.street),
        type_into("city", order.city),
        choose("delivery", order.delivery),
        choose("payment", order.payment),
        *([click("gift")] if order.is_gift else []),
        click("terms"),
        click("order"),
    ]


def is_ordered(order: shop.Order) -> Predicate:
    """Whether there is just this order, and nothing is left in the cart."""
    return lambda world: world.store["shop"].orders == (order,) and not world.store["shop"].cart


def told(order: shop.Order) -> str:
    """How a goal says it."""
    how = f"{shop.DELIVERY[order.delivery]} delivery, payment by {shop.PAYMENT[order.payment].lower()}"
    return f"{how}, {'wrapped' if order.is_gift else 'not wrapped'} as a gift"


@template("forms/checkout", levels=(1, 2, 3))
def checkout(draw: Draw) -> Setup:
    """What is in the cart (at level 3: what is first to be put there) is to be ordered."""
    known, one = goods(draw), draw.pick(shop.STOCK)
    thing = (one.key, draw.pick(shop.COLOURS[1:]), draw.number(1, 3))
    order, is_full = drawn_order(draw, (thing,)), draw.level < 3
    start = {
        1: [],
        2: [*browse(CART), click("checkout")],
        3: [*browse(SHOP), *add(one, *thing[1:]), click("checkout")],
    }
    what = "what is in the cart" if is_full else f"a {one.name}, {thing[1]}, quantity {thing[2]},"
    return Setup(
        goal=f"Order {what} at {shop.HOST} for {order.name}, {order.street}, {order.city}: {told(order)}.",
        data={"shop": shop.Shop(known.goods, (thing,) if is_full else ())},
        windows=[("browser", f"{shop.HOST}/checkout")] if draw.level == 1 else [],
        milestones={
            **({} if draw.level == 1 else {"till": is_at(f"{shop.HOST}/checkout", f"{shop.HOST}/thanks")}),
            "ordered": (2, is_ordered(order)),
        },
        changes=[order_record(order.name), cart_record(*thing[:2])],
        oracle=[*start[draw.level], *fill(order)],
    )


@template("forms/order_by_mail", levels=(3,))
def order_by_mail(draw: Draw) -> Setup:
    """Somebody asks by mail for a thing to be sent; name and address are in the letter."""
    known, one, sender = goods(draw), draw.pick(shop.STOCK), address(draw)
    thing = (one.key, draw.pick(shop.COLOURS[1:]), 1)
    order = drawn_order(draw, (thing,))
    text = f"Please send a {one.name} in {thing[1]} to:\n\n{order.name}\n{order.street}\n{order.city}"
    letters = mailbox(draw, 8, Letter(0, "inbox", sender, "A wish", text))
    number = numbered(letters, lambda letter: letter.other == sender)[0]
    return Setup(
        goal=f"Order at {shop.HOST} what {person(sender)} asks for by mail: {told(order)}.",
        data={"shop": known, "mail": letters},
        milestones={
            "read": lambda world: (
                any(one.number == number and one.is_read for one in world.store["mail"])
                and world.app("browser") is not None
            ),
            "chosen": lambda world: (
                (thing,) in (world.store["shop"].cart, *(o.things for o in world.store["shop"].orders))
            ),
            "ordered": (3, is_ordered(order)),
        },
        changes=[order_record(order.name)],
        oracle=[
            open_app("mail"),
            choose("letter", number),
            *browse(SHOP),
            *add(one, *thing[1:]),
            click("checkout"),
            *fill(order),
        ],
    )


@template("forms/sign_up", levels=(1, 2, 3))
def sign_up(draw: Draw) -> Setup:
    """Somebody is to become a member; at higher levels with interests, without the newsletter."""
    name, plan = draw.pick(PEOPLE), draw.pick(tuple(club.PLANS))
    likes = tuple(key for key in club.INTERESTS if draw.number(0, 1)) if draw.level > 1 else ()
    email = name.lower().replace(" ", ".") + "@delta.example"
    password = draw.pick(("lantern", "meadow", "compass", "thimble")) + str(draw.number(10, 9999))
    has_news = draw.level < 3
    member = club.Member(
        name, email, password, draw.number(1930, 2010), draw.pick(club.COUNTRIES), plan, likes, has_news
    )
    texts = {"name": name, "email": email, "password": password, "again": password, "year": str(member.year)}
    goal = f"{name} wants to become a member of {club.HOST}: e-mail {email}, password {password}, born "
    goal += f"{member.year}, {member.country}, membership {club.PLANS[plan]}"
    goal += f", interests: {' and '.join(likes)}" if likes else ", no interests"
    return Setup(
        goal=f"{goal}, {'with' if has_news else 'without'} the newsletter. Fill in the form.",
        windows=[("browser", f"{club.HOST}/join")] if draw.level == 1 else [],
        milestones={
            "begun": lambda world: (
                bool(world.store.get("club"))
                or any(dict(tab.fields).get("name") == name for tab in _tabs(world))
            ),
            "joined": (3, lambda world: world.store.get("club") == (member,)),
        },
        changes=[member_record(name)],
        oracle=[
            *([] if draw.level == 1 else [*browse(f"{club.HOST}/"), *follow(f"{club.HOST}/join")]),
            *(type_into(id, text) for id, text in texts.items()),
            choose("country", member.country),
            choose("plan", plan),
            *(click(f"likes.{key}") for key in likes),
            *([] if has_news else [click("newsletter")]),
            click("terms"),
            click("join"),
        ],
    )


def _tabs(world: World) -> tuple[Any, ...]:
    browser = world.app("browser")
    return () if browser is None else browser.tabs


@template("forms/flight", levels=(1, 2, 3))
def flight(draw: Draw) -> Setup:
    """A flight is to be booked: at level 1 a certain one of those shown, then the cheapest, the shortest."""
    start, end = draw.picks(fly.CITIES, 2)
    day = draw.number(2, 8)
    known = flights(draw, start, end, day, 4 + draw.level)
    there = [one for one in known.flights if (one.start, one.day) == (start, day)]
    which = {1: "number", 2: "price", 3: "minutes"}[draw.level]
    chosen = draw.pick(there) if draw.level == 1 else min(there, key=lambda one: int(getattr(one, which)))
    word = {1: f"flight {chosen.number}", 2: "the cheapest flight", 3: "the flight that takes the least time"}
    booking = fly.Booking(
        chosen.number, draw.pick(PEOPLE), draw.pick(tuple(fly.SEATS)), draw.number(0, 1) == 1
    )
    found = f"{fly.HOST}/from/{start}/{end}/{day}"
    search = [choose("from", start), choose("to", end), *[click("day.more")] * (day - 1), click("search")]
    if draw.level > 1:
        search = [*browse(f"{fly.HOST}/"), *search, choose("order", which)]
    return Setup(
        goal=f"Book {word[draw.level]} from {start} to {end} on {day} June at {fly.HOST} for {booking.name}, "
        f"{booking.seat} seat, {'with' if booking.has_bag else 'without'} a suitcase.",
        data={"fly": known},
        windows=[("browser", found)] if draw.level == 1 else [],
        milestones={
            "chosen": lambda world: (
                is_at(f"{fly.HOST}/book/{chosen.number}")(world) or bool(world.store["fly"].bookings)
            ),
            "booked": (2, lambda world: world.store["fly"].bookings == (booking,)),
        },
        changes=[booking_record(booking.flight, booking.name)],
        oracle=[
            *([] if draw.level == 1 else search),
            click(f"book.{chosen.number}"),
            type_into("passenger", booking.name),
            choose("seat", booking.seat),
            *([click("bag")] if booking.has_bag else []),
            click("pay"),
        ],
    )
