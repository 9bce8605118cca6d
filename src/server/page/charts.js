// Small charts of the last minute: SVG paths, coloured by the style sheet.

import {el, svg} from "./dom.js";

const WIDTH = 240;
const HEIGHT = 56;
const SPAN_S = 60;

// A round number that is not less: 1, 2 or 5 times a power of ten.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999);
}

export class Chart {
  // series: [{key, label, area}] of points; `max` fixes the scale, else it follows the values.
  // `text(number)` writes a value.
  constructor({title, series, max = null, least = 1, text}) {
    Object.assign(this, {title, series, max, least, text});
    this.value = el("span", {class: "value"}, "–");  // no <output>: that is read out at each change
    this.note = el("span", {class: "note"});
    this.top = el("span", {class: "top", "aria-hidden": "true"});
    this.paths = series.map((_, i) => svg("path", {class: `line s${i}`}));
    this.areas = series.map((one, i) => (one.area ? svg("path", {class: `area s${i}`}) : null));
    this.image = svg("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
                              "aria-label": title},
                     ...this.areas.filter(Boolean), ...this.paths);
    const legend = series.length < 2 ? null : el("p", {class: "legend"},
      ...series.map((one, i) => el("span", {class: `key s${i}`}, one.label)));
    this.node = el("section", {class: "gauge", "aria-label": title},
                   el("div", {class: "gauge-head"}, el("h3", {}, title), this.value), this.note,
                   el("div", {class: "plot"}, this.image, this.top), legend);
  }

  // points: [{t (s), KEY: number or null}], oldest first.
  draw(points, value, note) {
    const now = points.at(-1)?.t ?? 0;
    const values = points.flatMap((point) => this.series.map(({key}) => point[key] ?? 0));
    const most = Math.max(this.least, ...values);
    const top = this.max ?? roundUp(most);
    this.series.forEach(({key}, i) => {
      const line = pathOf(points, key, now, top);
      this.paths[i].setAttribute("d", line.open);
      this.areas[i]?.setAttribute("d", line.closed);
    });
    this.value.textContent = value;
    this.note.textContent = note;
    this.top.textContent = this.text(top);
    this.image.setAttribute("aria-label", `${this.title} of the last minute: now ${value}. ${note}`);
  }
}

function pathOf(points, key, now, top) {
  let open = "";
  let closed = "";
  let begin = null;
  let x = 0;
  for (const point of points) {
    const value = point[key];
    if (value === null || value === undefined) {
      if (begin !== null) closed += `L${x} ${HEIGHT}L${begin} ${HEIGHT}Z`;
      begin = null;
      continue;
    }
    x = (WIDTH * (1 - (now - point.t) / SPAN_S)).toFixed(1);
    const y = (HEIGHT - 1 - (HEIGHT - 3) * Math.min(1, value / top)).toFixed(1);
    const step = `${begin === null ? "M" : "L"}${x} ${y}`;
    begin ??= x;
    open += step;
    closed += step;
  }
  if (begin !== null) closed += `L${x} ${HEIGHT}L${begin} ${HEIGHT}Z`;
  return {open, closed};
}

// How full something is: a column of water.
export class Tank {
  constructor({title}) {
    this.title = title;
    this.value = el("span", {class: "value"}, "–");  // no <output>: that is read out at each change
    this.note = el("span", {class: "note"});
    this.water = svg("rect", {class: "water", x: 0, y: 0, width: 0, height: 12});
    this.meter = el("div", {class: "tank", role: "meter", "aria-label": title, "aria-valuemin": 0,
                            "aria-valuemax": 100, "aria-valuenow": 0},
                    svg("svg", {viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true"},
                        this.water));
    this.node = el("section", {class: "gauge", "aria-label": title},
                   el("div", {class: "gauge-head"}, el("h3", {}, title), this.value), this.note, this.meter);
  }

  draw(share, value, note) {
    const percent = Math.round(share * 1000) / 10;
    this.water.setAttribute("width", percent);
    this.meter.setAttribute("aria-valuenow", percent);
    this.value.textContent = value;
    this.note.textContent = note;
  }
}

// What belongs to the chart's minute.
export function dropOld(points) {
  const now = points.at(-1)?.t ?? 0;
  while (points.length > 0 && now - points[0].t > SPAN_S) points.shift();
}
