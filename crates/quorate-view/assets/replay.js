// The page of one recorded run, which it carries inside.

import { byId, h, say } from "./dom.js";
import { Film } from "./film.js";
import { Player, seconds } from "./player.js";

class Replay extends Player {
  constructor(film) {
    super(film);
    document.title = film.title;
    say(byId("title"), film.title);
    const more = film.left_out ? ` The film ends before the run: ${film.left_out} more events did not fit.` : "";
    byId("about").replaceChildren(h("code", {}, film.command), ` ${film.verdict}.${more}`);
    window.addEventListener("hashchange", () => this.fromHash());
    if (!this.fromHash()) this.goto(-1);
  }

  // #t=SECONDS, and #t=SECONDS&f=FRAME where several events share a moment.
  fromHash() {
    const hash = new URLSearchParams(location.hash.slice(1));
    if (!hash.has("t")) return false;
    const time = Math.round(Number(hash.get("t")) * 1e9);
    const frame = hash.has("f") ? Number(hash.get("f")) : NaN;
    const exact = Number.isInteger(frame) && seconds(this.film.frames[frame]?.[0]) === seconds(time);
    if (exact) this.goto(frame);
    else if (Number.isFinite(time)) this.seek(time);
    return Number.isFinite(time);
  }

  link() {
    const same = (other) => this.film.frames[other]?.[0] === this.film.frames[this.index]?.[0];
    const exact = this.index >= 0 && this.time === this.film.frames[this.index][0];
    const frame = exact && (same(this.index + 1) || same(this.index - 1)) ? `&f=${this.index}` : "";
    history.replaceState(null, "", `#t=${seconds(this.time)}${frame}`);
  }
}

new Replay(new Film(JSON.parse(byId("film").textContent)));
