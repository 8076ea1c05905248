"use strict";
(() => {
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  if (theme) {
    theme.hidden = false;
    theme.addEventListener("click", () => {
      const dark = root.dataset.theme
        ? root.dataset.theme === "dark"
        : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
    });
  }

  const key = (row, at) => {
    const cell = row.cells[at];
    return cell.dataset.key !== undefined ? cell.dataset.key : cell.textContent;
  };
  const order = (a, b) => {
    if (a === "" || b === "") return a === b ? 0 : a === "" ? 1 : -1;
    const x = Number(a.replace(/,/g, "")), y = Number(b.replace(/,/g, ""));
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
  };
  for (const table of document.querySelectorAll("table")) {
    const body = table.tBodies[0];
    if (body.rows.length < 2) continue;
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].sort((a, b) => {
          const x = key(a, at), y = key(b, at);
          const found = order(x, y);
          return x === "" || y === "" || !down ? found : -found;
        });
        body.append(...rows);
      });
    });
    if (body.rows.length > 12) {
      const label = document.createElement("label");
      label.className = "search";
      label.textContent = "Filter ";
      const input = document.createElement("input");
      input.type = "search";
      label.append(input);
      const count = document.createElement("span");
      count.setAttribute("role", "status");
      label.append(count);
      table.parentElement.before(label);
      input.addEventListener("input", () => {
        const wanted = input.value.toLowerCase();
        let shown = 0;
        for (const row of body.rows) {
          row.hidden = !row.textContent.toLowerCase().includes(wanted);
          shown += row.hidden ? 0 : 1;
        }
        count.textContent = wanted ? ` ${shown} of ${body.rows.length} rows` : "";
      });
    }
  }

  const filters = document.getElementById("severities");
  if (filters) {
    filters.hidden = false;
    filters.addEventListener("change", () => {
      const on = new Set([...filters.querySelectorAll("input:checked")].map((each) => each.value));
      for (const card of document.querySelectorAll("[data-severity]"))
        card.hidden = !on.has(card.dataset.severity);
    });
  }

  for (const code of document.querySelectorAll("code.command")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy the command");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
      } catch {
        const range = document.createRange();
        range.selectNodeContents(code);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        document.execCommand("copy");
      }
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    code.after(button);
  }

  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);
  const hide = () => (tip.hidden = true);
  document.addEventListener("pointermove", (event) => {
    const marked = event.target instanceof Element && event.target.closest("svg [data-tip]");
    if (!marked) return hide();
    tip.textContent = marked.dataset.tip;
    tip.hidden = false;
    const wide = tip.offsetWidth, high = tip.offsetHeight;
    const left = Math.min(event.clientX + 12, innerWidth - wide - 8);
    const top = event.clientY + 16 + high > innerHeight ? event.clientY - high - 8 : event.clientY + 16;
    tip.style.setProperty("left", `${Math.max(4, left)}px`);
    tip.style.setProperty("top", `${top}px`);
  });
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  document.addEventListener("scroll", hide, { passive: true });

  addEventListener("beforeprint", () => {
    for (const each of document.querySelectorAll("details")) each.open = true;
  });
})();
