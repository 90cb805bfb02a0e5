"use strict";
// What the page shows comes from data/…: JSON from the server, or scripts of a written folder, which a browser
// also reads from a disk.
(function () {
  const isWritten = document.documentElement.dataset.mode === "written";
  const waiting = new Map();
  const kept = new Map();
  const EVERY = 2000;

  /** Called by the scripts of a written folder. */
  vlrl.arrived = function (path, value) {
    const wait = waiting.get(path);
    if (wait) wait(value);
  };

  function loadScript(path) {
    return new Promise((resolve, reject) => {
      const script = vlrl.h("script", { src: `data/${path}.js` });
      waiting.set(path, (value) => {
        resolve(value);
        script.remove();
        waiting.delete(path);
      });
      script.addEventListener("error", () => reject(new Error(`${path} is not in this folder`)));
      document.head.append(script);
    });
  }

  async function loadJson(path) {
    const response = await fetch(`data/${path}.json`, { headers: { Accept: "application/json" } });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error || `no answer to ${path}`);
    return answer;
  }

  /** The JSON at a path; kept while `version` stays the same. */
  vlrl.load = function (path, version = null) {
    const known = kept.get(path);
    if (version !== null && known && known.version === version) return known.promise;
    const promise = isWritten ? loadScript(path) : loadJson(path);
    if (version !== null) {
      kept.set(path, { version, promise });
      promise.catch(() => kept.delete(path));
    }
    return promise;
  };

  vlrl.media = (run, medium) => `media/${run}/${medium.sha256}.png`;
  vlrl.thumb = (run, sha256, frames = 1) => `thumb/${run}/${sha256}.webp${!isWritten && frames > 1 ? `?frames=${frames}` : ""}`;

  // ---- runs -------------------------------------------------------------------------------------------------
  vlrl.runs = [];
  vlrl.hidden = new Set();
  const listeners = new Set();

  /** Call `work(what)` when runs have changed: "steps", "metrics" or "shown"; the result ends that. */
  vlrl.onchange = (work) => {
    listeners.add(work);
    return () => listeners.delete(work);
  };
  vlrl.changed = (what) => listeners.forEach((work) => work(what));
  vlrl.run = (key) => vlrl.runs.find((run) => run.key === key);
  vlrl.shownRuns = () => vlrl.runs.filter((run) => !vlrl.hidden.has(run.key));

  /** Read the manifest; tell what is new in it. */
  vlrl.refresh = async function () {
    const { runs } = await vlrl.load("manifest");
    const before = vlrl.runs;
    runs.forEach((run, place) => {
      run.place = place;
    });
    vlrl.runs = runs;
    const differs = (what) => runs.some((run, i) => JSON.stringify(run[what]) !== JSON.stringify(before[i] && before[i][what]));
    if (!before.length) return;
    if (differs("steps")) vlrl.changed("steps");
    if (differs("metrics")) vlrl.changed("metrics");
  };

  /** Look for new steps while the page is seen. */
  vlrl.follow = function () {
    const live = document.getElementById("live");
    if (isWritten) {
      live.textContent = "written page";
      return;
    }
    const say = (isThere) => {
      const isTraining = vlrl.runs.some((run) => !run.is_done);
      live.className = isThere && isTraining ? "on" : "";
      live.textContent = !isThere ? "server ended" : isTraining ? "live" : "";
    };
    const look = async () => {
      if (!document.hidden)
        await vlrl.refresh().then(
          () => say(true),
          () => say(false),
        );
      setTimeout(look, EVERY);
    };
    say(true);
    setTimeout(look, EVERY);
  };
})();
