// The visible elements of a document as an accessibility tree names them; boxes in CSS pixels of the window.
// Runs in a world of its own: the page's scripts cannot change what it calls.
(() => {
  const ROLES = {
    A: "link", BUTTON: "button", TEXTAREA: "textbox", OPTION: "option", IMG: "img", TABLE: "table", TR: "row",
    TD: "cell", TH: "columnheader", DIALOG: "dialog", LABEL: "label", UL: "list", OL: "list", LI: "listitem",
    NAV: "navigation", FORM: "form", P: "paragraph", FIELDSET: "group", PROGRESS: "progressbar", SUMMARY: "button",
    H1: "heading", H2: "heading", H3: "heading", H4: "heading", H5: "heading", H6: "heading", CANVAS: "img",
    SVG: "img", CIRCLE: "graphics-symbol", RECT: "graphics-symbol", POLYGON: "graphics-symbol",
    ELLIPSE: "graphics-symbol", PATH: "graphics-symbol", LINE: "graphics-symbol", TEXT: "text",
  };
  const INPUTS = {
    checkbox: "checkbox", radio: "radio", button: "button", submit: "button", reset: "button", image: "button",
    range: "slider", number: "spinbutton", search: "searchbox", hidden: "",
  };
  const CONTROLS = new Set(["button", "link", "option", "tab", "menuitem", "label", "heading", "listitem", "cell",
    "columnheader", "paragraph", "text", "treeitem", "checkbox", "radio"]);
  const tidy = (text) => (text || "").replace(/\s+/g, " ").trim().slice(0, 300);
  const ownText = (element) =>
    tidy([...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data).join(" "));
  // What no tag says: pages show by the pointer's shape that a <span> or a <div> of text is pressed.
  const hasHand = (element) => getComputedStyle(element).cursor === "pointer";
  const isPressed = (element) => hasHand(element) && !(element.parentElement && hasHand(element.parentElement));
  const roleOf = (element) => {
    const said = element.getAttribute("role");
    if (said) return said.split(" ")[0].toLowerCase();
    const tag = element.tagName.toUpperCase();
    if (tag === "INPUT") return INPUTS[element.type] ?? "textbox";
    if (tag === "SELECT") return element.multiple || element.size > 1 ? "listbox" : "combobox";
    if (element.isContentEditable && !element.parentElement?.isContentEditable) return "textbox";
    if (ROLES[tag] || !ownText(element)) return ROLES[tag] || "";
    return !isPressed(element) ? "text" : getComputedStyle(element).display === "inline" ? "link" : "button";
  };
  const nameOf = (element, role) => {
    const by = (element.getAttribute("aria-labelledby") || "").split(" ").filter(Boolean);
    const labelled = by.map((id) => document.getElementById(id)?.textContent).join(" ");
    const labels = [...(element.labels || [])].map((label) => label.textContent).join(" ");
    const pushed = element.tagName === "INPUT" && role === "button" ? element.value || element.type : "";
    const inside = role === "text" ? ownText(element) || element.textContent
      : CONTROLS.has(role) ? element.textContent : "";
    return tidy(element.getAttribute("aria-label")) || tidy(labelled) || tidy(labels) || tidy(pushed)
      || tidy(element.getAttribute("alt")) || tidy(inside) || tidy(element.getAttribute("title"))
      || tidy(element.getAttribute("placeholder"));
  };
  const valueOf = (element, role) => {
    if (element.tagName === "SELECT") return tidy([...element.selectedOptions].map((option) => option.text).join(", "));
    if (role === "button" || role === "checkbox" || role === "radio") return "";
    if ("value" in element && typeof element.value === "string") return element.value;
    if (role === "textbox") return element.textContent;
    return element.getAttribute("aria-valuenow") || element.getAttribute("fill") || "";
  };
  // What can be seen of a box, in what scrolls or cuts it off: of a placed element, those its place is said in.
  const UNCUT = [-Infinity, -Infinity, Infinity, Infinity];
  const cut = (box, [left, top, right, bottom]) =>
    [Math.max(box[0], left), Math.max(box[1], top), Math.min(box[2], right), Math.min(box[3], bottom)];
  const cutBelow = (element, box, cuts) => {
    const { position, overflowX, transform } = getComputedStyle(element);
    const own = { fixed: cuts.fixed, absolute: cuts.placed }[position] || cuts.flow;
    const isPage = element === document.documentElement || element === document.body;
    const x = box.left + element.clientLeft, y = box.top + element.clientTop;
    const inner = isPage || !(element instanceof HTMLElement) || overflowX === "visible" || !element.clientWidth
      ? own : cut(own, [x, y, x + element.clientWidth, y + element.clientHeight]);
    const isPlaced = position !== "static" || transform !== "none";
    return [own, { flow: inner, placed: isPlaced ? inner : cuts.placed,
      fixed: transform === "none" ? cuts.fixed : inner }];
  };
  const statesOf = (element, box, cuts) => {
    const says = (name) => element.getAttribute(`aria-${name}`) === "true";
    const top = document.elementFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2);
    const all = [box.left, box.top, box.right, box.bottom], seen = cut(all, cuts);
    const isGone = seen[2] <= seen[0] || seen[3] <= seen[1];
    const states = {
      hidden: isGone, clipped: !isGone && seen.some((side, at) => Math.abs(side - all[at]) >= 1),
      focused: document.activeElement === element, checked: element.checked === true || says("checked"),
      selected: element.selected === true || says("selected"), expanded: element.open === true || says("expanded"),
      disabled: element.disabled === true || says("disabled"),
      covered: top !== null && !element.contains(top) && !top.contains(element)
        && element.getRootNode().host !== top,
    };
    return Object.keys(states).filter((name) => states[name]);
  };
  const { scale, offsetLeft, offsetTop } = window.visualViewport; // a phone draws wide pages smaller
  const drawnAt = ({ left, top, right, bottom }) => [(left - offsetLeft) * scale, (top - offsetTop) * scale,
    (right - offsetLeft) * scale, (bottom - offsetTop) * scale];
  const found = [];
  const walk = (element, path, around) => {
    if (element.checkVisibility && !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return;
    const role = roleOf(element), box = element.getBoundingClientRect();
    const shown = box.width > 0 && box.height > 0 && box.bottom > 0 && box.right > 0
      && box.left < innerWidth && box.top < innerHeight;
    const [cuts, inside] = cutBelow(element, box, around);
    let below = path;
    if (role && shown) {
      const name = nameOf(element, role);
      found.push({ role, name, box: drawnAt(box), value: valueOf(element, role),
        states: statesOf(element, box, cuts), path, id: element.id || "" });
      below = [...path, name || role];
    }
    for (const child of (element.shadowRoot || element).children) walk(child, below, inside);
  };
  const all = { flow: UNCUT, placed: UNCUT, fixed: UNCUT };
  if (document.body) for (const child of document.documentElement.children) walk(child, [], all);
  return found;
})()
