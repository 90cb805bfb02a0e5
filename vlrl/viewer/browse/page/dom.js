"use strict";
// The names that the files share, and how elements are made. Text is always set as text: nothing that a model
// or a run says is ever read as HTML.
const vlrl = { pages: {} };

(function () {
  const SVG = "http://www.w3.org/2000/svg";

  function fill(element, properties, children) {
    for (const [name, value] of Object.entries(properties || {})) {
      if (value === undefined || value === null || value === false) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name === "style") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
      else if (name === "value" || name === "checked" || name === "selected") element[name] = value;
      else element.setAttribute(name, value === true ? "" : value);
    }
    for (const child of children.flat(3)) {
      if (child === undefined || child === null || child === false) continue;
      element.append(child instanceof Node ? child : String(child));
    }
    return element;
  }

  /** An element of HTML: tag, {attributes, onclick, style: {}}, children (elements or texts). */
  vlrl.h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);

  /** An element of SVG. */
  vlrl.s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

  /** A labelled select: options are [value, words]. */
  vlrl.select = (label, options, value, onchange) =>
    vlrl.h(
      "label",
      { class: "field" },
      vlrl.h("span", {}, label),
      vlrl.h(
        "select",
        { onchange: (event) => onchange(event.target.value) },
        options.map(([each, words]) => vlrl.h("option", { value: each, selected: String(each) === String(value) }, words)),
      ),
    );

  /** Call `work` once after the calls have paused for some milliseconds. */
  vlrl.later = function (work, pause) {
    let timer = 0;
    return (...given) => {
      clearTimeout(timer);
      timer = setTimeout(() => work(...given), pause);
    };
  };
})();
