// The live view of the engine.  The feed's values are totals and levels; rates are made here, over
// the last second, so that they do not depend on how often the feed comes.

import {Chart, Tank, dropOld} from "./charts.js";
import {byId, count} from "./dom.js";

const RATE_S = 1;
const SHARE_S = 10;  // shares of few events jump: a longer window
const WAITS_MS = [500, 1000, 2000, 5000];

const whole = (number) => count(Math.round(number));
const percent = (share) => `${Math.round(share * 100)} %`;

export class EngineView {
  constructor(api) {
    this.api = api;
    this.open = false;
    this.stopFeed = null;
    this.states = [];
    this.points = [];
    this.speed = new Chart({title: "Tokens a second", text: whole, least: 10, series: [
      {key: "generated", label: "generated", area: true}, {key: "computed", label: "rows computed"}]});
    this.batch = new Chart({title: "Requests", text: whole, least: 4, series: [
      {key: "running", label: "running", area: true}, {key: "waiting", label: "waiting"}]});
    this.blocks = new Tank({title: "KV blocks in use"});
    this.cache = new Chart({title: "Prompt from the cache", text: percent, max: 1,
                            series: [{key: "hits", area: true}]});
    this.drafts = new Chart({title: "Drafts accepted", text: percent, max: 1,
                             series: [{key: "accepted", area: true}]});
    this.busy = new Chart({title: "Time that the model works", text: percent, max: 1,
                           series: [{key: "busy", area: true}]});
    byId("gauges").append(...[this.speed, this.batch, this.blocks, this.cache, this.drafts, this.busy]
      .map((gauge) => gauge.node));
    document.addEventListener("visibilitychange", () => this.restart());
  }

  setOpen(open) {
    this.open = open;
    this.restart();
  }

  restart() {
    this.stopFeed?.abort();
    this.stopFeed = null;
    if (this.open && !document.hidden) this.run();
  }

  async run() {
    const stop = new AbortController();
    this.stopFeed = stop;
    for (let failures = 0; !stop.signal.aborted;) {
      this.say("connecting");
      try {
        for await (const state of this.api.engine(stop.signal)) {
          failures = 0;
          this.say("live");
          this.add(state);
        }
      } catch (error) {
        if (stop.signal.aborted) return;
        if (error.status === 401 || error.status === 404) return this.say("not allowed");
      }
      this.say("reconnecting");
      const wait = WAITS_MS[Math.min(failures++, WAITS_MS.length - 1)];
      await new Promise((resolve) => { setTimeout(resolve, wait); });
    }
  }

  say(text) {
    const tag = byId("feed-state");
    if (tag.textContent !== text) tag.textContent = text;
    tag.classList.toggle("good", text === "live");
  }

  add(state) {
    // A new server begins its totals anew.
    if (this.states.length > 0 && state.steps < this.states.at(-1).steps) {
      this.states = [];
      this.points = [];
    }
    this.states.push({...state, t: state.time_s});
    dropOld(this.states);
    const second = this.since(RATE_S);
    const longer = this.since(SHARE_S);
    this.points.push({
      t: state.time_s,
      generated: second.rate("generated_tokens"),
      computed: second.rate("computed_tokens"),
      running: state.running,
      waiting: state.waiting,
      hits: longer.share("cached_tokens", "prompt_tokens"),
      accepted: longer.share("accepted_tokens", "drafted_tokens"),
      busy: Math.min(1, second.rate("busy_s")),
    });
    dropOld(this.points);
    this.draw(state, this.points.at(-1));
  }

  // Differences to the newest state that is at least `span_s` older than the last, or the oldest.
  since(span_s) {
    const now = this.states.at(-1);
    const then = this.states.findLast((state) => now.t - state.t >= span_s) ?? this.states[0];
    const grown = (key) => (now[key] ?? 0) - (then[key] ?? 0);
    return {
      rate: (key) => (now.t > then.t ? grown(key) / (now.t - then.t) : 0),
      // Nothing happened: no share, which is not zero.
      share: (part, all) => (grown(all) > 0 ? Math.min(1, grown(part) / grown(all)) : null),
    };
  }

  draw(state, point) {
    const used = state.num_blocks - state.free_blocks;
    const total = (part, all) => (all > 0 ? percent(part / all) : "–");
    this.speed.draw(this.points, whole(point.generated), `${count(state.generated_tokens)} since the start`);
    this.batch.draw(this.points, whole(state.running),
                    `${count(state.waiting)} waiting, ${count(state.preemptions)} preempted so far`);
    this.blocks.draw(state.num_blocks > 0 ? used / state.num_blocks : 0, count(used),
                     `of ${count(state.num_blocks)}; cached blocks count as free`);
    this.cache.draw(this.points, point.hits === null ? "–" : percent(point.hits),
                    `${total(state.cached_tokens, state.prompt_tokens)} of ${count(state.prompt_tokens)} since the start`);
    this.drafts.draw(this.points, point.accepted === null ? "–" : percent(point.accepted),
                     state.drafted_tokens > 0
                       ? `${total(state.accepted_tokens, state.drafted_tokens)} of ${count(state.drafted_tokens)} since the start`
                       : "no drafts so far");
    this.busy.draw(this.points, percent(point.busy), `${count(state.steps)} steps`);
  }
}
