"use strict";
// Line charts in SVG: several series with colour, dash and mark, bands, marked steps; read by mouse, touch and keys.
(function () {
  const { h, s } = vlrl;
  const LEFT = 46,
    RIGHT = 12,
    TOP = 10,
    BOTTOM = 24;
  const DASHES = ["", "7 3", "2 3", "9 3 2 3", "5 2", "1 3"];

  /** Class and dash of a run's line. */
  vlrl.lineStyle = (place) => ({ color: `c${place % 6}`, dash: DASHES[place % 6] });

  /** A run's sign: a piece of its line with its mark. */
  vlrl.swatch = (place) =>
    s(
      "svg",
      { class: "swatch", viewBox: "0 0 26 12", "aria-hidden": "true" },
      s("line", {
        x1: 1,
        x2: 25,
        y1: 6,
        y2: 6,
        class: `line ${vlrl.lineStyle(place).color}`,
        "stroke-dasharray": vlrl.lineStyle(place).dash,
      }),
      mark(place, 13, 6),
    );

  function mark(place, x, y) {
    const kind = place % 6,
      properties = { class: `mark ${vlrl.lineStyle(place).color}` },
      r = 3.6;
    if (kind === 0) return s("circle", { ...properties, cx: x, cy: y, r });
    if (kind === 1) return s("rect", { ...properties, x: x - r, y: y - r, width: 2 * r, height: 2 * r });
    const shapes = [
      [0, -1, 1, 0.9, -1, 0.9],
      [0, -1.2, 1.2, 0, 0, 1.2, -1.2, 0],
      [0, 1, 1, -0.9, -1, -0.9],
      [-1, -1, 0, -0.4, 1, -1, 0.4, 0, 1, 1, 0, 0.4, -1, 1, -0.4, 0],
    ];
    return s("polygon", { ...properties, points: shapes[kind - 2].map((v, i) => (i % 2 ? y : x) + v * r).join(" ") });
  }

  /** Round numbers that part a range. */
  vlrl.ticks = function (low, high, count) {
    const raw = (high - low) / count || 1,
      size = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * size).find((each) => each >= raw * 0.999);
    const out = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++)
      out.push(Math.abs(i * step) < step * 1e-9 ? 0 : i * step);
    return out;
  };

  /** A tick's number, with as many digits as tell it from its neighbours. */
  function label(value, values) {
    const texts = (digits) => values.map((each) => vlrl.number(each, digits));
    for (let digits = 3; digits < 8; digits++) {
      if (new Set(texts(digits)).size === values.length) return vlrl.number(value, digits);
    }
    return vlrl.number(value);
  }

  /** Means of the last `width` points; null stays null. */
  vlrl.smooth = function (points, width) {
    if (width <= 1) return points;
    const out = [],
      window = [];
    for (const [x, y] of points) {
      if (y === null) {
        out.push([x, null]);
        continue;
      }
      window.push(y);
      if (window.length > width) window.shift();
      out.push([x, window.reduce((a, b) => a + b, 0) / window.length]);
    }
    return out;
  };

  /**
   * A chart.
   * given: {title, hint, series: [{name, place, points: [[x, y]], faint, band: [[x, low, high]], sparse}], height,
   *         x: words of the axis, marks: [{from, to, words}], zero}
   */
  vlrl.chart = function (given) {
    const plot = h("div", { class: "plot", tabindex: "0", role: "img" });
    const tip = h("div", { class: "tip", hidden: true });
    const frame = h(
      "figure",
      { class: "panel" },
      h(
        "figcaption",
        {},
        h("h3", {}, given.title),
        given.latest ? h("span", { class: "latest" }, given.latest) : null,
        given.hint ? h("p", { class: "hint", title: given.hint }, given.hint) : null,
      ),
      h("div", { class: "plotbox" }, plot, tip),
    );
    const lines = given.series.filter((line) => line.points.some(([, y]) => y !== null));
    plot.setAttribute("aria-label", spoken(given, lines));
    let at = null,
      scale = null;

    function draw() {
      const width = Math.max(180, plot.clientWidth),
        height = given.height || 190;
      scale = scaleOf(given, lines, width, height);
      plot.replaceChildren(picture(given, lines, scale, width, height));
      if (at !== null) show(at);
    }

    function show(index) {
      const xs = scale.xs;
      if (!xs.length) return;
      at = Math.max(0, Math.min(xs.length - 1, index));
      const x = xs[at],
        left = scale.x(x);
      const rows = lines
        .filter((line) => !line.faint)
        .map((line) => [line, near(line.points, x)])
        .filter(([, y]) => y !== null);
      const found = (given.marks || []).filter((each) => x >= each.from && x <= each.to);
      tip.replaceChildren(
        h("b", {}, `${given.x || "step"} ${vlrl.number(x, 6)}`),
        ...rows.map(([line, y]) =>
          h("span", { class: "row" }, vlrl.swatch(line.place), h("span", {}, line.name), h("b", {}, vlrl.number(y, 4))),
        ),
        ...found.map((each) => h("span", { class: "note" }, `▲ ${each.words}`)),
      );
      tip.hidden = false;
      const room = plot.clientWidth;
      tip.style.setProperty("left", `${Math.max(0, Math.min(room - tip.offsetWidth, left - tip.offsetWidth / 2))}px`);
      const cross = plot.querySelector(".cross");
      if (cross) {
        cross.setAttribute("x1", left);
        cross.setAttribute("x2", left);
        cross.setAttribute("visibility", "visible");
      }
    }

    function hide() {
      at = null;
      tip.hidden = true;
      plot.querySelector(".cross")?.setAttribute("visibility", "hidden");
    }
    const pointed = (event) => scale && show(nearest(scale.xs, scale.back(event.clientX - plot.getBoundingClientRect().left)));
    plot.addEventListener("pointermove", pointed);
    plot.addEventListener("pointerdown", pointed);
    plot.addEventListener("pointerleave", hide);
    plot.addEventListener("blur", hide);
    plot.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by || !scale) return;
      event.preventDefault();
      event.stopPropagation();
      show(at === null ? (by > 0 ? 0 : scale.xs.length - 1) : at + by);
    });
    whenSeen(frame, plot, draw);
    return frame;
  };

  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries)
        if (entry.isIntersecting) {
          entry.target.isSeen = true;
          entry.target.redraw();
        }
    },
    { rootMargin: "300px" },
  );
  const sized = new ResizeObserver((entries) => {
    for (const entry of entries) {
      const width = Math.round(entry.contentRect.width);
      if (entry.target.isSeen && entry.target.drawnWidth !== width) {
        entry.target.drawnWidth = width;
        entry.target.redraw();
      }
    }
  });

  function whenSeen(frame, plot, draw) {
    plot.redraw = draw;
    seen.observe(plot);
    sized.observe(plot);
  }
  vlrl.whenSeen = whenSeen;

  function spoken(given, lines) {
    const ends = lines
      .filter((line) => !line.faint)
      .slice(0, 8)
      .map((line) => {
        const known = line.points.filter(([, y]) => y !== null);
        return `${line.name}: ${vlrl.number(known[0][1])} to ${vlrl.number(known[known.length - 1][1])}`;
      });
    const marks = (given.marks || []).map((each) => each.words);
    return `${given.title}. ${ends.join("; ")}${marks.length ? `. Unusual: ${marks.join("; ")}` : ""}. Left and right arrows read points.`;
  }

  function scaleOf(given, lines, width, height) {
    const xs = [...new Set(lines.flatMap((line) => line.points.filter(([, y]) => y !== null).map(([x]) => x)))].sort(
      (a, b) => a - b,
    );
    const ys = lines
      .flatMap((line) => [...line.points.map(([, y]) => y), ...(line.band || []).flatMap(([, low, high]) => [low, high])])
      .filter((y) => y !== null);
    let [x0, x1] = [xs[0] ?? 0, xs[xs.length - 1] ?? 1];
    let [y0, y1] = ys.length ? [Math.min(...thin(ys)), Math.max(...thin(ys))] : [0, 1];
    if (given.zero) y0 = Math.min(0, y0);
    if (x0 === x1) [x0, x1] = [x0 - 0.5, x1 + 0.5];
    if (y0 === y1) [y0, y1] = [y0 - (Math.abs(y0) * 0.1 || 0.5), y1 + (Math.abs(y1) * 0.1 || 0.5)];
    const room = (y1 - y0) * 0.06;
    y0 = y0 >= 0 && y0 - room < 0 ? 0 : y0 - room;
    y1 += room;
    const x = (value) => LEFT + ((value - x0) / (x1 - x0)) * (width - LEFT - RIGHT);
    const y = (value) => height - BOTTOM - ((value - y0) / (y1 - y0)) * (height - TOP - BOTTOM);
    const back = (left) => x0 + ((left - LEFT) / (width - LEFT - RIGHT)) * (x1 - x0);
    return { xs, x, y, back, x0, x1, y0, y1 };
  }
  // Math.min takes its numbers as arguments, of which there is a limit.
  const thin = (values) => [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];

  function picture(given, lines, scale, width, height) {
    const svg = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    const rows = vlrl.ticks(scale.y0, scale.y1, 4);
    for (const value of rows) {
      const y = scale.y(value);
      svg.append(
        s("line", { class: "rule", x1: LEFT, x2: width - RIGHT, y1: y, y2: y }),
        s("text", { class: "tick", x: LEFT - 7, y: y + 4, "text-anchor": "end" }, label(value, rows)),
      );
    }
    const columns = vlrl.ticks(scale.x0, scale.x1, Math.max(3, Math.floor(width / 65)));
    const isCount = (given.x || "step") !== "hour";
    for (const value of columns) {
      if (isCount && !Number.isInteger(value)) continue;
      svg.append(s("text", { class: "tick", x: scale.x(value), y: height - 6, "text-anchor": "middle" }, label(value, columns)));
    }
    for (const each of given.marks || []) {
      const left = scale.x(Math.max(scale.x0, each.from)),
        right = scale.x(Math.min(scale.x1, each.to));
      svg.append(
        s("rect", { class: "odd", x: left - 3, y: TOP, width: Math.max(6, right - left + 6), height: height - TOP - BOTTOM }),
        s("path", { class: "oddmark", d: `M${(left + right) / 2 - 5} ${TOP - 1}h10l-5 8z` }),
      );
    }
    for (const line of lines) {
      const style = vlrl.lineStyle(line.place);
      if (line.band && line.band.length > 1) {
        const there = line.band.map(([x, , high]) => `${scale.x(x)},${scale.y(high)}`);
        const back = [...line.band].reverse().map(([x, low]) => `${scale.x(x)},${scale.y(low)}`);
        svg.append(s("polygon", { class: `band ${style.color}`, points: [...there, ...back].join(" ") }));
      }
    }
    for (const line of lines) {
      const style = vlrl.lineStyle(line.place);
      const known = line.points.filter(([, y]) => y !== null);
      for (const run of pieces(line.sparse ? known : line.points)) {
        svg.append(
          s("polyline", {
            class: `line ${style.color}${line.faint ? " faint" : ""}`,
            "stroke-dasharray": line.faint ? "" : style.dash,
            points: run.map(([x, y]) => `${scale.x(x).toFixed(1)},${scale.y(y).toFixed(1)}`).join(" "),
          }),
        );
      }
      if (line.faint) continue;
      const marked = line.sparse || known.length < 3 ? known : [known[known.length - 1]];
      for (const [x, y] of marked) svg.append(mark(line.place, scale.x(x), scale.y(y)));
    }
    svg.append(s("line", { class: "cross", x1: 0, x2: 0, y1: TOP, y2: height - BOTTOM, visibility: "hidden" }));
    return svg;
  }

  function pieces(points) {
    const out = [];
    let run = [];
    for (const point of points) {
      if (point[1] === null) {
        if (run.length) out.push(run);
        run = [];
      } else run.push(point);
    }
    return run.length ? [...out, run] : out;
  }

  function nearest(xs, x) {
    let best = 0;
    xs.forEach((each, i) => {
      if (Math.abs(each - x) < Math.abs(xs[best] - x)) best = i;
    });
    return best;
  }

  function near(points, x) {
    let best = null;
    for (const [each, y] of points) if (y !== null && each <= x + 1e-12) best = y;
    return best;
  }
})();
