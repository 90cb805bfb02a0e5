"use strict";
// The rollouts of the runs as light rows: loaded newest first in blocks, filtered and sorted here.
(function () {
  const FIRST = 400,
    BLOCK = 4000;
  const stores = new Map();

  /** The rows of a run. `load` brings what is new; `rows` is there at once and grows. */
  class Rows {
    constructor(key) {
      this.key = key;
      this.bySteps = new Map();
      this.rows = [];
      this.isWhole = false;
      this.texts = null;
    }

    /** Bring the rows of steps that are new or have changed; `onpart` is called as they arrive. */
    load(onpart = () => {}) {
      this.loading = (this.loading || Promise.resolve()).catch(() => {}).then(() => this.loadNow(onpart));
      return this.loading;
    }

    async loadNow(onpart) {
      const steps = vlrl.run(this.key).steps;
      const there = new Set(steps.map(([step]) => step));
      for (const step of [...this.bySteps.keys()]) if (!there.has(step)) this.bySteps.delete(step);
      const wanted = steps.filter(([step, , version]) => (this.bySteps.get(step) || {}).version !== version).reverse();
      if (wanted.length) this.texts = null;
      let size = FIRST;
      while (wanted.length) {
        const block = this.writtenBlock(wanted);
        if (!block.length)
          for (let count = 0; wanted.length && (count < size || !block.length); count += block[block.length - 1][1])
            block.push(wanted.shift());
        await this.bring(block);
        this.gather();
        onpart();
        size = BLOCK;
      }
      this.isWhole = true;
      this.gather();
      onpart();
    }

    // A written folder has its index in files of its own choice.
    writtenBlock(wanted) {
      const [first, last] = (vlrl.run(this.key).blocks || []).find(
        ([low, high]) => wanted[0][0] >= low && wanted[0][0] <= high,
      ) || [1, 0];
      return first > last ? [] : wanted.splice(0, wanted.filter(([step]) => step >= first && step <= last).length);
    }

    async bring(block) {
      const last = block[0][0],
        first = block[block.length - 1][0];
      const columns = await vlrl.load(`${this.key}/index/${first}-${last}`);
      const names = Object.keys(columns).filter((name) => name !== "parts");
      const byStep = new Map(block.map(([step, , version]) => [step, { version, rows: [] }]));
      for (let i = 0; i < (columns.step || []).length; i++) {
        const row = { run: this.key, parts: {} };
        for (const name of names) row[name] = columns[name][i];
        for (const part in columns.parts) if (columns.parts[part][i] !== null) row.parts[part] = columns.parts[part][i];
        const into = byStep.get(row.step);
        if (into) into.rows.push(row);
      }
      for (const [step, each] of byStep) this.bySteps.set(step, each);
    }

    gather() {
      const steps = [...this.bySteps.keys()].sort((a, b) => b - a);
      this.rows = steps.flatMap((step) => this.bySteps.get(step).rows);
    }

    /** Load what a search by text reads: {"step/row": text}. */
    async search() {
      if (this.texts) return this.texts;
      await this.loading;
      const steps = vlrl.run(this.key).steps.map(([step]) => step);
      const texts = new Map(),
        blocks = vlrl.run(this.key).blocks || (steps.length ? [[steps[0], steps[steps.length - 1]]] : []);
      for (const [first, last] of blocks) {
        const found = await vlrl.load(`${this.key}/texts/${first}-${last}`);
        for (const step in found) found[step].forEach((text, row) => texts.set(`${step}/${row}`, text));
      }
      return (this.texts = texts);
    }
  }

  /** The rows of a run, always the same object. */
  vlrl.rowsOf = function (key) {
    if (!stores.has(key)) stores.set(key, new Rows(key));
    return stores.get(key);
  };

  vlrl.idOf = (row) => `${row.run}/${row.step}/${row.row}`;

  // ---- filter and sort ----------------------------------------------------------------------------------------
  const up = (value) => (a, b) => compare(value(a), value(b)) || place(a, b);
  const down = (value) => (a, b) => compare(value(b), value(a), true) || place(a, b);
  const place = (a, b) => b.step - a.step || a.group - b.group || a.group_index - b.group_index || a.row - b.row;
  function compare(a, b, isDown) {
    const lacks = (x) => x === null || x === undefined;
    if (lacks(a) || lacks(b)) return lacks(a) && lacks(b) ? 0 : lacks(isDown ? b : a) ? 1 : -1;
    return a < b ? -1 : a > b ? 1 : 0;
  }

  /** Orders of the list: name → [words, comparison]. */
  vlrl.ORDERS = {
    newest: ["newest step", place],
    oldest: ["oldest step", (a, b) => a.step - b.step || place(a, b)],
    worst: ["worst reward", up((row) => row.reward)],
    best: ["best reward", down((row) => row.reward)],
    advantage: ["largest |advantage|", down((row) => (row.advantage === null ? null : Math.abs(row.advantage)))],
    longest: ["most tokens", down((row) => row.num_generated_tokens)],
    shortest: ["fewest tokens", up((row) => row.num_generated_tokens)],
    turns: ["most turns", down((row) => row.num_turns)],
    slowest: ["slowest", down((row) => row.duration_s)],
    task: ["task", (a, b) => compare(a.sample_id, b.sample_id) || place(a, b)],
  };

  const KINDS = {
    failed: (row) => vlrl.failed(row),
    truncated: (row) => row.outcome === "truncated",
    refused: (row) => row.refusal !== null,
    unscored: (row) => row.reward === null,
    scored: (row) => row.reward !== null,
  };

  /** The rows that fit, in order. `ask` is {kind, source, from, to, min, max, text, sort}; texts are those of search(). */
  vlrl.choose = function (rows, ask, texts) {
    const words = (ask.text || "").toLowerCase().split(/\s+/).filter(Boolean);
    const number = (text) => (text === "" || text === undefined || Number.isNaN(Number(text)) ? null : Number(text));
    const [from, to, min, max] = [ask.from, ask.to, ask.min, ask.max].map(number);
    const fits = (row) => {
      if (ask.kind && KINDS[ask.kind] && !KINDS[ask.kind](row)) return false;
      if (ask.source && row.source !== ask.source) return false;
      if (ask.sample && row.sample_id !== ask.sample) return false;
      if ((from !== null && row.step < from) || (to !== null && row.step > to)) return false;
      if (min !== null && !(row.reward !== null && row.reward >= min)) return false;
      if (max !== null && !(row.reward !== null && row.reward <= max)) return false;
      if (!words.length) return true;
      const text = (texts && texts.get(`${row.step}/${row.row}`)) || `${row.sample_id} ${row.question} ${row.text}`.toLowerCase();
      return words.every((word) => text.includes(word));
    };
    const order = vlrl.ORDERS[ask.sort] || vlrl.ORDERS.newest;
    const out = rows.filter(fits);
    const part = (ask.sort || "").match(/^part:(.*)$/);
    return out.sort(part ? up((row) => row.parts[part[1]]) : order[1]);
  };

  /** The rows as groups, in the order of their first members: {rows, mean}. */
  vlrl.groups = function (rows) {
    const found = new Map();
    for (const row of rows) {
      const key = `${row.step}/${row.group}/${row.agent || ""}`;
      if (!found.has(key)) found.set(key, []);
      found.get(key).push(row);
    }
    return [...found.values()].map((members) => {
      const scored = members.filter((row) => row.reward !== null);
      const mean = scored.length ? scored.reduce((sum, row) => sum + row.reward, 0) / scored.length : null;
      return { ...members[0], members: members.sort((a, b) => a.group_index - b.group_index), mean };
    });
  };
})();
