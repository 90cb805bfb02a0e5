"use strict";
// Two rollouts side by side, and the prompts whose reward changed most between two steps or two runs.
(function () {
  const { h } = vlrl;
  const MOST = 200;
  const ask = { run: "", from: "", to: "", other: "", otherFrom: "", otherTo: "" };

  function ranges() {
    const run = vlrl.run(ask.run) || vlrl.shownRuns()[0] || vlrl.runs[0];
    const isGiven = Boolean(vlrl.run(ask.other));
    const other = isGiven
      ? vlrl.run(ask.other)
      : vlrl.shownRuns().find((each) => each.key !== run.key && each.steps.length) || run;
    ask.run = run.key;
    ask.other = other.key;
    const halves = run.key === other.key ? ["early", "late"] : ["all", "all"];
    return [half(run, halves[0], ask.from, ask.to), half(other, halves[1], ask.otherFrom, ask.otherTo)];
  }

  function half(run, which, from, to) {
    const steps = run.steps.map(([step]) => step),
      middle = steps[Math.floor(steps.length / 2)] ?? 0;
    const [low, high] =
      which === "early"
        ? [steps[0] ?? 0, Math.max(steps[0] ?? 0, middle - 1)]
        : which === "late"
          ? [middle, steps[steps.length - 1] ?? 0]
          : [steps[0] ?? 0, steps[steps.length - 1] ?? 0];
    return { run, from: from === "" ? low : Number(from), to: to === "" ? high : Number(to) };
  }

  // Mean reward of each prompt in a range of steps, and the last rollout that is nearest to that mean.
  function meansOf({ run, from, to }) {
    const found = new Map();
    for (const row of vlrl.rowsOf(run.key).rows) {
      if (row.step < from || row.step > to || row.reward === null) continue;
      const each = found.get(row.sample_id) || { sum: 0, count: 0, rows: [] };
      each.sum += row.reward;
      each.count += 1;
      each.rows.push(row);
      found.set(row.sample_id, each);
    }
    for (const each of found.values()) {
      each.mean = each.sum / each.count;
      each.row = each.rows.reduce((best, row) =>
        Math.abs(row.reward - each.mean) < Math.abs(best.reward - each.mean) - 1e-9 ? row : best,
      );
    }
    return found;
  }

  function fields(sides, redraw) {
    const runs = vlrl.runs.map((run) => [run.key, run.key]);
    const set = (name) => (value) => {
      ask[name] = value;
      redraw();
    };
    const pauses = {};
    const later = (name, value) => (pauses[name] ||= vlrl.later(set(name), 250))(value);
    const step = (label, name, value) =>
      h(
        "label",
        { class: "field" },
        h("span", {}, label),
        h("input", { type: "number", min: 0, value, oninput: (event) => later(name, event.target.value) }),
      );
    return h(
      "div",
      { class: "controls" },
      h(
        "fieldset",
        {},
        h("legend", {}, "A"),
        vlrl.select("Run", runs, ask.run, set("run")),
        step("steps", "from", sides[0].from),
        step("to", "to", sides[0].to),
      ),
      h(
        "fieldset",
        {},
        h("legend", {}, "B"),
        vlrl.select("Run", runs, ask.other, set("other")),
        step("steps", "otherFrom", sides[1].from),
        step("to", "otherTo", sides[1].to),
      ),
    );
  }

  async function changed(main) {
    const top = h("div", {}),
      body = h("div", {});
    main.replaceChildren(
      h("h2", {}, "Most changed prompts"),
      h(
        "p",
        { class: "lead" },
        "Mean reward of each prompt in A and in B, the largest change first. Choose one to see both answers side by side.",
      ),
      top,
      body,
    );
    const draw = async (isNew = true) => {
      const sides = ranges();
      if (isNew) top.replaceChildren(fields(sides, () => draw(false)));
      await Promise.all(sides.map(({ run }) => vlrl.rowsOf(run.key).load()));
      const [a, b] = sides.map(meansOf);
      const rows = [...a].filter(([id]) => b.has(id)).map(([id, one]) => [id, one, b.get(id)]);
      rows.sort(([, one, two], [, three, four]) => Math.abs(four.mean - three.mean) - Math.abs(two.mean - one.mean));
      if (!rows.length) {
        body.replaceChildren(
          h("p", { class: "empty" }, "No prompt was answered in both: choose wider steps, or runs of the same data."),
        );
        return;
      }
      body.replaceChildren(
        h(
          "p",
          { class: "count" },
          `${rows.length} prompts are in both${rows.length > MOST ? `; the first ${MOST} are shown` : ""}`,
        ),
        h(
          "ol",
          { class: "changes" },
          rows.slice(0, MOST).map(([id, one, two]) => {
            const change = two.mean - one.mean;
            return h(
              "li",
              {},
              h(
                "a",
                { href: `#compare/${vlrl.idOf(one.row)}/${vlrl.idOf(two.row)}` },
                one.row.image
                  ? h("img", {
                      alt: "",
                      loading: "lazy",
                      src: vlrl.thumb(one.row.run, one.row.image, one.row.frames),
                      width: 64,
                      height: 48,
                    })
                  : h("span", { class: "thumb none" }, "text"),
                h(
                  "span",
                  { class: "what" },
                  h("b", {}, vlrl.visible(id)),
                  h("span", { class: "snippet" }, vlrl.visible(one.row.question)),
                ),
                h("span", { class: "numbers" }, `${vlrl.reward(one.mean)} → ${vlrl.reward(two.mean)}`),
                h(
                  "b",
                  { class: change > 0 ? "up" : change < 0 ? "down" : "" },
                  change > 0 ? "▲ " : change < 0 ? "▼ " : "● ",
                  vlrl.signed(change),
                ),
              ),
            );
          }),
        ),
      );
    };
    await draw();
    return vlrl.onchange((what) => what === "steps" && draw(false));
  }

  // With one rollout given, the other is the same prompt at its farthest step, or in another run.
  async function partner(key, step, row) {
    const runs = vlrl.shownRuns();
    await Promise.all(runs.map((run) => vlrl.rowsOf(run.key).load()));
    await vlrl.rowsOf(key).load();
    const own = vlrl.rowsOf(key).rows.find((each) => each.step === step && each.row === row);
    if (!own) return null;
    const same = [key, ...runs.map((run) => run.key).filter((each) => each !== key)].flatMap((each) =>
      vlrl
        .rowsOf(each)
        .rows.filter((other) => other.sample_id === own.sample_id && !(each === key && other.step === step && other.row === row)),
    );
    return same.sort((a, b) => Math.abs(b.step - step) - Math.abs(a.step - step))[0] || null;
  }

  let views = [];

  async function pair(main, route) {
    const parts = route.parts,
      first = [parts[0], Number(parts[1]), Number(parts[2])];
    let second = parts.length >= 6 ? [parts[3], Number(parts[4]), Number(parts[5])] : null;
    main.replaceChildren(h("p", { class: "hint" }, "Loading"));
    if (!second) {
      const row = await partner(...first);
      if (!row) {
        main.replaceChildren(
          h("p", { class: "empty" }, "This prompt was answered only once, so there is nothing to compare it with."),
        );
        return null;
      }
      second = [row.run, row.step, row.row];
    }
    views = await Promise.all([first, second].map((each) => vlrl.rolloutView(...each, { isCompared: true })));
    const [a, b] = views.map((view) => view.rollout);
    const note = a.sample_id === b.sample_id ? "" : "These are answers to different prompts.";
    main.replaceChildren(
      h(
        "div",
        { class: "compare-head" },
        h("a", { class: "back", href: "#compare" }, "◀ Most changed"),
        h("h2", {}, "Side by side"),
        h("p", { class: "soft" }, note),
        h("a", { class: "button", href: `#compare/${second.join("/")}/${first.join("/")}` }, "Swap"),
      ),
      h(
        "div",
        { class: "sides" },
        views.map((view, i) =>
          h(
            "section",
            { "aria-label": i ? "B" : "A" },
            h(
              "p",
              { class: "letter" },
              i ? "B" : "A",
              h("a", { href: `#rollout/${(i ? second : first).join("/")}` }, "open alone"),
            ),
            view,
          ),
        ),
      ),
    );
    return null;
  }

  vlrl.pages.compare = {
    title: "Compare",
    show: (main, route) => (route.parts.length >= 3 && vlrl.run(route.parts[0]) ? pair(main, route) : changed(main)),
    keys(event) {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (by) views.forEach((view) => view.step(by));
      else if (event.key === "c") views.forEach((view) => view.colour());
      else return false;
      return true;
    },
  };
})();
