"use strict";
// The same prompt through training: its rewards by step, in all runs that are shown.
(function () {
  const { h } = vlrl;

  /** A fold with the rewards of a rollout's prompt by step, and links to all its answers. */
  vlrl.samePrompt = function (rollout, ask) {
    const body = h("div", {}),
      box = h("details", { class: "block fold" }, h("summary", {}, h("b", {}, "Same prompt through training")), body);
    box.addEventListener("toggle", async () => {
      if (!box.open || body.childNodes.length) return;
      const runs = vlrl.shownRuns().some((run) => run.key === rollout.run) ? vlrl.shownRuns() : [vlrl.run(rollout.run)];
      body.replaceChildren(h("p", { class: "hint" }, "Loading"));
      await Promise.all(runs.map((run) => vlrl.rowsOf(run.key).load()));
      const found = runs.map((run) => [
        run,
        vlrl
          .groups(vlrl.rowsOf(run.key).rows.filter((row) => row.sample_id === rollout.sample_id))
          .sort((a, b) => a.step - b.step),
      ]);
      const series = found
        .filter(([, groups]) => groups.length)
        .map(([run, groups]) => ({
          name: run.key,
          place: run.place,
          sparse: true,
          points: groups.map((group) => [group.step, group.mean]),
        }));
      const own = (found.find(([run]) => run.key === rollout.run) || [null, []])[1];
      const scale = vlrl.scaleOf(vlrl.rowsOf(rollout.run).rows);
      body.replaceChildren(
        vlrl.chart({ title: "Mean reward of its groups", series, x: "step" }),
        h(
          "ol",
          { class: "same" },
          own.map((group) =>
            h(
              "li",
              {},
              h("span", { class: "soft" }, `step ${group.step}`),
              group.members.map((row) =>
                h(
                  "a",
                  {
                    href: `#rollout/${vlrl.idOf(row)}?${ask}`,
                    "aria-label": `step ${row.step}, member ${row.group_index + 1}, reward ${vlrl.reward(row.reward)}`,
                    "aria-current": row.step === rollout.step && row.row === rollout.row ? "page" : null,
                  },
                  vlrl.sign(row, scale),
                ),
              ),
              h("span", {}, vlrl.reward(group.mean)),
            ),
          ),
        ),
      );
    });
    return box;
  };
})();
