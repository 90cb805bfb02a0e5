"use strict";
// What the list shows: the fields above it. They are kept in the address, so that a link has them too.
(function () {
  const { h } = vlrl;
  const NAMES = ["run", "view", "sort", "kind", "source", "from", "to", "min", "max", "text", "sample"];
  const KINDS = [
    ["", "all"],
    ["failed", "failed"],
    ["truncated", "cut off"],
    ["refused", "refused by a filter"],
    ["unscored", "without a score"],
    ["scored", "with a score"],
  ];

  /** The filter of an address. */
  vlrl.readAsk = function (parameters) {
    const ask = {};
    for (const name of NAMES) if (parameters.get(name)) ask[name] = parameters.get(name);
    if (!vlrl.run(ask.run)) ask.run = (vlrl.shownRuns()[0] || vlrl.runs[0]).key;
    return ask;
  };

  /** The address of a filter, without what is as it is by default. */
  vlrl.writeAsk = (ask) => new URLSearchParams(NAMES.filter((name) => ask[name]).map((name) => [name, ask[name]])).toString();

  const input = (label, name, ask, set, more) =>
    h(
      "label",
      { class: "field" },
      h("span", {}, label),
      h("input", { ...more, name, value: ask[name] || "", oninput: (event) => set(name, event.target.value) }),
    );

  /** The fields. `set(name, value)` is called when one changes; `rows` are those of the run. */
  vlrl.filterFields = function (ask, rows, set) {
    const sources = [...new Set(rows.map((row) => row.source))].filter(Boolean).sort();
    const parts = [...new Set(rows.slice(0, 500).flatMap((row) => Object.keys(row.parts)))];
    const orders = [
      ...Object.entries(vlrl.ORDERS).map(([name, [words]]) => [name, words]),
      ...parts.map((name) => [`part:${name}`, `worst ${vlrl.visible(name).slice(0, 40)}`]),
    ];
    const count = ["kind", "source", "from", "to", "min", "max", "sample"].filter((name) => ask[name]).length;
    const pauses = {};
    const later = (name, value) => (pauses[name] ||= vlrl.later((each) => set(name, each), 200))(value);
    const isWide = window.matchMedia("(min-width: 900px)").matches;
    return h(
      "form",
      { class: "filters", onsubmit: (event) => event.preventDefault(), role: "search", "aria-label": "Filter rollouts" },
      h(
        "label",
        { class: "field wide" },
        h("span", { class: "sr" }, "Search text"),
        h("input", {
          type: "search",
          id: "find",
          placeholder: "Search prompts and answers   /",
          value: ask.text || "",
          oninput: (event) => later("text", event.target.value),
        }),
      ),
      h(
        "div",
        { class: "pair" },
        vlrl.select("Sort", orders, ask.sort || "newest", (value) => set("sort", value === "newest" ? "" : value)),
        vlrl.select(
          "Show",
          [
            ["", "groups"],
            ["rollouts", "rollouts"],
          ],
          ask.view || "",
          (value) => set("view", value),
        ),
      ),
      h(
        "details",
        { class: "more-filters", open: isWide && count > 0 },
        h("summary", {}, "Filter", count ? h("b", { class: "badge" }, String(count)) : null),
        h(
          "div",
          { class: "pair" },
          vlrl.runs.length > 1
            ? vlrl.select(
                "Run",
                vlrl.runs.map((run) => [run.key, run.key]),
                ask.run,
                (value) => set("run", value),
              )
            : null,
          vlrl.select("Outcome", KINDS, ask.kind || "", (value) => set("kind", value)),
          vlrl.select("Source", [["", "all"], ...sources.map((each) => [each, vlrl.visible(each)])], ask.source || "", (value) =>
            set("source", value),
          ),
          input("Task", "sample", ask, later, { type: "search", placeholder: "sample id" }),
          input("Steps from", "from", ask, later, { type: "number", min: 0 }),
          input("to", "to", ask, later, { type: "number", min: 0 }),
          input("Reward from", "min", ask, later, { type: "number", step: "any" }),
          input("to", "max", ask, later, { type: "number", step: "any" }),
        ),
        count ? h("button", { type: "button", onclick: () => set("clear") }, "Clear filters") : null,
      ),
    );
  };
})();
