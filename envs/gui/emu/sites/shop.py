"""shop.example: goods, a cart, a form to order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from vlrl.envs.gui.emu.app import Reader, System
from vlrl.envs.gui.emu.input.events import Change, Command, Event
from vlrl.envs.gui.emu.sites.site import PROBLEM, Fields, left, link, page, paragraph, price, problem, site
from vlrl.envs.gui.emu.widgets import (
    Button,
    Check,
    Choice,
    Column,
    Divider,
    Entry,
    Image,
    Label,
    Radio,
    Row,
    Space,
    Widget,
    field_row,
    section,
    spinner,
)

HOST = "shop.example"
MOST = 9
CATEGORIES = ("Kitchen", "Garden", "Office", "Sport")
COLOURS = ("red", "blue", "green", "black", "white")
DELIVERY = {"standard": "Standard", "express": "Express", "pickup": "Pick up"}
PAYMENT = {"card": "Card", "invoice": "Invoice", "transfer": "Bank transfer"}
NAMES = {
    "Kitchen": ("Teapot", "Frying pan", "Bread knife", "Salad bowl", "Coffee grinder"),
    "Garden": ("Watering can", "Rake", "Flower pot", "Hammock", "Garden lamp"),
    "Office": ("Desk lamp", "Stapler", "Notebook", "Paper tray", "Wall clock"),
    "Sport": ("Tennis racket", "Jump rope", "Yoga mat", "Water bottle", "Bicycle bell"),
}


@dataclass(frozen=True)
class Goods:
    """What is sold; `price` in cents."""

    name: str
    category: str
    price: int

    @property
    def key(self) -> str:
        """Name in paths and ids."""
        return self.name.lower().replace(" ", "-")


@dataclass(frozen=True)
class Order:
    """What was ordered and how; (key, colour, count) of each thing."""

    things: tuple[tuple[str, str, int], ...]
    name: str
    street: str
    city: str
    delivery: str
    payment: str
    is_gift: bool


@dataclass(frozen=True)
class Shop:
    """The shop and its customer."""

    goods: tuple[Goods, ...]
    cart: tuple[tuple[str, str, int], ...] = ()
    orders: tuple[Order, ...] = ()


STOCK = tuple(
    Goods(name, category, 795 + 630 * index)
    for category, names in NAMES.items()
    for index, name in enumerate(names)
)


def shop_of(reader: Reader) -> Shop:
    """The shop as it is now."""
    found = reader.data_of("shop")
    return found if isinstance(found, Shop) else Shop(STOCK)


def build(path: str, fields: Mapping[str, Any], reader: Reader) -> Widget | None:
    """The goods, one of them, the cart, the form."""
    shop = shop_of(reader)
    count = sum(number for _, _, number in shop.cart)
    if path == "/":
        return page("Corner Shop", left(link(f"{HOST}/cart", f"Cart ({count})")), *_goods(shop, fields))
    if path.startswith("/item/"):
        found = next((goods for goods in shop.goods if path == f"/item/{goods.key}"), None)
        return None if found is None else _item(found, fields, reader)
    match path:
        case "/cart":
            return _cart(shop)
        case "/checkout" if shop.cart:
            return _checkout(shop, fields)
        case "/thanks" if shop.orders:
            text = f"Thank you, {shop.orders[-1].name}. Your order is on its way."
            return page("Order received", paragraph(text, reader), link(f"{HOST}/", "Back to the shop"))
    return None


def _goods(shop: Shop, fields: Mapping[str, Any]) -> list[Widget]:
    category, order = fields.get("category", ""), fields.get("order", "name")
    shown = [goods for goods in shop.goods if category in ("", goods.category)]
    shown.sort(key=lambda goods: (goods.price if order == "price" else 0, goods.name))
    categories = (("", "All"), *((name, name) for name in CATEGORIES))
    orders = (("name", "By name"), ("price", "By price"))
    rows: list[Widget] = [
        left(Choice("category", "Category", categories, category), Choice("order", "Order", orders, order))
    ]
    for goods in shown:
        name, cost = link(f"{HOST}/item/{goods.key}", goods.name), Label(price(goods.price), "bold")
        rows.append(Row(Image("bag", side=18), name, Space(), Label(goods.category, "small"), cost, gap=2))
    return rows


def _item(goods: Goods, fields: Mapping[str, Any], reader: Reader) -> Widget:
    colours = tuple((colour, colour.capitalize()) for colour in COLOURS)
    text = f"Our {goods.name.lower()} lasts for many years. It comes in five colours, and can be sent back."
    return page(
        goods.name,
        Row(Image("bag", side=56), Column(Label(price(goods.price), "bold"), Label(goods.category, "muted"))),
        paragraph(text, reader),
        field_row("Colour", Choice("colour", "Colour", colours, fields.get("colour", "red"))),
        field_row("Quantity", spinner("quantity", "Quantity", fields.get("quantity", 1), 1, MOST)),
        left(Button("add", "Add to cart", kind="primary"), link(f"{HOST}/", "Back to the shop")),
    )


def total(shop: Shop) -> int:
    """Total price of the cart in cents."""
    prices = {goods.key: goods.price for goods in shop.goods}
    return sum(prices[key] * count for key, _, count in shop.cart)


def _cart(shop: Shop) -> Widget:
    names = {goods.key: goods.name for goods in shop.goods}
    rows: list[Widget] = []
    for key, colour, count in shop.cart:
        id = f"{key}.{colour}"
        less_more = spinner(f"count.{id}", f"{names[key]}, {colour}", count, 1, MOST)
        remove = Button(f"remove.{id}", "Remove", kind="flat", icon="trash")
        rows += [Row(Label(f"{names[key]}, {colour}", grow=1), less_more, remove), Divider()]
    if not rows:
        return page("Cart", Label("The cart is empty."), link(f"{HOST}/", "Back to the shop"))
    return page(
        "Cart",
        *rows,
        Label(f"Total: {price(total(shop))}", "bold"),
        left(Button("checkout", "Checkout", kind="primary"), link(f"{HOST}/", "Back to the shop")),
    )


def _checkout(shop: Shop, fields: Mapping[str, Any]) -> Widget:
    def entry(id: str, name: str) -> Widget:
        return field_row(name, Entry(id, name, fields.get(id, ""), grow=1))

    radios = (Radio("delivery", key, name, fields.get("delivery", "")) for key, name in DELIVERY.items())
    payment = (("", "Choose…"), *PAYMENT.items())
    return page(
        "Checkout",
        Label(f"Total: {price(total(shop))}", "bold"),
        problem(fields),
        entry("name", "Name"),
        entry("street", "Street"),
        entry("city", "City"),
        section("Delivery", *radios),
        field_row("Payment", Choice("payment", "Payment", payment, fields.get("payment", ""))),
        Check("gift", "Wrap it as a gift", bool(fields.get("gift"))),
        Check("terms", "I accept the terms", bool(fields.get("terms"))),
        left(Button("order", "Place order", kind="primary")),
    )


def handle(path: str, event: Event, fields: Fields, system: System) -> str:
    """Put goods into the cart, take them out, and go to the checkout."""
    shop = shop_of(system)
    match event:
        case Command("add") if path.startswith("/item/"):
            thing = (path.removeprefix("/item/"), fields.get("colour", "red"))
            counts = {(key, colour): count for key, colour, count in shop.cart}
            counts[thing] = min(MOST, counts.get(thing, 0) + fields.get("quantity", 1))
            system.keep_for("shop", replace(shop, cart=tuple((*known, n) for known, n in counts.items())))
            return "/cart"
        case Command("checkout"):
            return "/checkout"
        case Command(id) if id.startswith("remove."):
            kept = tuple(one for one in shop.cart if f"remove.{one[0]}.{one[1]}" != id)
            system.keep_for("shop", replace(shop, cart=kept))
        case Change(id, int(count)) if id.startswith("count."):
            cart = tuple((k, c, count if id == f"count.{k}.{c}" else n) for k, c, n in shop.cart)
            system.keep_for("shop", replace(shop, cart=cart))
        case Command("order") if shop.cart:
            return _order(shop, fields, system)
    return path


def _order(shop: Shop, fields: Fields, system: System) -> str:
    for id in ("name", "street", "city"):
        if not str(fields.get(id, "")).strip():
            fields[PROBLEM] = f"Please fill in: {id.capitalize()}"
            return "/checkout"
    for id, what in (("delivery", "a delivery"), ("payment", "a payment")):
        if not fields.get(id):
            fields[PROBLEM] = f"Please choose {what}."
            return "/checkout"
    if not fields.get("terms"):
        fields[PROBLEM] = "Please accept the terms."
        return "/checkout"
    name, street, city = (str(fields[id]).strip() for id in ("name", "street", "city"))
    how = (fields["delivery"], fields["payment"], bool(fields.get("gift")))
    order = Order(shop.cart, name, street, city, *how)
    ordered = replace(shop, cart=(), orders=(*shop.orders, order))
    return "/thanks" if system.keep_for("shop", ordered) else "/checkout"


SHOP = site(HOST, "Corner Shop", "bag", build, handle)
