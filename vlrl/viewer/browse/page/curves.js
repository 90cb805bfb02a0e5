"use strict";
// Learning curves of several runs, against steps, samples, tokens or hours.
(function () {
  const { h } = vlrl;
  const FIRST = [
    "reward/mean",
    "heldout/accuracy_greedy",
    "heldout/accuracy_sampled",
    "sft/loss",
    "preference/loss",
    "policy/entropy",
    "policy/kl_reference",
    "completion/num_tokens_mean",
    "optim/grad_norm",
    "reward/zero_variance_groups",
    "episode/success",
    "policy/clip_fraction",
  ];
  const AXES = { step: "steps", samples: "samples", tokens: "generated tokens", hours: "hours" };
  const UNITS = { step: "step", samples: "sample", tokens: "token", hours: "hour" };
  const settings = { axis: "step", smooth: 1, bands: true, filter: "" };

  /** The curves of the runs that are shown: [[run, answer of data/RUN/curves]]. */
  vlrl.curvesOf = (runs) => Promise.all(runs.map(async (run) => [run, await vlrl.load(`${run.key}/curves`, run.metrics)]));

  function pointsOf(curves, name) {
    const xs = curves.axes[settings.axis] || curves.axes.step,
      ys = curves.series[name] || [];
    return ys.map((y, i) => [xs[i], y]);
  }

  function seriesOf(all, name) {
    const out = [],
      groups = new Map();
    for (const [run, curves] of all) {
      if (!curves.series[name]) continue;
      if (settings.bands && run.group !== null) {
        if (!groups.has(run.group)) groups.set(run.group, []);
        groups.get(run.group).push([run, curves]);
      } else out.push(...single(run.key, run.place, pointsOf(curves, name)));
    }
    for (const members of groups.values()) {
      if (members.length === 1) out.push(...single(members[0][0].key, members[0][0].place, pointsOf(members[0][1], name)));
      else out.push(banded(members, name));
    }
    return out;
  }

  function single(name, place, points) {
    const sparse = points.filter(([, y]) => y !== null).length < points.length / 3;
    if (sparse || settings.smooth <= 1) return [{ name, place, points, sparse }];
    return [
      { name, place, points, faint: true },
      { name, place, points: vlrl.smooth(points, settings.smooth) },
    ];
  }

  // Seeds of one config: the mean at every step that all have, and from the lowest to the highest.
  function banded(members, name) {
    const lines = members.map(([, curves]) => vlrl.smooth(pointsOf(curves, name), settings.smooth));
    const length = Math.min(...lines.map((line) => line.length)),
      points = [],
      band = [];
    for (let i = 0; i < length; i++) {
      const ys = lines.map((line) => line[i][1]);
      const x = lines.reduce((sum, line) => sum + line[i][0], 0) / lines.length;
      if (ys.includes(null)) {
        points.push([x, null]);
        continue;
      }
      points.push([x, ys.reduce((a, b) => a + b, 0) / ys.length]);
      band.push([x, Math.min(...ys), Math.max(...ys)]);
    }
    const sparse = band.length < length / 3;
    const seeds = members.map(([run]) => run.key);
    return { name: `${common(seeds)} (${seeds.length} seeds)`, place: members[0][0].place, points, band, sparse };
  }

  function common(names) {
    let length = 0;
    while (names[0].length > length && names.every((name) => name[length] === names[0][length])) length++;
    return names[0].slice(0, length).replace(/[_.-]+(s|seed)?[_.-]*$/, "") || names[0];
  }

  function panel(all, name, title = name) {
    const meaning = all.map(([, curves]) => curves.meanings[name]).find(Boolean);
    const series = seriesOf(all, name);
    const known = series.length === 1 ? series[0].points.filter(([, y]) => y !== null) : [];
    const latest = known.length ? `${vlrl.number(known[0][1])} → ${vlrl.number(known[known.length - 1][1])}` : "";
    return vlrl.chart({ title, hint: meaning, series, latest, x: UNITS[settings.axis] });
  }
  vlrl.metricPanel = panel;

  function controls(all, redraw) {
    const axes = Object.keys(AXES).filter((axis) => all.some(([, curves]) => curves.axes[axis]));
    const set = (name, value) => {
      settings[name] = value;
      redraw(name === "bands");
    };
    const hasSeeds = all.some(([run]) => run.group !== null);
    const lines =
      hasSeeds && settings.bands
        ? seriesOf(all, all[0][1].series["reward/mean"] ? "reward/mean" : Object.keys(all[0][1].series)[0]).filter(
            (line) => !line.faint,
          )
        : [];
    const shown = h("output", {}, settings.smooth <= 1 ? "off" : `${settings.smooth} steps`);
    return h(
      "div",
      { class: "controls" },
      vlrl.select(
        "Against",
        axes.map((axis) => [axis, AXES[axis]]),
        settings.axis,
        (value) => set("axis", value),
      ),
      h(
        "label",
        { class: "field" },
        h("span", {}, "Smoothing"),
        h("input", {
          type: "range",
          min: 1,
          max: 50,
          value: settings.smooth,
          oninput: (event) => {
            shown.textContent = event.target.value <= 1 ? "off" : `${event.target.value} steps`;
            later("smooth", Number(event.target.value), set);
          },
        }),
        shown,
      ),
      hasSeeds
        ? h(
            "label",
            { class: "check" },
            h("input", { type: "checkbox", checked: settings.bands, onchange: (event) => set("bands", event.target.checked) }),
            "Seeds as one band",
          )
        : null,
      lines.length
        ? h(
            "p",
            { class: "legend" },
            lines.map((line) => h("span", {}, vlrl.swatch(line.place), line.name)),
          )
        : null,
      h(
        "label",
        { class: "field grow" },
        h("span", {}, "Metrics"),
        h("input", {
          type: "search",
          id: "find",
          placeholder: "filter by name  /",
          value: settings.filter,
          oninput: (event) => later("filter", event.target.value, set),
        }),
      ),
    );
  }
  const pauses = {
    smooth: vlrl.later((value, set) => set("smooth", value), 120),
    filter: vlrl.later((value, set) => set("filter", value), 120),
  };
  const later = (name, value, set) => pauses[name](value, set);

  vlrl.pages.curves = {
    title: "Curves",
    async show(main) {
      const body = h("div", {}),
        top = h("div", {});
      main.replaceChildren(h("h2", { class: "sr" }, "Learning curves"), top, body);
      const open = new Set();
      const draw = async (isNew) => {
        const runs = vlrl.shownRuns();
        const all = await vlrl.curvesOf(runs);
        if (!all.some(([, curves]) => Object.keys(curves.series).length)) {
          top.replaceChildren();
          body.replaceChildren(
            h(
              "p",
              { class: "empty" },
              runs.length
                ? "No step has been logged yet. This page shows the first one when it is there."
                : "All runs are hidden: choose one above.",
            ),
          );
          return;
        }
        if (isNew) top.replaceChildren(verdicts(runs), controls(all, draw));
        const names = [...new Set(all.flatMap(([, curves]) => Object.keys(curves.series)))];
        const fits = (name) => name.toLowerCase().includes(settings.filter.toLowerCase());
        const parts = names.filter((name) => /^reward\/(?!mean|std|zero_variance)/.test(name));
        const first = [...FIRST.slice(0, 3), ...(parts.length > 1 ? parts : []), ...FIRST.slice(3)].filter((name) =>
          names.includes(name),
        );
        const others = names.filter((name) => !first.includes(name) && fits(name) && !name.startsWith("time_s/"));
        const folders = new Map();
        for (const name of others) folders.set(name.split("/")[0], [...(folders.get(name.split("/")[0]) || []), name]);
        const chosen = first.filter(fits);
        body.replaceChildren(
          h(
            "div",
            { class: "grid" },
            chosen.map((name) => panel(all, name)),
          ),
          ...[...folders].map(([folder, members]) => fold(folder, members, all, open)),
          chosen.length + others.length ? "" : h("p", { class: "empty" }, `No metric's name has "${settings.filter}".`),
        );
      };
      await draw(true);
      return vlrl.onchange(
        (what) => (what === "metrics" || what === "shown") && draw(what === "shown" || !top.childNodes.length),
      );
    },
  };

  function fold(folder, members, all, open) {
    const grid = h("div", { class: "grid" });
    const fillGrid = () => grid.replaceChildren(...members.map((name) => panel(all, name)));
    const isOpen = open.has(folder) || settings.filter !== "";
    const box = h("details", { class: "fold", open: isOpen }, h("summary", {}, h("b", {}, folder), ` ${members.length}`), grid);
    box.addEventListener("toggle", () => {
      open[box.open ? "add" : "delete"](folder);
      if (box.open && !grid.childNodes.length) fillGrid();
    });
    if (isOpen) fillGrid();
    return box;
  }

  function verdicts(runs) {
    return h(
      "div",
      { class: "verdicts" },
      runs.map((run) =>
        h(
          "section",
          { class: `verdict ${run.tone}` },
          h("h3", {}, vlrl.swatch(run.place), run.key),
          h("p", {}, run.verdict),
          h(
            "p",
            { class: "facts" },
            [...run.facts, ["steps", String(run.num_steps)]].map(([name, value]) =>
              h("span", {}, h("i", {}, `${name} `), vlrl.visible(value)),
            ),
          ),
        ),
      ),
    );
  }
})();
