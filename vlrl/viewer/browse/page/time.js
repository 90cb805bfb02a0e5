"use strict";
// Where the time of a step goes: parts of each step, and the timeline of the last steps.
(function () {
  const { h, s } = vlrl;
  const LANES = ["trainer", "generator", "request", "episode"];
  const WORDS = {
    train: "trainer step",
    sync: "weights are moved",
    generate: "tokens are generated",
    paused: "engine takes weights",
    play: "an episode is played",
  };
  const COLORS = { train: "f2", sync: "f1", generate: "f0", paused: "f3", play: "f5" };

  function parts(curves) {
    const total = curves.series["time_s/step"];
    if (!total) return [];
    const found = curves.time_parts.map((name) => [name, curves.series[`time_s/${name}`]]).filter(([, values]) => values);
    const other = total.map((step, i) => Math.max(0, (step || 0) - found.reduce((sum, [, values]) => sum + (values[i] || 0), 0)));
    const sum = (values) => values.reduce((a, b) => a + (b || 0), 0);
    return sum(other) > 0.005 * sum(total) ? [...found, ["other", other]] : found;
  }

  function stack(curves, found) {
    const plot = h("div", {
      class: "plot",
      role: "img",
      "aria-label": `Seconds of each step by part: ${found.map(([name]) => name).join(", ")}; the table has the medians`,
    });
    const draw = () => {
      const width = Math.max(200, plot.clientWidth),
        height = 260,
        left = 46,
        bottom = 24,
        top = 10;
      const count = curves.axes.step.length,
        tallest = Math.max(...curves.axes.step.map((_, i) => found.reduce((sum, [, values]) => sum + (values[i] || 0), 0))) || 1;
      const svg = s("svg", { width, height, "aria-hidden": "true" });
      const y = (value) => height - bottom - (value / (tallest * 1.05)) * (height - top - bottom),
        slot = (width - left - 12) / count;
      for (const value of vlrl.ticks(0, tallest * 1.05, 4))
        svg.append(
          s("line", { class: "rule", x1: left, x2: width - 12, y1: y(value), y2: y(value) }),
          s("text", { class: "tick", x: left - 7, y: y(value) + 4, "text-anchor": "end" }, vlrl.number(value)),
        );
      const base = new Array(count).fill(0);
      found.forEach(([, values], kind) => {
        let path = "";
        for (let i = 0; i < count; i++) {
          const x0 = left + i * slot,
            x1 = left + (i + 1) * slot - (slot > 4 ? 1 : 0);
          path += `M${x0} ${y(base[i])}V${y(base[i] + (values[i] || 0))}H${x1}V${y(base[i])}Z`;
          base[i] += values[i] || 0;
        }
        svg.append(s("path", { d: path, class: `f${kind % 6}` }));
      });
      for (const value of vlrl.ticks(0, count - 1, Math.max(2, Math.floor(width / 110)))) {
        if (Number.isInteger(value))
          svg.append(
            s(
              "text",
              { class: "tick", x: left + (value + 0.5) * slot, y: height - 6, "text-anchor": "middle" },
              vlrl.number(curves.axes.step[value]),
            ),
          );
      }
      plot.replaceChildren(svg);
    };
    vlrl.whenSeen(plot, plot, draw);
    return plot;
  }

  function table(found) {
    const sum = (values) => values.reduce((a, b) => a + (b || 0), 0);
    const all = found.reduce((total, [, values]) => total + sum(values), 0);
    const median = (values) => [...values].map((v) => v || 0).sort((a, b) => a - b)[Math.floor(values.length / 2)];
    return h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["part", "median", "total", "share"].map((name) => h("th", { scope: "col" }, name)),
        ),
      ),
      h(
        "tbody",
        {},
        found.map(([name, values], kind) =>
          h(
            "tr",
            {},
            h(
              "th",
              { scope: "row" },
              s(
                "svg",
                { class: "key", viewBox: "0 0 10 10", "aria-hidden": "true" },
                s("rect", { width: 10, height: 10, rx: 2, class: `f${kind % 6}` }),
              ),
              name,
            ),
            h("td", {}, vlrl.seconds(median(values))),
            h("td", {}, vlrl.seconds(sum(values))),
            h("td", {}, `${Math.round((100 * sum(values)) / all)} %`),
          ),
        ),
      ),
    );
  }

  // Episodes overlap: as few rows as no two of a row do.
  function rowsOf(spans) {
    const rows = [],
      ends = [];
    for (const span of [...spans].sort((a, b) => a[2] - b[2])) {
      let row = ends.findIndex((end) => end <= span[2] + 1e-9);
      if (row < 0) row = ends.length;
      ends[row] = span[3];
      (rows[row] = rows[row] || []).push(span);
    }
    return rows;
  }

  function gantt(timeline) {
    const box = h("div", {
      class: "plot",
      tabindex: "0",
      role: "img",
      "aria-label": `Timeline of steps ${timeline.steps[0]} to ${timeline.steps[timeline.steps.length - 1]}: what the trainer, the engines and the episodes did at the same time`,
    });
    const said = h("p", { class: "hint", "aria-live": "polite" }, "Point at a span to read it.");
    const end = Math.max(...timeline.spans.map((span) => span[3]));
    const draw = () => {
      const width = Math.max(200, box.clientWidth),
        left = width < 500 ? 62 : 84,
        svg = s("svg", { width, "aria-hidden": "true" });
      const x = (seconds) => left + (seconds / end) * (width - left - 12);
      let top = 6;
      for (const lane of LANES) {
        const rows = rowsOf(timeline.spans.filter((span) => span[0] === lane)),
          high = lane === "trainer" || lane === "generator" ? 22 : 9;
        if (!rows.length) continue;
        svg.append(
          s("text", { class: "tick", x: left - 8, y: top + (rows.length * (high + 2)) / 2 + 3, "text-anchor": "end" }, lane),
        );
        for (const row of rows) {
          for (const [, what, start, stop, words] of row) {
            const bar = s("rect", {
              class: `span ${COLORS[what] || "f5"}`,
              x: x(start),
              y: top,
              width: Math.max(1, x(stop) - x(start)),
              height: high,
              rx: 2,
            });
            bar.addEventListener("pointerenter", () => {
              said.textContent = `${lane}: ${WORDS[what] || what}, ${vlrl.seconds(stop - start)}, from ${vlrl.seconds(start)} on; ${vlrl.visible(words)}`;
            });
            svg.append(bar);
          }
          top += high + 2;
        }
        top += 8;
      }
      for (const value of vlrl.ticks(0, end, Math.max(2, Math.floor(width / 110))))
        svg.append(s("text", { class: "tick", x: x(value), y: top + 12, "text-anchor": "middle" }, `${vlrl.number(value)} s`));
      svg.setAttribute("height", top + 18);
      box.replaceChildren(svg);
    };
    vlrl.whenSeen(box, box, draw);
    const kinds = Object.keys(WORDS).filter((what) => timeline.spans.some((span) => span[1] === what));
    const key = h(
      "p",
      { class: "legend" },
      kinds.map((what) =>
        h(
          "span",
          {},
          s(
            "svg",
            { class: "key", viewBox: "0 0 10 10", "aria-hidden": "true" },
            s("rect", { width: 10, height: 10, rx: 2, class: COLORS[what] }),
          ),
          WORDS[what],
        ),
      ),
    );
    return h(
      "figure",
      { class: "panel wide" },
      h(
        "figcaption",
        {},
        h("h3", {}, `Timeline of steps ${timeline.steps[0]} to ${timeline.steps[timeline.steps.length - 1]}`),
        said,
      ),
      box,
      key,
    );
  }

  async function section(run) {
    const curves = await vlrl.load(`${run.key}/curves`, run.metrics),
      found = parts(curves);
    const timeline = run.has_timeline ? await vlrl.load(`${run.key}/timeline`, run.metrics) : { spans: [] };
    const per = curves.steps_per_point > 1 ? `; each bar is the mean of ${curves.steps_per_point} steps` : "";
    return h(
      "section",
      { class: "of-run" },
      h("h2", {}, vlrl.swatch(run.place), run.key),
      found.length
        ? h(
            "div",
            { class: "timing" },
            h(
              "figure",
              { class: "panel" },
              h("figcaption", {}, h("h3", {}, "Seconds per step"), h("p", { class: "hint" }, `Where a step's time goes${per}`)),
              stack(curves, found),
            ),
            h("div", { class: "panel" }, table(found)),
          )
        : h("p", { class: "empty" }, "This run has logged no times of its steps."),
      timeline.spans.length
        ? gantt(timeline)
        : h("p", { class: "calm" }, "No timeline: set logging.timeline to see what waited for what."),
    );
  }

  vlrl.pages.time = {
    title: "Time",
    async show(main) {
      const draw = async () => {
        const sections = await Promise.all(vlrl.shownRuns().map(section));
        main.replaceChildren(
          ...(sections.length ? sections : [h("p", { class: "empty" }, "All runs are hidden: choose one above.")]),
        );
      };
      await draw();
      return vlrl.onchange((what) => what !== "steps" && draw());
    },
  };
})();
