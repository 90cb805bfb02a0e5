"use strict";
// One rollout: what was asked, done, earned and trained, and the same prompt through training.
(function () {
  const { h } = vlrl;

  /** The sign of a reward: how full it is says how high it is among the run's; a cross says failed. */
  vlrl.sign = function (row, scale) {
    const range = scale.high - scale.low;
    // Where all rewards are equal none of them is high or low.
    const fill = row.reward === null ? 0 : range > 0 ? (row.reward - scale.low) / range : 0.5;
    const kind = vlrl.failed(row) ? "failed" : row.reward === null ? "none" : `r${Math.round(4 * fill)}`;
    const box = h("span", { class: `sign ${kind}`, "aria-hidden": "true" }, vlrl.failed(row) ? "×" : "");
    box.style.setProperty("--fill", `${Math.round(8 + 92 * fill)}%`);
    return box;
  };
  vlrl.scaleOf = function (rows) {
    let low = Infinity,
      high = -Infinity;
    for (const row of rows)
      if (row.reward !== null) {
        low = Math.min(low, row.reward);
        high = Math.max(high, row.reward);
      }
    return { low, high };
  };

  /** The whole view of a rollout; its `step(by)` goes through turns, `colour()` changes the tokens' colours. */
  vlrl.rolloutView = async function (key, step, row, { ask = "", isCompared = false } = {}) {
    const version = (vlrl.run(key).steps.find(([each]) => each === step) || [])[2] || "";
    const rollout = await vlrl.load(`${key}/rollout/${step}/${row}`, version);
    rollout.run = key;
    const isEpisode = rollout.turns.length > 1 || rollout.turns.some((turn) => turn.gesture);
    const video = rollout.media.find((medium) => medium.frames > 1);
    const shown = isEpisode ? vlrl.episode(key, rollout) : null;
    const film = shown || (video ? vlrl.video(key, video) : null);
    const tokens = vlrl.tokens(rollout);
    const view = h(
      "article",
      { class: "rollout", "aria-label": `Rollout ${rollout.sample_id}, step ${step}` },
      head(rollout, ask, isCompared),
      isCompared ? null : members(rollout, ask),
      rollout.failure ? h("p", { class: "failure" }, `▲ ${vlrl.outcome(rollout.outcome)}: `, vlrl.long(rollout.failure)) : null,
      asked(rollout, !isEpisode, film),
      isEpisode
        ? h("section", { class: "block" }, h("h3", {}, "Episode"), shown)
        : h("section", { class: "block" }, h("h3", {}, "Answer"), answers(rollout)),
      rewards(rollout),
      tokens,
      isCompared ? null : vlrl.samePrompt(rollout, ask),
      more(rollout),
    );
    view.step = (by) => film && film.step(by);
    view.colour = () => tokens.cycle();
    view.rollout = rollout;
    return view;
  };

  function head(rollout, ask, isCompared) {
    const facts = [
      `step ${rollout.step}`,
      `group ${rollout.group + 1}, member ${rollout.group_index + 1}`,
      rollout.source,
      rollout.agent && `agent ${rollout.agent}`,
      rollout.weight_version !== null && `weights ${rollout.weight_version}`,
      rollout.duration_s ? vlrl.seconds(rollout.duration_s) : "",
      rollout.refusal && `refused by ${rollout.refusal}`,
      rollout.replayed && "trained again",
    ].filter(Boolean);
    const link = h(
      "button",
      {
        type: "button",
        onclick: async (event) => {
          const address = location.href.replace(/#.*/, `#rollout/${vlrl.idOf(rollout)}`);
          const button = event.currentTarget;
          await navigator.clipboard?.writeText(address).then(
            () => {
              button.textContent = "Copied";
            },
            () => {
              button.textContent = "Not allowed";
            },
          );
          setTimeout(() => {
            button.textContent = "Copy link";
          }, 1500);
        },
      },
      "Copy link",
    );
    return h(
      "header",
      { class: "rollout-head" },
      isCompared ? null : h("a", { class: "back", href: `#rollouts?${ask}` }, "◀ List"),
      h(
        "div",
        { class: "score" },
        h("b", { class: rollout.reward === null ? "none" : "" }, vlrl.reward(rollout.reward)),
        h("span", {}, "reward"),
        rollout.advantage !== null ? h("span", {}, h("i", {}, vlrl.signed(rollout.advantage)), " advantage") : null,
      ),
      h(
        "div",
        { class: "title" },
        h("h2", {}, vlrl.visible(rollout.sample_id).slice(0, 300)),
        h("p", { class: "soft" }, isCompared ? `${rollout.run} · ` : "", facts.map(vlrl.visible).join(" · ")),
      ),
      h(
        "span",
        { class: `outcome ${vlrl.failed(rollout) ? "bad" : rollout.outcome}` },
        vlrl.failed(rollout) ? "× " : rollout.outcome === "ok" ? "● " : "▲ ",
        vlrl.outcome(rollout.outcome),
      ),
      isCompared
        ? null
        : h("div", { class: "actions" }, link, h("a", { class: "button", href: `#compare/${vlrl.idOf(rollout)}` }, "Compare")),
    );
  }

  function members(rollout, ask) {
    const rows = (vlrl.rowsOf(rollout.run).bySteps.get(rollout.step) || { rows: [] }).rows.filter(
      (row) => row.group === rollout.group && row.agent === rollout.agent,
    );
    if (rows.length < 2) return null;
    const scale = vlrl.scaleOf(vlrl.rowsOf(rollout.run).rows);
    return h(
      "nav",
      { class: "members", "aria-label": "Members of the group" },
      rows
        .sort((a, b) => a.group_index - b.group_index)
        .map((row) =>
          h(
            "a",
            { href: `#rollout/${vlrl.idOf(row)}?${ask}`, "aria-current": row.row === rollout.row ? "page" : null },
            vlrl.sign(row, scale),
            vlrl.failed(row) ? "failed" : vlrl.reward(row.reward),
          ),
        ),
    );
  }

  function asked(rollout, hasImages, film) {
    const texts = rollout.messages.map((message) => {
      const isLong = message.role === "system";
      const body = vlrl.long(message.text, { class: "message" });
      return isLong
        ? h("details", {}, h("summary", {}, message.role), body)
        : h("div", { class: "turn" }, h("span", { class: "role" }, vlrl.visible(message.role)), body);
    });
    const first = rollout.turns[0] ? rollout.turns[0].shown : rollout.media.map((_, i) => i);
    const images = hasImages
      ? first
          .map((i) => rollout.media[i])
          .filter(Boolean)
          .map((medium) => (medium.frames > 1 && film ? film : vlrl.picture(rollout.run, medium)))
      : [];
    return h(
      "section",
      { class: "block" },
      h("h3", {}, "Prompt"),
      h(
        "div",
        { class: "asked" },
        images.length ? h("div", { class: "images" }, images) : null,
        h(
          "div",
          { class: "texts" },
          texts,
          rollout.answer !== null
            ? h("div", { class: "wanted" }, h("span", { class: "role" }, "right answer"), vlrl.long(rollout.answer))
            : null,
        ),
      ),
    );
  }

  function answers(rollout) {
    if (!rollout.turns.length) return vlrl.long(rollout.completion, { class: "deed" });
    return rollout.turns.map((turn) => [
      turn.thought ? vlrl.long(turn.thought, { class: "thought" }) : null,
      vlrl.long(turn.deed, { class: "deed" }),
      turn.finished ? null : h("p", { class: "odd-words" }, "▲ cut off: longer than rollout.max_tokens"),
    ]);
  }

  function rewards(rollout) {
    const parts = Object.entries(rollout.parts);
    if (!parts.length) return null;
    const known = vlrl.run(rollout.run).parts,
      why = rollout.explanations || {};
    const largest = Math.max(1e-9, ...parts.map(([, value]) => Math.abs(value || 0)));
    const explain = (name) =>
      known.find((each) => each.name === name || each.name.split(":").pop() === name || name.startsWith(`${each.name}.`));
    return h(
      "section",
      { class: "block" },
      h("h3", {}, "Reward"),
      h(
        "table",
        { class: "parts" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["part", "value", "", "what it is"].map((name) =>
              h("th", { scope: "col" }, name || h("span", { class: "sr" }, "size")),
            ),
          ),
        ),
        h(
          "tbody",
          {},
          parts.map(([name, value]) => {
            const found = explain(name),
              bar = h("span", { class: `bar ${value < 0 ? "minus" : ""}` });
            bar.style.setProperty("--size", `${(100 * Math.abs(value || 0)) / largest}%`);
            return h(
              "tr",
              {},
              h("th", { scope: "row" }, vlrl.visible(name).slice(0, 200)),
              h("td", {}, vlrl.number(value)),
              h("td", { class: "bars" }, bar),
              h("td", { class: "words" }, [
                why[name] ? vlrl.long(why[name], { class: "why" }) : null,
                found
                  ? [vlrl.visible(found.words), h("span", { class: "soft" }, ` weight ${vlrl.visible(found.weight)}`)]
                  : "a part that the reward logs",
              ]),
            );
          }),
        ),
      ),
    );
  }

  function more(rollout) {
    const facts = [
      ["outcome", vlrl.outcome(rollout.outcome)],
      ["turns", rollout.num_turns],
      ["return", rollout.episode_return],
      ["position", rollout.position],
      ...Object.entries(rollout.info),
    ].filter(([, value]) => value !== null && value !== undefined);
    return h(
      "details",
      { class: "block fold" },
      h("summary", {}, h("b", {}, "All that is known of it")),
      h(
        "dl",
        { class: "info" },
        facts.map(([name, value]) => [h("dt", {}, vlrl.visible(name)), h("dd", {}, vlrl.visible(value))]),
      ),
      rollout.env ? [h("h4", {}, "Environment"), vlrl.long(rollout.env, { class: "code" })] : null,
      rollout.metadata && rollout.metadata !== "{}"
        ? [h("h4", {}, "Metadata"), vlrl.long(rollout.metadata, { class: "code" })]
        : null,
    );
  }
})();
