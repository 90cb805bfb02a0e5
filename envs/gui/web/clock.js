// Time and chance of a page: both are its driver's. Runs in a page before any of its own scripts.
//
// The clock stands still but when the driver advances it, so what a page shows depends on what was done to it
// and never on how fast the machine or the model is. Timers fire in the order of their times, frames every
// FRAME_MS; CSS transitions and animations are at their end at once, endless ones at their beginning.
(epochMs, seed) => {
  // A frame within a page lives by the clock of the page.
  let above = null;
  try { above = window.parent === window ? null : window.parent[Symbol.for("vlrl")]; } catch { /* another origin */ }
  const FRAME_MS = 16, TICK_MS = 100; // an interval shorter than TICK_MS is an animation
  const Native = Date, channel = new MessageChannel(), queue = [];
  channel.port1.onmessage = () => queue.shift()();
  const task = () => new Promise((done) => { queue.push(done); channel.port2.postMessage(0); });

  let now = 0, last = 0, frames = new Map();
  const timers = new Map();

  const run = (callback, args) => {
    try {
      if (typeof callback === "function") callback.apply(window, args);
      else (0, eval)(String(callback));
    } catch (error) { reportError(error); }
  };
  const add = (repeats) => (callback, delay, ...args) => {
    const wait = Math.max(repeats ? 1 : 0, Number(delay) || 0);
    timers.set(++last, { callback, args, wait, repeats, due: now + wait, id: last });
    return last;
  };
  const clear = (id) => { timers.delete(Number(id)); };
  const define = (object, values) => {
    for (const [name, value] of Object.entries(values))
      Object.defineProperty(object, name, { value, configurable: true, writable: true });
  };

  const time = above ? above.time : {
    now: () => now,
    setTimeout: add(false), setInterval: add(true), clearTimeout: clear, clearInterval: clear,
    requestAnimationFrame: (callback) => { frames.set(++last, callback); return last; },
    cancelAnimationFrame: (id) => { frames.delete(id); },
  };
  class VirtualDate extends Native {
    constructor(...args) { if (args.length) super(...args); else super(VirtualDate.now()); }
    static now() { return epochMs + Math.floor(time.now()); }
  }
  const Shown = function Date(...args) { // Date() without new is a text
    return new.target ? Reflect.construct(VirtualDate, args, new.target) : new VirtualDate().toString();
  };
  Object.setPrototypeOf(Shown, Native);
  Shown.prototype = Native.prototype;
  define(Shown, { now: VirtualDate.now, parse: Native.parse, UTC: Native.UTC, length: 7 });
  define(Native.prototype, { constructor: Shown });
  const { now: elapsed, ...timing } = time;
  define(window, {
    Date: Shown,
    ...timing,
    requestIdleCallback: (callback) =>
      time.setTimeout(() => callback({ didTimeout: false, timeRemaining: () => 50 }), 1),
    cancelIdleCallback: time.clearTimeout,
  });
  define(Performance.prototype, { now: elapsed });

  // Chance: xorshift-multiply after a hash of the seed (splitmix32).
  let state = seed >>> 0;
  const draw = () => {
    let bits = (state = (state + 0x9e3779b9) >>> 0);
    bits = Math.imul(bits ^ (bits >>> 16), 0x21f0aaad);
    bits = Math.imul(bits ^ (bits >>> 15), 0x735a2d97);
    return (bits ^ (bits >>> 15)) >>> 0;
  };
  define(Math, { random: () => (draw() * 0x200000 + (draw() >>> 11)) / 0x20000000000000 });
  define(Crypto.prototype, {
    getRandomValues: (array) => {
      const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
      for (let i = 0; i < bytes.length; i++) bytes[i] = draw();
      return array;
    },
    randomUUID: () => {
      const bytes = crypto.getRandomValues(new Uint8Array(16));
      bytes[6] = (bytes[6] & 15) | 64; // version 4, RFC 9562
      bytes[8] = (bytes[8] & 63) | 128;
      const digits = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
      return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
    },
  });

  // The browser has one clipboard for all its pages; every page here has its own.
  let held = "";
  const selected = () => {
    const field = document.activeElement;
    const inField = field && "selectionStart" in field && field.selectionStart !== null;
    return inField ? field.value.slice(field.selectionStart, field.selectionEnd) : String(getSelection());
  };
  for (const name of ["copy", "cut"])
    window.addEventListener(name, (event) => {
      if (event.defaultPrevented) return;
      event.preventDefault();
      if (selected()) held = selected();
      if (name === "cut") document.execCommand("delete");
    });
  window.addEventListener("paste", (event) => {
    if (event.defaultPrevented) return;
    event.preventDefault();
    document.execCommand("insertText", false, held);
  });
  if (window.Clipboard)
    define(Clipboard.prototype, {
      writeText: async (text) => { held = String(text); },
      readText: async () => held,
      write: async (items) => {
        for (const item of items)
          if (item.types.includes("text/plain")) held = await (await item.getType("text/plain")).text();
      },
      read: async () => [new ClipboardItem({ "text/plain": new Blob([held], { type: "text/plain" }) })],
    });

  // A button held on text within a box that scrolls would scroll it when the pointer leaves the box, by the
  // browser's own time: the driver keeps such a pointer within. (Scroll bars, and pages that drag by themselves,
  // are free.)
  let pressed = null;
  window.addEventListener("mousedown", (event) => {
    pressed = null;
    for (let element = event.target; element && element !== document.body; element = element.parentElement) {
      if (event.defaultPrevented || element === document.documentElement) return;
      if (element.scrollHeight <= element.clientHeight && element.scrollWidth <= element.clientWidth) continue;
      const { left, top } = element.getBoundingClientRect();
      const x = left + element.clientLeft, y = top + element.clientTop;
      const right = x + element.clientWidth, bottom = y + element.clientHeight;
      if (event.clientX > right || event.clientY > bottom) return; // on a scroll bar
      // A line that is not all to be seen is scrolled to when the selection meets it.
      const across = Math.min(4, (right - x) / 4), down = Math.min(32, (bottom - y) / 3);
      pressed = [x + across, y + down, right - across, bottom - down];
      return;
    }
  });
  const heldWithin = () => pressed;

  const still = new CSSStyleSheet();
  still.replaceSync("*,*::before,*::after{caret-animation:manual!important;scroll-behavior:auto!important}");
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, still];

  const rest = () => {
    let moved = false;
    for (const animation of document.getAnimations()) {
      const end = animation.effect ? animation.effect.getComputedTiming().endTime : 0;
      if (Number.isFinite(Number(end))) { animation.finish(); moved = true; }
      else if (animation.playState !== "paused") { animation.pause(); animation.currentTime = 0; moved = true; }
    }
    return moved;
  };
  const frame = async () => {
    const end = now + FRAME_MS;
    for (;;) {
      let next = null;
      for (const timer of timers.values())
        if (timer.due <= end && (!next || timer.due < next.due || (timer.due === next.due && timer.id < next.id)))
          next = timer;
      if (!next) break;
      now = Math.max(now, next.due);
      if (next.repeats) next.due = now + next.wait;
      else timers.delete(next.id);
      run(next.callback, next.args);
      await task();
    }
    now = end;
    const callbacks = frames;
    frames = new Map();
    for (const callback of callbacks.values()) run(callback, [now]);
    if (callbacks.size) await task();
  };
  const isBusy = (until) => {
    if (frames.size) return true;
    for (const timer of timers.values())
      if (timer.repeats ? timer.wait < TICK_MS : timer.due <= until) return true;
    return false;
  };

  // What the page does when it is drawn: scroll events and observers come then, and not before.
  let stirred = false;
  window.addEventListener("scroll", () => { stirred = true; }, true);
  for (const name of ["IntersectionObserver", "ResizeObserver"]) {
    const Observer = window[name];
    define(window, { [name]: class extends Observer {
      constructor(callback, options) {
        super(function (...args) { stirred = true; return callback.apply(this, args); }, options);
      }
    } });
  }

  // Let at least leastMs pass, and up to mostMs while something is under way; false if it still was.
  const settle = async (leastMs, mostMs) => {
    const begin = now, until = begin + mostMs;
    let moved = true;
    while (now - begin < leastMs || ((moved || isBusy(until)) && now < until)) {
      await frame();
      moved = rest();
    }
    stirred = false;
    return !isBusy(until) && !moved;
  };
  // Whether drawing it has set something off.
  const isQuiet = (mostMs) => !stirred && !rest() && !isBusy(now + mostMs);
  Object.defineProperty(window, Symbol.for("vlrl"), { value: Object.freeze({ settle, isQuiet, heldWithin, time }) });
}
