(() => {
  const every = 2000;
  const live = document.getElementById("live"), index = document.getElementById("index"), main = document.getElementById("findings"), news = document.getElementById("news");
  let have = main.querySelectorAll("article").length;

  // put replaces the content of a part that changed. What was open, typed or focused in it stays so.
  const put = (to, html) => {
    if (to.was === html) return;
    to.was = html;
    const state = [...to.querySelectorAll("details")].map(d => [d.id, d.open]);
    const focus = to.contains(document.activeElement) ? document.activeElement : null;
    const text = document.getElementById("filter")?.value ?? "", top = to.scrollTop;
    to.innerHTML = html;
    for (const [id, open] of state) document.getElementById(id).open = open;
    if (to === index) { document.getElementById("filter").value = text; wirecheckPage.filter(); }
    to.scrollTop = top;
    if (!focus) return;
    const key = e => e.id || e.getAttribute("href") || e.textContent;
    [...to.querySelectorAll(focus.tagName)].find(e => key(e) === key(focus))?.focus({ preventScroll: true });
  };
  const look = async () => {
    try {
      const answer = await fetch("state?have=" + have, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.status);
      const now = await answer.json();
      for (const [id, seen] of Object.entries(now.seen)) { const at = document.querySelector("#" + id + " .seen"); if (at && at.textContent !== seen) at.textContent = seen; }
      for (const html of now.new ?? []) {
        const holder = document.createElement("template");
        holder.innerHTML = html;
        wirecheckPage.stops(holder.content);
        main.append(holder.content);
        document.getElementById("nothing")?.remove();
      }
      have = now.have;
      put(live, now.live);
      put(index, now.index);
      if (now.names?.length) news.textContent = "New: " + now.names.slice(0, 3).join(", ") + (now.names.length > 3 ? " and " + (now.names.length - 3) + " more" : "");
      else if (news.lost) news.textContent = "";
      news.lost = false;
    } catch {
      news.textContent = "The proxy does not answer. This is what it said last.";
      news.lost = true;
    }
    setTimeout(look, every);
  };
  setTimeout(look, every);
})();
