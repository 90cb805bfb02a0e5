"use strict";
// The frame: which page is shown, the runs above it, light or dark.
(function () {
  const { h } = vlrl;
  const main = document.getElementById("main");
  // In the order of their keys, 1 to 5.
  vlrl.pages = Object.fromEntries(["curves", "health", "rollouts", "compare", "time"].map((name) => [name, vlrl.pages[name]]));
  let end = null,
    shownName = "";

  /** The address: {name, parts, parameters} of #name/part/part?parameters. */
  vlrl.route = function () {
    const [path, query] = location.hash.slice(1).split("?");
    const [name, ...parts] = path.split("/").map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
    return { name: name || "curves", parts, parameters: new URLSearchParams(query || "") };
  };

  async function go() {
    const route = vlrl.route();
    if (route.name === "main") return main.focus();
    const name = Object.keys(vlrl.pages).find((each) => (vlrl.pages[each].names || [each]).includes(route.name)) || "curves";
    const page = vlrl.pages[name];
    drawPages(name);
    document.title = `${page.title} · vlrl view`;
    document.body.dataset.page = name;
    try {
      if (name === shownName && page.update) return await page.update(route);
      if (end) end();
      end = null;
      shownName = name;
      vlrl.page = page;
      // A place of its own: what is slow to come writes into one that is no longer shown.
      const place = h("div", {});
      main.replaceChildren(place);
      const ended = await page.show(place, route);
      if (typeof ended === "function") {
        if (place.isConnected) end = ended;
        else ended();
      }
    } catch (error) {
      main.replaceChildren(h("p", { class: "empty" }, `This cannot be shown: ${error.message}`));
      shownName = "";
    } finally {
      document.body.dataset.ready = location.hash || "#";
    }
  }

  function drawPages(current) {
    document
      .getElementById("pages")
      .replaceChildren(
        ...Object.entries(vlrl.pages).map(([name, page]) =>
          h("a", { href: `#${name}`, "aria-current": name === current ? "page" : null }, page.title),
        ),
      );
  }

  function drawRuns() {
    const box = document.getElementById("runs");
    box.hidden = vlrl.runs.length < 2;
    box.replaceChildren(
      ...vlrl.runs.map((run) =>
        h(
          "button",
          {
            type: "button",
            class: "run",
            "aria-pressed": String(!vlrl.hidden.has(run.key)),
            title: vlrl.hidden.has(run.key) ? "show this run" : "hide this run",
            onclick: () => {
              vlrl.hidden[vlrl.hidden.has(run.key) ? "delete" : "add"](run.key);
              drawRuns();
              vlrl.changed("shown");
            },
          },
          vlrl.swatch(run.place),
          run.key,
        ),
      ),
    );
  }

  const THEMES = ["system", "light", "dark"];
  const stored = (value) => {
    try {
      if (value) localStorage.setItem("vlrl-theme", value);
      return localStorage.getItem("vlrl-theme");
    } catch {
      return value;
    }
  };
  function setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    const button = document.getElementById("theme");
    const name = { system: "Auto", light: "Light", dark: "Dark" }[theme];
    button.textContent = name;
    button.setAttribute("aria-label", `${name} colours, change`);
  }
  vlrl.nextTheme = function () {
    const theme = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % 3];
    stored(theme);
    setTheme(theme);
  };

  setTheme(THEMES.includes(stored()) ? stored() : "system");
  document.getElementById("theme").addEventListener("click", vlrl.nextTheme);
  document.getElementById("help").addEventListener("click", vlrl.help);
  window.addEventListener("hashchange", go);
  vlrl
    .refresh()
    .then(() => {
      drawRuns();
      vlrl.onchange((what) => what === "shown" || drawRuns());
      vlrl.follow();
      return go();
    })
    .catch((error) => {
      main.replaceChildren(h("p", { class: "empty" }, `The runs cannot be read: ${error.message}`));
      document.body.dataset.ready = "#";
    });
})();
