// The browser's own choosers of dates, times and colours stay shut: they are windows beside the page, which no
// image has, and while one is open the browser draws none at all. Fields are typed into.
// Runs in a page before any of its own scripts.
() => {
  const KINDS = new Set(["date", "time", "month", "week", "datetime-local", "color"]);
  const meets = (event) => {
    const target = event.composedPath()[0];
    return target instanceof HTMLInputElement && KINDS.has(target.type);
  };
  const opens = ({ key, altKey }) => key === " " || key === "F4" || (altKey && key.startsWith("Arrow"));

  window.addEventListener("click", (event) => { if (meets(event)) event.preventDefault(); }, true);
  window.addEventListener("keydown", (event) => {
    if (!meets(event)) return;
    const enters = event.key === "Enter"; // it submits, or opens the chooser if the field's own button has the keys
    if (enters || opens(event)) event.preventDefault();
    if (enters) event.target.form?.requestSubmit();
  }, true);
  HTMLInputElement.prototype.showPicker = () => {};
}
