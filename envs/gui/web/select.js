// Drop-down lists that an image shows: the browser's own are windows beside the page, which no screenshot has.
// Runs in a page before any of its own scripts. The list lives in a shadow tree beside the body while it is open.
(shownHeight) => {
  const STYLE = `:host{position:fixed;margin:0;padding:0;border:1px solid #767676;background:#fff;color:#000;
    overflow-y:auto;box-sizing:border-box} div{padding:1px 4px;white-space:nowrap;min-height:1em;cursor:default}
    div[aria-selected=true]{background:#1a73e8;color:#fff} div[aria-disabled=true]{color:#8a8a8a}`;
  let open = null;

  const close = () => {
    if (open) open.host.remove();
    open = null;
  };
  const choose = (index) => {
    const { select } = open, changed = select.selectedIndex !== index;
    close();
    if (!changed || select.options[index].disabled) return;
    select.selectedIndex = index;
    for (const name of ["input", "change"]) select.dispatchEvent(new Event(name, { bubbles: true }));
  };
  const mark = (index) => {
    open.marked = Math.max(0, Math.min(index, open.lines.length - 1));
    open.lines.forEach((line, at) => line.setAttribute("aria-selected", String(at === open.marked)));
    open.lines[open.marked]?.scrollIntoView({ block: "nearest" });
  };
  const show = (select) => {
    const host = document.createElement("div"), root = host.attachShadow({ mode: "open" });
    host.popover = "manual";
    host.setAttribute("role", "listbox");
    root.innerHTML = `<style>${STYLE}</style>`;
    const lines = [...select.options].map((option, index) => {
      const line = document.createElement("div");
      line.setAttribute("role", "option");
      if (option.disabled) line.setAttribute("aria-disabled", "true");
      line.textContent = option.label;
      line.addEventListener("click", () => choose(index));
      root.append(line);
      return line;
    });
    document.documentElement.append(host);
    const box = select.getBoundingClientRect(), style = getComputedStyle(select);
    const below = Math.min(innerHeight, shownHeight) - box.bottom, up = below < 120 && box.top > below;
    Object.assign(host.style, {
      font: style.font, left: `${box.left}px`, right: "auto", minWidth: `${box.width}px`,
      top: up ? "auto" : `${box.bottom}px`, bottom: up ? `${innerHeight - box.top}px` : "auto",
      maxHeight: `${Math.max(40, up ? box.top : below)}px`,
    });
    host.showPopover();
    open = { select, host, lines, marked: 0 };
    mark(select.selectedIndex);
  };
  const dropDown = (target) => {
    const select = target?.closest?.("select");
    return select && !select.multiple && select.size <= 1 && !select.disabled ? select : null;
  };

  window.addEventListener("mousedown", (event) => {
    if (open && event.composedPath().includes(open.host)) return event.preventDefault(); // the focus stays
    const select = event.button === 0 ? dropDown(event.target) : null, wasOpen = open?.select;
    close();
    if (!select) return;
    event.preventDefault();
    select.focus();
    if (select !== wasOpen) show(select);
  }, true);
  window.addEventListener("keydown", (event) => {
    const select = dropDown(event.target);
    if (!select) return;
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: 5, PageUp: -5, Home: -1e6, End: 1e6 };
    if (open && event.key in moves && !event.altKey) mark(open.marked + moves[event.key]);
    else if (open && (event.key === "Enter" || event.key === " ")) choose(open.marked);
    else if (open && (event.key === "Escape" || event.key === "Tab")) { close(); if (event.key === "Tab") return; }
    else if (!open && (event.key === " " || event.key === "Enter" || (event.altKey && event.key in moves))) show(select);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }, true);
  window.addEventListener("blur", close);
}
