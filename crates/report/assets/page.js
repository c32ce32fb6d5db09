// Draws the page's charts with uPlot. A chart is data (chart.rs): axes, series, marks over the
// whole height, bars with whiskers; colours are names of custom properties. Charts are drawn anew
// when the width or the colour scheme changes, and for paper. Without this script the page lacks
// the pictures and nothing else.
"use strict";
(() => {
  // CSS pixels that fit between the margins of A4 and of Letter.
  const PAPER = { alone: 664, paired: 322 };
  const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const drawn = new Map();
  const ink = name =>
    getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

  // uPlot wants one ascending x for all series: every point gets a row of its own, so that equal x
  // lose nothing.
  function rows(series) {
    const points = series.flatMap((s, k) => s.x.map((x, i) => [x, k, s.y[i]]));
    points.sort((a, b) => a[0] - b[0]);
    const data = [points.map(p => p[0]), ...series.map(() => new Array(points.length).fill(null))];
    points.forEach(([, k, y], row) => (data[k + 1][row] = y));
    return data;
  }

  // Everything drawn must be inside, with some air.
  function range(values, air) {
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      if (value === null) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    const margin = (high - low || Math.abs(high) || 1) * air;
    return [low - margin, high + margin];
  }

  const short = value => String(+value.toPrecision(6));

  function axis(chart, side, names) {
    const base = {
      stroke: ink("soft"), font: FONT, labelFont: FONT,
      label: side.label || undefined, labelSize: side.label ? 20 : 0,
      grid: { stroke: ink("grid"), width: 1 }, ticks: { stroke: ink("line"), width: 1, size: 5 },
    };
    if (!names.length) return base;
    const splits = () => names.map((_, i) => i);
    return { ...base, splits, values: () => names, grid: { show: false } };
  }

  function style(series) {
    const colour = ink(series.ink), rings = series.shape === "rings";
    const dots = series.shape === "dots" || rings;
    const dense = series.x.length > 150;
    return {
      label: series.name, stroke: colour, width: series.ink === "faint" ? 1.5 : 2, spanGaps: true,
      dash: series.shape === "dashes" ? [6, 5] : undefined,
      paths: dots
        ? () => null
        : series.shape === "steps" ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear(),
      points: {
        show: dots, size: dense ? 4 : 7, width: rings ? (dense ? 1 : 1.8) : 0, stroke: colour,
        fill: rings ? ink("ground") : colour, space: 0,
      },
    };
  }

  function drawMarks(u, chart) {
    const { ctx, bbox } = u, dense = uPlot.pxRatio;
    ctx.save();
    ctx.lineWidth = 1.5 * dense;
    for (const mark of chart.marks) {
      const x = u.valToPos(mark.at, "x", true);
      ctx.strokeStyle = ctx.fillStyle = ink(mark.ink);
      if (mark.to !== null) {
        const to = u.valToPos(mark.to, "x", true);
        ctx.globalAlpha = 0.13;
        ctx.fillRect(Math.min(x, to), bbox.top, Math.abs(to - x), bbox.height);
        ctx.globalAlpha = 1;
      }
      const dashes = { best: [], baseline: [6 * dense, 4 * dense], bound: [2 * dense, 3 * dense] };
      ctx.setLineDash(dashes[mark.ink] || []);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }

  // Each label has a line of its own above the plot: labels of close marks never run into each
  // other.
  function drawLabels(u, chart) {
    const { ctx, bbox } = u, dense = uPlot.pxRatio;
    ctx.save();
    ctx.font = FONT.replace("12px", 12 * dense + "px");
    ctx.textBaseline = "middle";
    ctx.lineWidth = dense;
    chart.marks.forEach((mark, i) => {
      const x = u.valToPos(mark.at, "x", true);
      const y = bbox.top - (chart.marks.length - i - 0.4) * 15 * dense;
      const right = x < bbox.left + bbox.width / 2;
      ctx.strokeStyle = ctx.fillStyle = ink(mark.ink);
      ctx.beginPath();
      ctx.moveTo(x, y);
      ctx.lineTo(x, bbox.top);
      ctx.stroke();
      ctx.textAlign = right ? "left" : "right";
      ctx.fillText(mark.label, x + (right ? 4 : -4) * dense, y);
    });
    ctx.restore();
  }

  function drawBars(u, chart) {
    const { ctx, bbox } = u, dense = uPlot.pxRatio, along = chart.bars_along_x;
    ctx.save();
    ctx.lineWidth = 2 * dense;
    for (const bar of chart.bars) {
      const across = u.valToPos(bar.at, along ? "y" : "x", true);
      const position = value => u.valToPos(value, along ? "x" : "y", true);
      const [start, end] = along
        ? [bbox.left, bbox.left + bbox.width]
        : [bbox.top + bbox.height, bbox.top];
      const flip = along ? chart.x.reversed : chart.y.reversed;
      const low = bar.low === null ? (flip ? end : start) : position(bar.low);
      const high = bar.high === null ? (flip ? start : end) : position(bar.high);
      const point = (p, q) => (along ? [p, q] : [q, p]);
      ctx.strokeStyle = ink(bar.ink);
      ctx.beginPath();
      ctx.moveTo(...point(low, across));
      ctx.lineTo(...point(high, across));
      const whisker = 6 * dense, tick = along ? 11 * dense : 4 * dense;
      const strokes = [
        [bar.low === null ? null : low, whisker],
        [bar.high === null ? null : high, whisker],
        [position(bar.mid), tick],
      ];
      for (const [at, size] of strokes) {
        if (at === null) continue;
        ctx.moveTo(...point(at, across - size));
        ctx.lineTo(...point(at, across + size));
      }
      ctx.stroke();
    }
    ctx.restore();
  }

  function draw(chart, width) {
    const place = document.getElementById(chart.id);
    drawn.get(chart.id)?.destroy();
    const named = chart.y.names || [];
    const ends = chart.bars.flatMap(bar => [bar.low, bar.mid, bar.high]);
    const xs = [
      ...chart.series.flatMap(s => s.x),
      ...chart.marks.flatMap(m => [m.at, m.to]),
      ...(chart.bars_along_x ? ends : chart.bars.map(b => b.at)),
    ];
    const ys = [...chart.series.flatMap(s => s.y), ...(chart.bars_along_x ? [] : ends)];
    const yRange = named.length ? [-0.6, named.length - 0.4] : range(ys, 0.05);
    const widest = Math.max(0, ...named.map(name => name.length));
    const over = place.querySelector(".at") || place.appendChild(document.createElement("div"));
    over.className = "at";
    over.setAttribute("aria-hidden", "true");
    const height = named.length
      ? 90 + (named.length > 4 ? 40 : 56) * named.length
      : Math.round(Math.min(320, Math.max(240, width * 0.6)));
    const longest = values => Math.max(widest, ...(values || [""]).map(v => String(v).length));
    const options = {
      width, height,
      padding: [8 + 15 * chart.marks.length, 14, 0, 0],
      scales: {
        x: { time: false, range: range(xs, 0.03), dir: chart.x.reversed ? -1 : 1 },
        y: { range: yRange, dir: chart.y.reversed ? -1 : 1 },
      },
      axes: [
        { ...axis(chart, chart.x, []), size: 34 },
        { ...axis(chart, chart.y, named), size: (u, values) => 16 + 7 * longest(values) },
      ],
      series: [{}, ...chart.series.map(style)],
      legend: { show: false },
      cursor: { points: { show: false }, drag: { x: true, y: false } },
      hooks: {
        drawAxes: [u => drawMarks(u, chart)],
        draw: [u => { drawBars(u, chart); drawLabels(u, chart); }],
        setCursor: [u => {
          const { left, top } = u.cursor;
          const x = left >= 0 && short(+u.posToVal(left, "x").toPrecision(4)) + " " + chart.x.label;
          const y = named.length
            ? ""
            : "; " + short(+u.posToVal(top, "y").toPrecision(4)) + " " + chart.y.label;
          over.textContent = left >= 0 ? x + y : "";
        }],
      },
    };
    const plot = new uPlot(options, rows(chart.series), place);
    place.appendChild(over);
    drawn.set(chart.id, plot);
  }

  const onPaper = () => document.documentElement.hasAttribute("data-paper");
  const all = () => charts.forEach(chart => {
    const place = document.getElementById(chart.id);
    draw(chart, onPaper() ? PAPER[place.closest(".pair") ? "paired" : "alone"] : place.clientWidth);
  });
  const paper = on => {
    document.documentElement.toggleAttribute("data-paper", on);
    all();
  };

  all();
  const resized = new ResizeObserver(entries => {
    if (onPaper()) return;
    for (const { target } of entries) {
      const width = target.clientWidth;
      if (width && drawn.get(target.id).width !== width) {
        draw(charts.find(c => c.id === target.id), width);
      }
    }
  });
  charts.forEach(chart => resized.observe(document.getElementById(chart.id)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => all());
  addEventListener("beforeprint", () => paper(true));
  addEventListener("afterprint", () => paper(false));
})();
