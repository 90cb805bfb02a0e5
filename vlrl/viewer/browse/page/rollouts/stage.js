"use strict";
// Images as the model saw them: what was done on each, a video's frames on a time line, an episode turn by turn.
(function () {
  const { h, s } = vlrl;
  const SMALL = 256;
  let arrows = 0;

  /** A medium's frame, with marks: gesture is that of the turn which answered it. */
  vlrl.picture = function (run, medium, { frame = 0, gesture = null, number = null, small = false } = {}) {
    const name = `${medium.kind} of ${medium.width} × ${medium.height} pixels${medium.frames > 1 ? `, frame ${frame + 1} of ${medium.frames}` : ""}`;
    const box = h("div", {
      class: `frame${Math.min(medium.width, medium.height) < SMALL ? " pixelated" : ""}${small ? " small" : ""}`,
    });
    box.style.setProperty("aspect-ratio", `${medium.width || 4} / ${medium.height || 3}`);
    box.style.setProperty("--width", `${medium.width}px`);
    box.style.setProperty("--ratio", String((medium.width || 4) / (medium.height || 3)));
    if (medium.missing) {
      box.append(h("span", { class: "lost" }, "the image is not kept"));
      return box;
    }
    const image = h("img", {
      alt: gesture ? `${name}; ${described(gesture)}` : name,
      decoding: "async",
      draggable: "false",
      src: vlrl.media(run, medium),
    });
    image.style.setProperty("width", `${100 * medium.frames}%`);
    image.style.setProperty("transform", `translateX(${(-100 * frame) / medium.frames}%)`);
    image.addEventListener("error", () =>
      box.replaceChildren(h("span", { class: "lost" }, "the file is not an image that can be shown")),
    );
    box.append(h("div", { class: "clip" }, image));
    if (gesture && (gesture.points.length || gesture.box)) box.append(marks(medium, gesture, number));
    return box;
  };

  function described(gesture) {
    const places = gesture.points.map(([x, y]) => `(${Math.floor(x)}, ${Math.floor(y)})`);
    const ends = places.length > 2 ? [places[0], places[places.length - 1]] : places;
    return [
      gesture.words,
      ends.length ? `at ${ends.join(" to ")}` : "",
      gesture.typed ? `"${vlrl.visible(gesture.typed)}"` : "",
      gesture.widget ? `on ${vlrl.visible(gesture.widget)}` : "",
    ]
      .filter(Boolean)
      .join(" ");
  }
  vlrl.gestureWords = described;

  // Each mark twice: a light rim below the colour, so that it is seen on any image.
  function marks(medium, gesture, number) {
    const [width, height] = medium.original,
      r = Math.max(width, height) / 60;
    const id = `arrow-${(arrows += 1)}`;
    const svg = s(
      "svg",
      { class: "marks", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      s(
        "defs",
        {},
        s(
          "marker",
          { id, viewBox: "0 0 10 10", refX: 8, refY: 5, markerWidth: 5, markerHeight: 5, orient: "auto" },
          s("path", { d: "M0 0 10 5 0 10z", class: "head" }),
        ),
      ),
    );
    const twice = (tag, properties) =>
      ["rim", "ink"].forEach((kind) =>
        svg.append(s(tag, { ...properties, class: kind, "marker-end": kind === "ink" ? properties["marker-end"] : null })),
      );
    if (gesture.box)
      twice("rect", {
        x: gesture.box[0],
        y: gesture.box[1],
        width: gesture.box[2],
        height: gesture.box[3],
        rx: 2,
        "stroke-dasharray": "6 4",
      });
    const points = gesture.points;
    if (!points.length) return svg;
    const [x, y] = points[0];
    if (gesture.kind === "path") {
      twice("polyline", { points: points.map((point) => point.join(",")).join(" "), "marker-end": `url(#${id})` });
      twice("circle", { cx: x, cy: y, r: r * 0.5 });
    } else if (gesture.kind === "scroll") {
      twice("line", {
        x1: x,
        y1: y,
        x2: x + gesture.towards[0] * r * 6,
        y2: y + gesture.towards[1] * r * 6,
        "marker-end": `url(#${id})`,
      });
    } else {
      for (let ring = 0; ring < gesture.rings; ring++) twice("circle", { cx: x, cy: y, r: r * (1 + ring * 0.7) });
      twice("circle", { cx: x, cy: y, r: r * 0.2 });
    }
    if (number !== null)
      svg.append(s("text", { class: "number", x: x + r * 1.6, y: y - r, "font-size": r * 1.8 }, String(number)));
    return svg;
  }

  /** A video: a frame, and all frames on a time line. Keys left and right step through it. */
  vlrl.video = function (run, medium) {
    const big = h("div", { class: "stage-image" }),
      line = h("div", { class: "film", role: "group", "aria-label": "Frames" });
    const count = Math.min(medium.frames, 64),
      stride = medium.frames / count;
    const words = (frame) => (medium.times[frame] === undefined ? `frame ${frame + 1}` : `${medium.times[frame].toFixed(1)} s`);
    const range = h("input", { type: "range", min: 0, max: medium.frames - 1, value: 0, "aria-label": "Frame" });
    const said = h("output", {});
    const box = h("div", { class: "video" }, big, h("div", { class: "scrub" }, range, said), line);
    const buttons = Array.from({ length: count }, (_, i) => Math.floor(i * stride)).map((frame) =>
      h(
        "button",
        { type: "button", class: "cell", onclick: () => go(frame) },
        vlrl.picture(run, medium, { frame, small: true }),
        h("span", {}, words(frame)),
      ),
    );
    line.append(...buttons);
    let at = 0;
    function go(frame) {
      at = Math.max(0, Math.min(medium.frames - 1, frame));
      big.replaceChildren(vlrl.picture(run, medium, { frame: at }));
      range.value = at;
      said.textContent = `${words(at)} · ${at + 1}/${medium.frames}`;
      buttons.forEach((button, i) => button.setAttribute("aria-current", String(i === Math.floor(at / stride))));
    }
    range.addEventListener("input", () => go(Number(range.value)));
    box.step = (by) => go(at + by);
    go(0);
    return box;
  };

  /** An episode: a turn large with what was done on its image, and a strip of all turns. */
  vlrl.episode = function (run, rollout) {
    const turns = rollout.turns,
      strip = h("div", { class: "film", role: "group", "aria-label": "Turns" });
    const stage = h("div", { class: "stage" }),
      said = h("p", { class: "turn-at" });
    const back = h(
      "button",
      { type: "button", "aria-label": "Previous turn", "aria-keyshortcuts": "ArrowLeft", onclick: () => go(at - 1) },
      "◀",
    );
    const next = h(
      "button",
      { type: "button", "aria-label": "Next turn", "aria-keyshortcuts": "ArrowRight", onclick: () => go(at + 1) },
      "▶",
    );
    const box = h("div", { class: "episode" }, h("div", { class: "steps" }, back, said, next), stage, strip);
    const last = rollout.end.length ? turns.length : turns.length - 1;
    let at = 0;
    const cells = [];
    for (let i = 0; i <= last; i++) cells.push(cell(i));
    strip.append(...cells);

    function cell(i) {
      const turn = turns[i],
        shown = turn ? turn.shown : rollout.end;
      const medium = rollout.media[shown[shown.length - 1]];
      const name = !turn ? "end" : `${i + 1}${turn.reward ? ` ${vlrl.signed(turn.reward)}` : ""}`;
      return h(
        "button",
        {
          type: "button",
          class: `cell${turn && turn.invalid ? " odd" : ""}`,
          "aria-label": turn ? `turn ${name}` : name,
          onclick: () => go(i),
        },
        medium
          ? vlrl.picture(run, medium, { gesture: turn ? turn.gesture : null, small: true })
          : h("span", { class: "frame small none" }, turn ? vlrl.visible(turn.deed).slice(0, 40) : ""),
        h("span", {}, name),
      );
    }

    function go(i) {
      at = Math.max(0, Math.min(last, i));
      const turn = turns[at],
        shown = turn ? turn.shown : rollout.end;
      said.textContent = turn ? `Turn ${at + 1} of ${turns.length}` : "After the last action";
      back.disabled = at === 0;
      next.disabled = at === last;
      const media = shown.map((index) => rollout.media[index]).filter(Boolean);
      const images = media.map((medium, index) =>
        medium.frames > 1
          ? vlrl.video(run, medium)
          : vlrl.picture(run, medium, { gesture: turn && index === media.length - 1 ? turn.gesture : null, number: at + 1 }),
      );
      stage.replaceChildren(
        h("div", { class: "stage-image" }, images),
        turn ? told(turn) : h("p", { class: "hint" }, "What the environment showed when the episode had ended."),
      );
      cells.forEach((each, index) => each.setAttribute("aria-current", String(index === at)));
      const { offsetLeft, offsetWidth } = cells[at];
      if (offsetLeft < strip.scrollLeft || offsetLeft + offsetWidth > strip.scrollLeft + strip.clientWidth)
        strip.scrollLeft = offsetLeft - strip.clientWidth / 2;
    }
    box.step = (by) => go(at + by);
    go(0);
    return box;
  };

  const HIDDEN = new Set(["gui_action", "point", "widget", "widget_box"]);

  function told(turn) {
    const marks = [
      turn.invalid ? "invalid: the environment could not read it" : "",
      turn.finished ? "" : "cut off: longer than rollout.max_tokens",
      turn.is_new_ledger ? "context again: what was shown before was rewritten" : "",
    ].filter(Boolean);
    const info = Object.entries(turn.info).filter(([name]) => !HIDDEN.has(name));
    return h(
      "div",
      { class: "told" },
      turn.gesture ? h("p", { class: "gesture" }, described(turn.gesture)) : null,
      turn.thought ? vlrl.long(turn.thought, { class: "thought" }) : null,
      vlrl.long(turn.deed, { class: "deed" }),
      h(
        "p",
        { class: "numbers" },
        turn.reward ? h("span", {}, h("i", {}, "reward "), vlrl.signed(turn.reward)) : null,
        turn.advantage !== null ? h("span", {}, h("i", {}, "advantage "), vlrl.signed(turn.advantage)) : null,
      ),
      marks.map((words) => h("p", { class: "odd-words" }, `▲ ${words}`)),
      info.length
        ? h(
            "dl",
            { class: "info" },
            info.map(([name, value]) => [h("dt", {}, vlrl.visible(name)), h("dd", {}, vlrl.long(value))]),
          )
        : null,
    );
  }
})();
