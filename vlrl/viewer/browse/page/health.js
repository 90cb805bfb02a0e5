"use strict";
// What is unusual in the runs' numbers, with the steps it concerns and what it may mean.
(function () {
  const { h } = vlrl;
  const CHARTS = [
    "reward/mean",
    "heldout/accuracy_greedy",
    "policy/entropy",
    "policy/kl_reference",
    "optim/grad_norm",
    "reward/zero_variance_groups",
    "completion/truncated_fraction",
    "policy/sampler_mismatch",
    "off_policy/staleness_mean",
    "off_policy/ess",
  ];

  function finding(run, each) {
    const steps = each.first === each.last ? `step ${each.first}` : `steps ${each.first} to ${each.last}`;
    const failed = each.metric === "failures" ? "&kind=failed" : "";
    const hasRollouts = run.steps.some(([step]) => step >= each.first && step <= each.last);
    return h(
      "li",
      { class: "finding" },
      h(
        "h3",
        {},
        h("span", { class: "sign", "aria-hidden": "true" }, "▲"),
        vlrl.visible(each.kind),
        h("span", { class: "when" }, steps),
      ),
      h("p", {}, vlrl.visible(each.words)),
      hasRollouts
        ? h("a", { href: `#rollouts?run=${run.key}&from=${each.first}&to=${each.last}${failed}` }, "Rollouts of these steps")
        : null,
    );
  }

  function failures(run, health) {
    const series = Object.entries(health.failures).map(([source, points], place) => ({
      name: vlrl.visible(source),
      place,
      points: points.map(([step, failed, count]) => [step, failed / count]),
    }));
    if (!series.some((line) => line.points.some(([, y]) => y > 0))) return null;
    const marks = marksOf(health, "failures");
    return h(
      "div",
      {},
      vlrl.chart({
        title: "failures by source",
        hint: "Share of a source's rollouts whose environment or agent failed; each has a line",
        series,
        marks,
        zero: true,
      }),
      h(
        "p",
        { class: "legend" },
        series.map((line) => h("span", {}, vlrl.swatch(line.place), line.name)),
      ),
    );
  }

  const marksOf = (health, metric) =>
    health.findings
      .filter((each) => each.metric === metric)
      .map((each) => ({ from: each.first, to: each.last, words: each.kind }));

  async function section(run) {
    const [health, curves] = await Promise.all([
      vlrl.load(`${run.key}/health`, run.metrics + JSON.stringify(run.steps.slice(-1))),
      vlrl.load(`${run.key}/curves`, run.metrics),
    ]);
    const charts = CHARTS.filter((name) => curves.series[name]).map((name) => {
      const points = curves.series[name].map((y, i) => [curves.axes.step[i], y]);
      const sparse = points.filter(([, y]) => y !== null).length < points.length / 3;
      return vlrl.chart({
        title: name,
        hint: curves.meanings[name],
        series: [{ name: run.key, place: run.place, points, sparse }],
        marks: marksOf(health, name),
        x: "step",
      });
    });
    const count = health.findings.length;
    return h(
      "section",
      { class: "of-run" },
      h(
        "h2",
        {},
        vlrl.swatch(run.place),
        run.key,
        h("span", { class: count ? "count odd" : "count" }, count ? `▲ ${count} unusual` : "● nothing unusual"),
      ),
      count
        ? h(
            "ul",
            { class: "findings" },
            health.findings.map((each) => finding(run, each)),
          )
        : h(
            "p",
            { class: "calm" },
            `Nothing unusual in ${curves.axes.step.length} steps: no entropy collapse, KL or gradient spike, falling held-out accuracy, or failing environment.`,
          ),
      h("div", { class: "grid" }, charts, failures(run, health)),
    );
  }

  vlrl.pages.health = {
    title: "Health",
    async show(main) {
      const draw = async () => {
        const runs = vlrl.shownRuns();
        const sections = await Promise.all(runs.map((run) => section(run)));
        main.replaceChildren(
          ...(sections.length ? sections : [h("p", { class: "empty" }, "All runs are hidden: choose one above.")]),
        );
      };
      await draw();
      return vlrl.onchange(draw);
    },
  };
})();
