"use strict";
// The tokens of a rollout, coloured by what is known of each; a cursor reads them one by one.
(function () {
  const { h } = vlrl;
  const PART = 2500;
  const SPECIAL = /^<\|[^|]*\|>$/;
  const MODES = {
    mask: ["what was generated", "generated"],
    logprob: ["log-probability when sampled", "surprising"],
    ratio: ["log-ratio, trainer − sampler", "trainer − sampler"],
    version: ["weight version", "version"],
    entropy: ["entropy", "entropy"],
    advantage: ["advantage", "advantage"],
  };
  let mode = "mask";

  /** Colours a number: classes d-4 to d4 of what has two sides, q0 to q6 of what begins at 0. */
  function painter(ledger) {
    const known = (name) => (ledger[name] || []).filter((value) => value !== null);
    const size = (name) => {
      const sorted = known(name)
        .map(Math.abs)
        .sort((a, b) => a - b);
      return sorted.length ? sorted[Math.floor(0.98 * (sorted.length - 1))] || sorted[sorted.length - 1] || 1 : 1;
    };
    if (mode === "mask") {
      const hasTrained = ledger.advantage.length > 0;
      return {
        paint: (i) => (!ledger.mask[i] ? "ctx" : hasTrained && ledger.advantage[i] === null ? "gen idle" : "gen"),
        legend: [["ctx", "context"], ["gen", "generated"], ...(hasTrained ? [["gen idle", "generated, not trained"]] : [])],
      };
    }
    if (mode === "version") {
      const versions = [...new Set(known("version"))].sort((a, b) => a - b);
      return {
        paint: (i) =>
          ledger.version[i] === null || ledger.version[i] === undefined ? "ctx" : `v${versions.indexOf(ledger.version[i]) % 6}`,
        legend: [["ctx", "context"], ...versions.slice(0, 12).map((version, i) => [`v${i % 6}`, `version ${version}`])],
      };
    }
    if (mode === "entropy" || mode === "logprob") {
      const top = size(mode);
      const bucket = (value) => `q${Math.max(0, Math.min(6, Math.floor((7 * Math.abs(value)) / (top * 1.0001))))}`;
      const ends = mode === "entropy" ? ["0 nats", `${vlrl.number(top)} nats`] : ["certain", `logprob −${vlrl.number(top)}`];
      return {
        paint: (i) => (ledger[mode][i] === null || ledger[mode][i] === undefined ? "ctx" : bucket(ledger[mode][i])),
        legend: [
          ["q0", ends[0]],
          ["q2", ""],
          ["q4", ""],
          ["q6", ends[1]],
        ],
      };
    }
    const top = size(mode);
    const bucket = (value) => `d${Math.max(-4, Math.min(4, Math.round((4 * value) / top)))}`;
    return {
      paint: (i) => (ledger[mode][i] === null || ledger[mode][i] === undefined ? "ctx" : bucket(ledger[mode][i])),
      legend: [
        ["d-4", `−${vlrl.number(top)}`],
        ["d-2", ""],
        ["d0", "0"],
        ["d2", ""],
        ["d4", `+${vlrl.number(top)}`],
      ],
    };
  }

  function told(ledger, i, count) {
    const facts = [`token ${i}`, `id ${ledger.ids[i]}`];
    if (count > 1) facts.push(`${count} of them`);
    const say = (name, words) => {
      const value = (ledger[name] || [])[i];
      if (value !== null && value !== undefined)
        facts.push(`${words} ${name === "version" ? value : value.toFixed(3).replace("-", "−")}`);
    };
    if (!ledger.mask[i]) facts.push("context, not trained");
    else {
      say("logprob", "logprob");
      if (ledger.logprob[i] !== null) facts.push(`p ${(100 * Math.exp(Math.min(0, ledger.logprob[i]))).toFixed(1)} %`);
      say("ratio", "log-ratio");
      say("entropy", "entropy");
      say("advantage", "advantage");
      say("version", "version");
    }
    return facts.join(" · ");
  }

  // Placeholders of a medium are thousands of equal tokens: one box says how many.
  function* pieces(ledger, from, to) {
    for (let i = from; i < to; i++) {
      let end = i + 1;
      if (!ledger.mask[i] && SPECIAL.test(ledger.texts[i]))
        while (end < to && ledger.ids[end] === ledger.ids[i] && !ledger.mask[end]) end++;
      yield [i, end - i];
      i = end - 1;
    }
  }

  function ledgerView(ledger, number, count) {
    const text = h("div", {
      class: "tokens",
      tabindex: "0",
      role: "group",
      "aria-label": `Tokens${count > 1 ? ` of ledger ${number + 1}` : ""}: arrow keys read them one by one`,
      dir: "ltr",
    });
    const told_ = h("p", { class: "token-told", "aria-live": "polite" }, "Point at a token, or use the arrow keys in the text.");
    let brush = painter(ledger),
      shown = 0,
      cursor = null;

    function add() {
      const to = Math.min(ledger.texts.length, shown + PART);
      const out = document.createDocumentFragment();
      for (const [i, times] of pieces(ledger, shown, to)) {
        const words = times > 1 ? `▦×${times}` : vlrl.visible(ledger.texts[i]).replace(/\n/g, "↵\n");
        const span = h(
          "span",
          { class: `t ${brush.paint(i)}${SPECIAL.test(ledger.texts[i]) ? " special" : ""}` },
          words.length > 600 ? `${words.slice(0, 600)}…` : words,
        );
        span.at = i;
        span.times = times;
        out.append(span);
      }
      shown = to;
      text.append(out);
      if (shown < ledger.texts.length) {
        const more = h(
          "button",
          { type: "button", class: "more" },
          `Show ${Math.min(PART, ledger.texts.length - shown)} of ${ledger.texts.length - shown} tokens more`,
        );
        more.addEventListener("click", () => {
          more.remove();
          add();
        });
        text.append(more);
      }
    }
    function read(span) {
      cursor?.classList.remove("at");
      cursor = span;
      if (!span) return;
      span.classList.add("at");
      told_.textContent = told(ledger, span.at, span.times);
    }
    text.addEventListener("pointerover", (event) => event.target.classList.contains("t") && read(event.target));
    text.addEventListener("click", (event) => event.target.classList.contains("t") && read(event.target));
    text.addEventListener("keydown", (event) => {
      const by = { ArrowRight: "nextElementSibling", ArrowLeft: "previousElementSibling" }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      const to = cursor ? cursor[by] : text.firstElementChild;
      if (to && to.classList.contains("t")) {
        read(to);
        to.scrollIntoView({ block: "nearest" });
      }
    });
    add();
    const repaint = () => {
      brush = painter(ledger);
      for (const span of text.querySelectorAll(".t"))
        span.className = `t ${brush.paint(span.at)}${SPECIAL.test(ledger.texts[span.at]) ? " special" : ""}`;
      return brush.legend;
    };
    const left = ledger.num_left_out
      ? h("p", { class: "hint" }, `${ledger.num_left_out} tokens more are in the run's folder.`)
      : null;
    const box = h(
      "div",
      { class: "ledger" },
      count > 1 ? h("h4", {}, `Ledger ${number + 1} of ${count}: the context was written again`) : null,
      text,
      told_,
      left,
    );
    return { box, repaint };
  }

  /** The tokens of all ledgers with the choice of colours. */
  vlrl.tokens = function (rollout) {
    const ledgers = rollout.ledgers;
    const has = (name) => name === "mask" || ledgers.some((ledger) => (ledger[name] || []).some((value) => value !== null));
    const modes = Object.keys(MODES).filter(has);
    if (!modes.includes(mode)) mode = "mask";
    const views = ledgers.map((ledger, i) => ledgerView(ledger, i, ledgers.length));
    const legend = h("p", { class: "token-legend" });
    const repaint = () => {
      const rows = views.map((view) => view.repaint());
      legend.replaceChildren(
        ...(rows[0] || []).map(([name, words]) => h("span", {}, h("span", { class: `t ${name}` }, "ab"), words)),
      );
    };
    const choice = vlrl.select(
      "Colour by",
      modes.map((name) => [name, MODES[name][0]]),
      mode,
      (value) => {
        mode = value;
        repaint();
      },
    );
    choice.querySelector("select").id = "colour";
    repaint();
    const total = ledgers.reduce((sum, ledger) => sum + ledger.texts.length + ledger.num_left_out, 0);
    const box = h(
      "section",
      { class: "block" },
      h(
        "div",
        { class: "block-head" },
        h(
          "h3",
          {},
          "Tokens",
          h(
            "span",
            { class: "soft" },
            ` ${total.toLocaleString("en")}, of which ${rollout.num_generated_tokens.toLocaleString("en")} generated`,
          ),
        ),
        choice,
      ),
      legend,
      views.map((view) => view.box),
    );
    box.cycle = () => {
      const select = choice.querySelector("select");
      select.value = mode = modes[(modes.indexOf(mode) + 1) % modes.length];
      repaint();
    };
    return box;
  };
})();
