"use strict";
// The keyboard: keys of the page that is shown, of all pages, and the list of them.
(function () {
  const { h } = vlrl;
  const ALL = [
    [
      "Pages",
      [
        ["1 – 5", "curves, health, rollouts, compare, time"],
        ["/", "search or filter"],
        ["t", "light, dark or as the system says"],
        ["?", "these keys"],
        ["Esc", "close, or back to the list"],
      ],
    ],
    [
      "Rollouts",
      [
        ["j  k", "next and previous in the list"],
        ["n  p", "next and previous member of the group"],
        ["←  →", "previous and next turn, or frame of a video"],
        ["c", "colour tokens by something else"],
      ],
    ],
    [
      "Inside a chart or a text",
      [
        ["Tab", "go there"],
        ["←  →", "read the points or tokens one by one"],
      ],
    ],
  ];

  vlrl.help = function () {
    const dialog = document.getElementById("keys");
    const close = h("button", { type: "button", onclick: () => dialog.close() }, "Close");
    dialog.replaceChildren(
      h("h2", { id: "keys-title" }, "Keys"),
      ...ALL.map(([title, keys]) =>
        h(
          "section",
          {},
          h("h3", {}, title),
          h(
            "dl",
            {},
            keys.map(([key, words]) => [
              h(
                "dt",
                {},
                key.split(/ {2}/).map((each) => h("kbd", {}, each)),
              ),
              h("dd", {}, words),
            ]),
          ),
        ),
      ),
      close,
    );
    dialog.showModal();
    close.focus();
  };

  const isField = (element) => element.matches("input:not([type=checkbox]):not([type=range]), select, textarea");

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("keys").open) return;
    if (isField(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.target.matches("input[type=range]") && event.key.startsWith("Arrow")) return;
    const names = Object.keys(vlrl.pages),
      number = "12345".indexOf(event.key);
    if (event.key === "?") vlrl.help();
    else if (event.key === "t") vlrl.nextTheme();
    else if (event.key === "/" && document.getElementById("find")) document.getElementById("find").focus();
    else if (number >= 0 && event.key.length === 1) location.hash = `#${names[number]}`;
    else if (!(vlrl.page && vlrl.page.keys && vlrl.page.keys(event))) return;
    event.preventDefault();
  });
})();
