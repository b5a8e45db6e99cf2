// A recorded run: the state at any moment, found from the nearest earlier keyframe.

const KEYFRAME = 200;
const SILENCE = 0.7;

export class Film {
  constructor(data) {
    Object.assign(this, data);
    this.keys = [];
    this.current = { at: -1, state: this.empty() };
    this.marks = this.frames.flatMap(([at, who, text], index) =>
      text.startsWith("* ") && !/^\* (synced|client \d+ stops using .*Released)/.test(text) ? [{ at, who, text, index }] : [],
    );
    this.end = this.frames.length ? this.frames[this.frames.length - 1][0] : 0;
    // At speed 1 a typical message is on its way for two thirds of a second, and no silence lasts
    // longer than SILENCE: `played` says when each frame comes, in seconds of playing.
    const ways = this.flights.map((flight) => flight[3] - flight[2]).sort((a, b) => a - b);
    this.rate = (ways[ways.length >> 1] || this.end / Math.max(1, this.frames.length) || 1) / 0.66;
    let [sum, before] = [0, 0];
    this.played = this.frames.map(([at]) => {
      sum += Math.min(SILENCE, (at - before) / this.rate);
      before = at;
      return sum;
    });
    this.length = sum;
    this.longest = Math.max(1, ...this.flights.map((flight) => flight[3] - flight[2]));
  }

  empty() {
    const names = Array.from({ length: this.nodes }, (_, node) => `n${node}`);
    return {
      nodes: names.map((name) => ({ name, health: "up" })),
      claims: {},
      cuts: [],
      facts: names.map(() => ({})),
    };
  }

  // The state after frame `index`; -1 is before anything happened.
  state(index) {
    if (this.current.at > index || index - this.current.at > KEYFRAME) {
      const key = Math.min(Math.floor((index + 1) / KEYFRAME), this.keys.length) - 1;
      const from = key < 0 ? { at: -1, state: this.empty() } : this.keys[key];
      if (this.current.at > index || from.at > this.current.at) {
        this.current = { at: from.at, state: structuredClone(from.state) };
      }
    }
    while (this.current.at < index) {
      this.current.at += 1;
      for (const change of this.frames[this.current.at][3]) this.apply(change);
      if ((this.current.at + 1) % KEYFRAME === 0) {
        const place = (this.current.at + 1) / KEYFRAME - 1;
        this.keys[place] ??= structuredClone(this.current);
      }
    }
    return this.current.state;
  }

  apply([what, ...rest]) {
    const state = this.current.state;
    if (what === "c") state.claims[rest[0]] = { node: rest[1], wants: rest[2], units: null };
    else if (what === "g" && state.claims[rest[0]]) Object.assign(state.claims[rest[0]], { units: rest[1], fences: rest[2] });
    else if (what === "x") delete state.claims[rest[0]];
    else if (what === "n") {
      state.nodes[rest[0]].health = rest[1];
      if (rest[1] === "down") state.facts[rest[0]] = {};
    }
    else if (what === "k") state.cuts = rest[0];
    else if (what === "f") {
      const [node, name, about, value, grows] = rest;
      state.facts[node][`${name}/${about}`] = { name, about, value, grows };
    }
  }

  // What pictures draw.
  scene(index) {
    const state = this.state(index);
    const nodes = state.nodes.map((node) => ({ ...node, waiting: 0, holds: 0 }));
    const held = [];
    for (const [claim, { node, units }] of Object.entries(state.claims)) {
      if (!units) nodes[node].waiting += 1;
      for (const unit of units ?? []) {
        nodes[node].holds += 1;
        held.push({ unit: this.named ? unit : held.length, node, claim });
      }
    }
    const facts = (node) => Object.values(state.facts[node]);
    const fact = (node, name, about = null) => state.facts[node][`${name}/${about}`]?.value ?? 0;
    return { nodes, units: this.units, held, named: this.named, cuts: state.cuts, fact, facts };
  }

  // Messages on their way at a time.
  flying(time) {
    const found = [];
    let index = this.firstSent(time - this.longest);
    for (; index < this.flights.length && this.flights[index][2] <= time; index++) {
      const [from, to, sent, ends, lost, kind, text, number] = this.flights[index];
      if (ends >= time && ends > sent) {
        found.push({ from, to, progress: ((time - sent) / (ends - sent)) * (lost ? 0.8 : 1), kind, text, lost, ends, number });
      }
    }
    return found;
  }

  firstSent(time) {
    let [low, high] = [0, this.flights.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.flights[middle][2] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // How long it takes to play up to a time, of which `index` is the last frame.
  playedAt(index, time) {
    const [from, to] = [this.frames[index]?.[0] ?? 0, this.frames[index + 1]?.[0]];
    const began = this.played[index] ?? 0;
    if (to === undefined || to === from) return began;
    return began + ((this.played[index + 1] - began) * (time - from)) / (to - from);
  }

  // And back: the time that is reached after so many seconds of playing.
  timeAt(played) {
    let [low, high] = [0, this.played.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.played[middle] <= played) low = middle + 1;
      else high = middle;
    }
    if (low >= this.frames.length) return this.end;
    const [from, began] = [this.frames[low - 1]?.[0] ?? 0, this.played[low - 1] ?? 0];
    const whole = this.played[low] - began;
    return from + ((this.frames[low][0] - from) * (played - began)) / (whole || 1);
  }

  // The last frame at or before a time.
  frameAt(time) {
    let [low, high] = [0, this.frames.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.frames[middle][0] <= time) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}
