// Two conveniences, both of which a page can do without: copying text, and completing a question.
"use strict";

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  navigator.clipboard.writeText(button.parentElement.querySelector("pre").innerText).then(() => {
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
});

function complete(area) {
  const list = document.getElementById(area.getAttribute("aria-controls"));
  const known = JSON.parse(area.dataset.words);
  let found = [], at = -1, start = 0;

  const close = () => {
    list.hidden = true;
    at = -1;
    area.removeAttribute("aria-activedescendant");
    area.setAttribute("aria-expanded", "false");
  };
  const mark = (place) => {
    at = place;
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === at)));
    area.setAttribute("aria-activedescendant", list.children[at].id);
    list.children[at].scrollIntoView({ block: "nearest" });
  };
  const take = (place) => {
    const word = found[place].word;
    area.setRangeText(word, start, area.selectionStart, "end");
    close();
    area.focus();
  };
  const look = () => {
    const before = area.value.slice(0, area.selectionStart);
    const typed = before.match(/["']?[\p{L}\p{N}_]+$/u);
    if (!typed) return close();
    start = typed.index;
    const bare = (text) => text.toLowerCase().replace(/^["']/, "");
    const wanted = bare(typed[0]);
    found = known.filter((one) => bare(one.word).startsWith(wanted) && one.word !== typed[0]).slice(0, 8);
    if (!found.length || !wanted) return close();
    list.replaceChildren(...found.map((one, i) => {
      const item = document.createElement("li");
      const kind = document.createElement("small");
      item.id = list.id + "-" + i;
      item.setAttribute("role", "option");
      item.textContent = one.word;
      kind.textContent = one.kind;
      item.append(kind);
      item.addEventListener("mousedown", (event) => { event.preventDefault(); take(i); });
      return item;
    }));
    list.hidden = false;
    area.setAttribute("aria-expanded", "true");
    mark(0);
  };

  area.addEventListener("input", look);
  area.addEventListener("blur", close);
  area.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") return area.form.requestSubmit();
    if (list.hidden) return;
    const last = found.length - 1;
    if (event.key === "ArrowDown") mark(at < last ? at + 1 : 0);
    else if (event.key === "ArrowUp") mark(at > 0 ? at - 1 : last);
    else if (event.key === "Tab" || event.key === "Enter") take(at);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("textarea[data-words]").forEach(complete);
});
