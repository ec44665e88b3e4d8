"use strict";
(() => {
  const part = a => document.getElementById(a.getAttribute("href").slice(1));
  const figure = a => a.closest("figure");

  // show puts a copy of the chosen part below its picture; null: the hint.
  const show = (fig, a) => {
    const look = fig.querySelector(".look");
    look.hint ??= look.firstElementChild;
    for (const lit of fig.querySelectorAll(".lit")) lit.classList.remove("lit");
    if (!a) { look.replaceChildren(look.hint); return; }
    const copy = part(a).cloneNode(true);
    copy.removeAttribute("id");
    look.replaceChildren(copy);
    for (const end of [a.dataset.from, a.dataset.to]) if (end) document.getElementById(end + "-box")?.classList.add("lit");
  };
  const pin = (fig, a) => {
    const was = fig.querySelector("a.pinned");
    was?.classList.remove("pinned");
    if (a === was) a = null;
    a?.classList.add("pinned");
    fig.querySelector(".look").classList.toggle("pinned", !!a);
    show(fig, a);
  };
  const shape = e => e.target.closest?.("figure .picture a");

  document.addEventListener("click", e => {
    const a = shape(e);
    if (a) { e.preventDefault(); stop(a); pin(figure(a), a); }
  });
  for (const on of ["mouseover", "focusin"]) document.addEventListener(on, e => {
    const a = shape(e);
    if (a && !figure(a).querySelector("a.pinned")) show(figure(a), a);
  });
  document.addEventListener("mouseout", e => {
    const a = shape(e);
    if (a && !a.contains(e.relatedTarget) && !figure(a).querySelector("a.pinned")) show(figure(a), figure(a).querySelector("a:focus"));
  });

  // A picture is one stop of the tabulator key; the arrow keys move within it.
  const stop = a => {
    for (const other of a.closest(".picture").querySelectorAll("a")) other.setAttribute("tabindex", other === a ? "0" : "-1");
  };
  const stops = root => { for (const p of root.querySelectorAll(".picture")) { const a = p.querySelector("a"); if (a) stop(a); } };
  document.addEventListener("keydown", e => {
    const a = shape(e);
    if (!a) return;
    const all = [...a.closest(".picture").querySelectorAll("a")], i = all.indexOf(a), last = all.length - 1;
    const to = { ArrowDown: i + 1, ArrowRight: i + 1, ArrowUp: i - 1, ArrowLeft: i - 1, Home: 0, End: last }[e.key];
    if (to !== undefined) { e.preventDefault(); const next = all[Math.max(0, Math.min(last, to))]; stop(next); next.focus(); }
    else if (e.key === " ") { e.preventDefault(); a.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true })); }
    else if (e.key === "Escape" && figure(a).querySelector("a.pinned")) pin(figure(a), figure(a).querySelector("a.pinned"));
  });

  const filter = () => {
    const words = (document.getElementById("filter")?.value ?? "").toLowerCase().split(/\s+/);
    for (const li of document.querySelectorAll("#index li")) {
      const fits = words.every(w => li.textContent.toLowerCase().includes(w));
      li.hidden = !fits;
      const article = document.getElementById(li.querySelector("a").getAttribute("href").slice(1));
      if (article) article.hidden = !fits;
    }
  };
  document.addEventListener("input", e => { if (e.target.id === "filter") filter(); });

  let opened = [];
  addEventListener("beforeprint", () => { opened = [...document.querySelectorAll("details:not([open])")]; for (const d of opened) d.open = true; });
  addEventListener("afterprint", () => { for (const d of opened) d.open = false; });

  stops(document);
  window.wirecheckPage = { stops, filter };
})();
