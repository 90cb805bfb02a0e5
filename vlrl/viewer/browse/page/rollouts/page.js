"use strict";
// The browser of rollouts: a list with its filter, and the rollout that is chosen beside it.
(function () {
  const { h } = vlrl;
  const ROW = 76;
  let page = null;

  class Page {
    constructor(main) {
      this.fields = h("div", {});
      this.count = h("p", { class: "count", role: "status" });
      this.list = vlrl.list({
        label: "Rollouts",
        height: ROW,
        draw: (item) => this.drawRow(item),
        onopen: (item, index, member) => this.open(item, member),
      });
      this.detail = h("div", { class: "detail", tabindex: "-1" });
      this.box = h(
        "div",
        { class: "browser" },
        h("div", { class: "side" }, this.fields, this.count, this.list.element),
        this.detail,
      );
      main.replaceChildren(h("h2", { class: "sr" }, "Rollouts"), this.box);
      this.shown = "";
      this.view = this.viewId = null;
      this.ask = {};
    }

    get store() {
      return vlrl.rowsOf(this.ask.run);
    }

    // `isTyped`: the fields themselves were changed, and stay as they are.
    async update(route, isTyped = false) {
      const ask = vlrl.readAsk(route.parameters);
      if (route.name === "rollout" && vlrl.run(route.parts[0])) ask.run = route.parts[0];
      const isNewRun = ask.run !== this.ask.run,
        isNewAsk = vlrl.writeAsk(ask) !== vlrl.writeAsk(this.ask);
      this.ask = ask;
      this.id = route.name === "rollout" ? route.parts.join("/") : "";
      this.box.classList.toggle("reading", this.id !== "");
      if (isNewRun) {
        this.drawFields();
        await this.refresh();
      } else if (isNewAsk) {
        if (!isTyped) this.drawFields();
        await this.choose();
      }
      if (!this.id && this.list.items.length && window.matchMedia("(min-width: 900px)").matches) {
        // There is room beside the list: the first rollout is shown without being asked for.
        history.replaceState(null, "", this.address(this.list.items[0]));
        this.id = vlrl.route().parts.join("/");
      }
      this.mark();
      await this.showRollout();
    }

    // Resolves when the first rows are shown; the others arrive later.
    refresh() {
      const store = this.store;
      return new Promise((resolve, reject) => {
        const show = () => (store === this.store ? this.choose(true).then(resolve, reject) : resolve());
        store.load(show).then(() => {
          this.drawFields();
          resolve();
        }, reject);
      });
    }

    drawFields() {
      const had = document.activeElement && document.activeElement.id === "find";
      this.fields.replaceChildren(vlrl.filterFields(this.ask, this.store.rows, (name, value) => this.set(name, value)));
      if (had) {
        const find = document.getElementById("find");
        find.focus();
        find.setSelectionRange(find.value.length, find.value.length);
      }
    }

    set(name, value) {
      const ask =
        name === "clear"
          ? { run: this.ask.run, view: this.ask.view, sort: this.ask.sort, text: this.ask.text }
          : { ...this.ask, [name]: value };
      const route = this.id && name !== "run" ? `rollout/${this.id}` : "rollouts";
      history.replaceState(null, "", `#${route}?${vlrl.writeAsk(ask)}`);
      this.update(vlrl.route(), true).then(() => (["clear", "run"].includes(name) ? this.drawFields() : null));
    }

    async choose(isMore = false) {
      const texts = this.ask.text ? await this.store.search() : null;
      const rows = vlrl.choose(this.store.rows, this.ask, texts);
      this.scale = vlrl.scaleOf(this.store.rows);
      const items = this.ask.view === "rollouts" ? rows : vlrl.groups(rows);
      const same = (item, into) =>
        item
          ? into.findIndex(
              (each) =>
                each.step === item.step && each.group === item.group && (this.ask.view !== "rollouts" || each.row === item.row),
            )
          : -1;
      this.list.set(items, isMore ? same : null);
      if (!isMore) this.list.element.scrollTop = 0;
      const all = vlrl.run(this.ask.run).steps.reduce((sum, [, count]) => sum + count, 0);
      const words = this.ask.view === "rollouts" ? "" : ` in ${items.length.toLocaleString("en")} groups`;
      this.count.textContent = !all
        ? ""
        : rows.length === all
          ? `${all.toLocaleString("en")} rollouts${words}`
          : `${rows.length.toLocaleString("en")} of ${all.toLocaleString("en")} rollouts${words}`;
      this.mark(!isMore);
      this.list.element.classList.toggle("none", !items.length);
      this.list.element.dataset.words = all
        ? "No rollout fits the filter."
        : "This run has kept no rollouts of training yet (logging.rollouts).";
    }

    mark(isShown = true) {
      const [, step, row] = this.id.split("/").map(Number);
      const index = this.id
        ? this.list.items.findIndex(
            (item) => item.step === step && (item.members ? item.members.some((each) => each.row === row) : item.row === row),
          )
        : -1;
      if (index >= 0) this.list.select(index, false, isShown);
    }

    open(item, member) {
      location.hash = this.address(item, member);
    }

    address(item, member = null) {
      const row = item.members ? item.members[member ?? this.firstOf(item)] || item.members[0] : item;
      return `#rollout/${vlrl.idOf(row)}?${vlrl.writeAsk(this.ask)}`;
    }

    // Of a group the member for which it stands where it does in the list.
    firstOf(item) {
      return Math.max(
        0,
        item.members.findIndex((row) => row.row === item.row),
      );
    }

    drawRow(item) {
      const thumb = item.image
        ? h("img", { alt: "", "data-src": vlrl.thumb(item.run, item.image, item.frames), width: 80, height: 60 })
        : h("span", { class: "thumb none" }, "text");
      const title = h("span", { class: "name" }, vlrl.visible(item.sample_id));
      const step = h("span", { class: "soft" }, `step ${item.step}`);
      if (item.members) {
        const signs = h(
          "span",
          { class: "signs" },
          item.members.slice(0, 32).map((row, i) => {
            const sign = vlrl.sign(row, this.scale);
            sign.dataset.member = i;
            return sign;
          }),
          item.members.length > 32 ? `+${item.members.length - 32}` : "",
        );
        const spoken = `rewards ${item.members.map((row) => (vlrl.failed(row) ? "failed" : vlrl.reward(row.reward))).join(", ")}`;
        return [
          h("span", { class: "thumb" }, thumb),
          h(
            "span",
            { class: "row-text" },
            h("span", { class: "line" }, title, step),
            h("span", { class: "snippet", dir: "ltr" }, vlrl.visible(item.question || item.text)),
            h(
              "span",
              { class: "line" },
              signs,
              h("span", { class: "sr" }, spoken),
              h("b", { class: "mean" }, item.mean === null ? "no score" : vlrl.reward(item.mean)),
            ),
          ),
        ];
      }
      return [
        h("span", { class: "thumb" }, thumb),
        h(
          "span",
          { class: "row-text" },
          h("span", { class: "line" }, title, step),
          h("span", { class: "snippet", dir: "ltr" }, vlrl.visible(item.text || item.question)),
          h(
            "span",
            { class: "line" },
            h("span", { class: "signs" }, vlrl.sign(item, this.scale)),
            h(
              "span",
              { class: "soft" },
              `${item.num_generated_tokens} tokens${item.num_turns > 1 ? `, ${item.num_turns} turns` : ""}${vlrl.failed(item) ? `, ${vlrl.outcome(item.outcome)}` : ""}`,
            ),
            h("b", { class: "mean" }, vlrl.reward(item.reward)),
          ),
        ),
      ];
    }

    async showRollout() {
      if (this.id === this.shown && this.detail.childNodes.length) return;
      this.shown = this.id;
      if (!this.id) {
        this.put(
          null,
          h(
            "p",
            { class: "empty" },
            "Choose a rollout: click one, or press ",
            h("kbd", {}, "j"),
            " and ",
            h("kbd", {}, "k"),
            ".",
          ),
        );
        return;
      }
      const id = this.id,
        [key, step, row] = id.split("/");
      // Back to a rollout before the next one was loaded: it stays, at the turn that was reached.
      if (id !== this.viewId) {
        this.detail.setAttribute("aria-busy", "true");
        try {
          const view = await vlrl.rolloutView(key, Number(step), Number(row), { ask: vlrl.writeAsk(this.ask) });
          if (id !== this.id || id === this.viewId) return;
          this.put(id, view);
          this.detail.scrollTop = 0;
          if (this.box.classList.contains("reading") && window.matchMedia("(max-width: 899px)").matches) window.scrollTo(0, 0);
        } catch (error) {
          if (id === this.id) this.put(null, h("p", { class: "empty" }, `This rollout cannot be shown: ${error.message}`));
        }
      }
      this.detail.removeAttribute("aria-busy");
    }

    // What the detail holds: the view of a rollout, or words (then `id` is null). Keys go to the view.
    put(id, element) {
      this.viewId = id;
      this.view = id === null ? null : element;
      this.detail.replaceChildren(element);
    }

    keys(event) {
      const work = {
        j: () => this.list.move(1),
        k: () => this.list.move(-1),
        ArrowRight: () => this.view?.step(1),
        ArrowLeft: () => this.view?.step(-1),
        c: () => this.view?.colour(),
        n: () => this.member(1),
        p: () => this.member(-1),
        Escape: () => {
          if (this.id) location.hash = `#rollouts?${vlrl.writeAsk(this.ask)}`;
        },
      }[event.key];
      if (work) work();
      return Boolean(work);
    }

    member(by) {
      const links = [...this.detail.querySelectorAll(".members a")];
      const at = links.findIndex((link) => link.getAttribute("aria-current") === "page");
      const to = links[at + by];
      if (to) location.hash = to.getAttribute("href");
    }
  }

  vlrl.pages.rollouts = {
    title: "Rollouts",
    names: ["rollouts", "rollout"],
    async show(main, route) {
      page = new Page(main);
      const end = vlrl.onchange((what) => what === "steps" && page.refresh());
      await page.update(route);
      return end;
    },
    update: (route) => page.update(route),
    keys: (event) => page.keys(event),
  };
})();
