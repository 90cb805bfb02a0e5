"""Forms of a shop in the browser: put into the cart, change it, order."""

from __future__ import annotations

from vlrl.envs.gui.emu.apps.parts.mailbox import Letter, person
from vlrl.envs.gui.emu.oracle.intents import Intent, choose, click, open_app, type_into
from vlrl.envs.gui.emu.records import cart_record, order_record
from vlrl.envs.gui.emu.sites import shop
from vlrl.envs.gui.emu.task import Draw, Predicate, Setup, template
from vlrl.envs.gui.emu.tasks.content.letters import address, mailbox, numbered
from vlrl.envs.gui.emu.tasks.content.web import (
    PEOPLE,
    STREETS,
    TOWNS_OF_SHOP,
    browse,
    follow,
    goods,
    is_at,
)
from vlrl.envs.gui.emu.wording import chained, worded

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
        said = {"name": one.name, "colour": colour, "count": count}
        told.append(worded("{name}, {colour}, quantity {count}", **said))
        oracle += [*(follow(SHOP) if index else []), *add(one, colour, count)]
    goal = "Put this into the cart of {host}: {things}. Nothing else."
    return Setup(
        goal=worded(goal, host=shop.HOST, things=chained("{first}; {next}", told)),
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
        goal=worded(
            f"Put the {'most expensive' if is_dear else 'cheapest'} thing of the category {{category}} at "
            "{host} into the cart, once, in {colour}.",
            category=category,
            host=shop.HOST,
            colour=colour,
        ),
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
    goal, oracle = "Remove the {name} from the cart of {host}", browse(CART)
    count = more[2]
    oracle.append(click(f"remove.{gone[0]}.{gone[1]}"))
    if draw.level == 2:
        count = more[2] + draw.number(1, 3)
        after = [(*thing[:2], count) if thing == more else thing for thing in after]
        goal += ", and set the quantity of the {other} to {count}"
        oracle += [click(f"count.{more[0]}.{more[1]}.more")] * (count - more[2])
    return Setup(
        goal=worded(
            f"{goal}. Do not order.",
            name=names[gone[0]],
            host=shop.HOST,
            other=names[more[0]],
            count=count,
        ),
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
    wrapped = "wrapped" if order.is_gift else "not wrapped"
    how = f"{{delivery}} delivery, payment by {{payment}}, {wrapped} as a gift"
    payment = shop.PAYMENT[order.payment].lower()
    return worded(how, delivery=shop.DELIVERY[order.delivery], payment=payment)


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
    what = "what is in the cart" if is_full else "a {thing}, {colour}, quantity {count},"
    return Setup(
        goal=worded(
            f"Order {what} at {{host}} for {{name}}, {{street}}, {{city}}: {{how}}.",
            **{"thing": one.name, "colour": thing[1], "count": thing[2], "host": shop.HOST},
            **{"name": order.name, "street": order.street, "city": order.city, "how": told(order)},
        ),
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
        goal=worded(
            "Order at {host} what {person} asks for by mail: {how}.",
            host=shop.HOST,
            person=person(sender),
            how=told(order),
        ),
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
