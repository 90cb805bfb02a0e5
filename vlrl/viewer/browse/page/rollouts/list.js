"use strict";
// A list of any length: only the rows that are seen are in the page, and only their images are loaded.
(function () {
  const { h } = vlrl;
  const SPARE = 4,
    PAUSE = 90;
  const loaded = new Set();

  /**
   * given: {label, height: of a row in pixels, draw: item → children of its row, onopen: (item, index)}
   * Returns {element, set(items), select(index, isOpened), selected, move(by), items}.
   */
  vlrl.list = function (given) {
    const inner = h("div", { class: "list-inner", role: "presentation" });
    const element = h("div", { class: "list", role: "listbox", tabindex: "0", "aria-label": given.label }, inner);
    const rows = new Map();
    const list = { element, items: [], selected: -1 };
    let asked = false;

    function paint() {
      asked = false;
      const first = Math.max(0, Math.floor(element.scrollTop / given.height) - SPARE);
      const last = Math.min(list.items.length, Math.ceil((element.scrollTop + element.clientHeight) / given.height) + SPARE);
      for (const [index, row] of rows)
        if (index < first || index >= last) {
          row.remove();
          rows.delete(index);
        }
      for (let index = first; index < last; index++) if (!rows.has(index)) add(index);
      images();
    }
    const ask = () => {
      if (!asked) {
        asked = true;
        requestAnimationFrame(paint);
      }
    };

    function add(index) {
      const row = h(
        "div",
        {
          class: "row",
          role: "option",
          id: `row-${index}`,
          "aria-setsize": list.items.length,
          "aria-posinset": index + 1,
          "aria-selected": String(index === list.selected),
        },
        given.draw(list.items[index]),
      );
      row.style.setProperty("transform", `translateY(${index * given.height}px)`);
      row.style.setProperty("height", `${given.height}px`);
      row.index = index;
      for (const image of row.querySelectorAll("img[data-src]")) if (loaded.has(image.dataset.src)) image.src = image.dataset.src;
      rows.set(index, row);
      inner.append(row);
    }

    // Images are asked for when scrolling pauses: a quick scroll past thousands loads none of them.
    const images = vlrl.later(() => {
      for (const row of rows.values()) {
        for (const image of row.querySelectorAll("img[data-src]:not([src])")) {
          image.addEventListener("load", () => loaded.add(image.dataset.src), { once: true });
          image.addEventListener("error", () => image.classList.add("lost"), { once: true });
          image.src = image.dataset.src;
        }
      }
    }, PAUSE);

    list.set = function (items, keepAt = null) {
      const anchor =
        keepAt !== null && element.scrollTop > 0 ? keepAt(list.items[Math.floor(element.scrollTop / given.height)], items) : -1;
      const rest = element.scrollTop % given.height;
      list.items = items;
      list.selected = -1;
      inner.style.setProperty("height", `${items.length * given.height}px`);
      if (anchor >= 0) element.scrollTop = anchor * given.height + rest;
      for (const row of rows.values()) row.remove();
      rows.clear();
      paint();
    };
    list.select = function (index, isOpened = false, isShown = true) {
      if (index < 0 || index >= list.items.length) return;
      rows.get(list.selected)?.setAttribute("aria-selected", "false");
      list.selected = index;
      const top = index * given.height;
      if (isShown && top < element.scrollTop) element.scrollTop = top;
      else if (isShown && top + given.height > element.scrollTop + element.clientHeight)
        element.scrollTop = top + given.height - element.clientHeight;
      paint();
      rows.get(index)?.setAttribute("aria-selected", "true");
      element.setAttribute("aria-activedescendant", `row-${index}`);
      if (isOpened) given.onopen(list.items[index], index);
    };
    list.move = (by) =>
      list.select(Math.max(0, Math.min(list.items.length - 1, list.selected < 0 ? 0 : list.selected + by)), true);

    element.addEventListener("scroll", ask, { passive: true });
    element.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (!row) return;
      const member = event.target.closest("[data-member]");
      list.select(row.index);
      given.onopen(list.items[row.index], row.index, member ? Number(member.dataset.member) : null);
    });
    element.addEventListener("keydown", (event) => {
      const page = Math.max(1, Math.floor(element.clientHeight / given.height) - 1);
      const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 }[event.key];
      if (by === undefined && event.key !== "Enter") return;
      event.preventDefault();
      event.stopPropagation();
      if (event.key === "Enter") list.select(Math.max(0, list.selected), true);
      else list.move(by);
    });
    new ResizeObserver(ask).observe(element);
    return list;
  };
})();
