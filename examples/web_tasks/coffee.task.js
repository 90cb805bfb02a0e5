// What is wanted is drawn here, where the page cannot see it; what was done is read from the document.
({
  maxSteps: 8,
  plan(random) {
    const drinks = ["Espresso", "Cappuccino", "Flat white", "Filter", "Mocha"];
    return { drink: drinks[Math.floor(random() * drinks.length)], count: 1 + Math.floor(random() * 2) };
  },
  goal: ({ drink, count }) => `Order ${count} × ${drink} and nothing else.`,
  verdict({ drink, count }) {
    const counts = {};
    for (const line of document.querySelectorAll("#menu li")) counts[line.dataset.drink] = Number(line.dataset.count);
    const ordered = document.body.dataset.ordered === "yes";
    const others = Object.keys(counts).filter((name) => name !== drink && counts[name] > 0);
    return {
      milestones: { chosen: counts[drink] === count, ordered: ordered && counts[drink] === count },
      sideEffects: ordered ? others.map((name) => `${name} was ordered, too`) : [],
      ended: ordered,
    };
  },
})
