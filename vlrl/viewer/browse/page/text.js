"use strict";
// Texts and numbers made fit to show.
(function () {
  const { h } = vlrl;
  const FIRST = 3000;
  // Marks that have no shape, or turn the text around them: shown by their code point.
  const HIDDEN =
    /[\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

  /** A text whose control characters, bidi marks and lone surrogates can be seen. */
  vlrl.visible = (text) =>
    String(text)
      .replace(/[\u0000-\u0008\u000b-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
      .replace(HIDDEN, (c) => `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

  /** A long text: its beginning, and a button for the rest. */
  vlrl.long = function (text, properties = {}) {
    text = String(text ?? "");
    const box = h("div", { ...properties, class: `said ${properties.class || ""}`, dir: "ltr" });
    box.append(vlrl.visible(text.slice(0, FIRST)));
    if (text.length > FIRST) {
      const rest = text.length - FIRST;
      const more = h("button", { type: "button", class: "more" }, `Show ${rest.toLocaleString("en")} characters more`);
      more.addEventListener("click", () => more.replaceWith(vlrl.visible(text.slice(FIRST))));
      box.append(more);
    }
    return box;
  };

  /** A number in few characters. */
  vlrl.number = function (value, digits = 3) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    const size = Math.abs(value);
    if (size >= 1e9) return `${trim((value / 1e9).toPrecision(3))}B`;
    if (size >= 1e6) return `${trim((value / 1e6).toPrecision(3))}M`;
    if (size >= 1e4) return `${trim((value / 1e3).toPrecision(3))}k`;
    if (size !== 0 && size < 1e-3) return value.toExponential(1).replace("-", "−");
    return trim(value.toPrecision(digits)).replace("-", "−");
  };
  const trim = (text) => (text.includes(".") && !text.includes("e") ? text.replace(/\.?0+$/, "") : String(Number(text)));

  /** A reward or an advantage, with two decimals; null is "no score". */
  vlrl.reward = (value) => (value === null || value === undefined ? "no score" : value.toFixed(2).replace("-", "−"));

  /** The same with its sign. */
  vlrl.signed = (value) => (value > 0 ? "+" : "") + vlrl.reward(value);

  /** Seconds in words. */
  vlrl.seconds = (s) =>
    s === null || s === undefined
      ? "–"
      : s < 100
        ? `${vlrl.number(s)} s`
        : s < 6000
          ? `${(s / 60).toFixed(1)} min`
          : `${(s / 3600).toFixed(1)} h`;

  /** Whether a rollout failed: it is never scored. */
  vlrl.failed = (row) => row.outcome !== "ok" && row.outcome !== "truncated";

  const OUTCOMES = {
    ok: "done",
    truncated: "cut off",
    agent_error: "agent failed",
    env_error: "environment failed",
    timeout: "too slow",
  };
  vlrl.outcome = (name) => OUTCOMES[name] || name;
})();
