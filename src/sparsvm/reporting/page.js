"use strict";
// Search, slider and pictures of the report. The tables are there without it.
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const at = (id) => document.getElementById(id);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const narrow = window.matchMedia("(max-width: 40rem)");
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];

  // ------------------------------------------------------------------ search
  const search = at("search");
  if (search) {
    const rows = [...document.querySelectorAll("#feature-table tbody tr")];
    const filter = () => {
      const wanted = search.value.trim().toLowerCase();
      let shown = 0;
      for (const row of rows) {
        row.hidden = !row.dataset.name.toLowerCase().includes(wanted);
        shown += row.hidden ? 0 : 1;
      }
      at("search-count").textContent = `${shown} shown`;
      at("nothing-found").hidden = shown > 0;
    };
    search.addEventListener("input", filter);
    filter(); // a browser may have kept what was typed before a reload
  }

  // ------------------------------------------------------------------ copying
  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code); // not allowed: select it for the reader
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }

  // ------------------------------------------------------------------ pictures
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // Names are data: what looks like markup must not become any.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const short = (text) => {
    const most = narrow.matches ? 16 : 32;
    return plain(text.length > most ? text.slice(0, most - 1) + "…" : text);
  };
  // The palette of Okabe and Ito, which colour-blind readers can tell apart.
  const palette = () => dark.matches
    ? ["#56b4e9", "#f0a35e", "#2fc79a", "#e5a3c8", "#f0e442", "#b8b5ae", "#8fa8ff"]
    : ["#0072b2", "#d55e00", "#009e73", "#b4588d", "#b07c00", "#1d1c1a", "#5a6fd0"];
  const axis = (title, more) => ({
    title: { text: title, font: { size: 13 }, standoff: 8 }, gridcolor: colour("--grid"),
    linecolor: colour("--line"), zeroline: false, automargin: true, fixedrange: true, ...more,
  });
  const layout = (more) => ({
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 12, color: colour("--ink") },
    margin: { l: 10, r: 10, t: 10, b: 10 }, showlegend: false, dragmode: false,
    hoverlabel: { bgcolor: colour("--raised"), bordercolor: colour("--line"), font: { color: colour("--ink") } },
    ...more,
  });
  const draw = (id, traces, form) => {
    const place = at(id);
    if (place) Plotly.react(place, traces, layout(form), { responsive: true, displayModeBar: false });
  };

  const drawMargins = () => {
    const { edges, counts } = data.margins;
    const middle = counts.map((_, k) => (edges[k] + edges[k + 1]) / 2);
    const ink = middle.map((x) => colour(x < 0 ? "--minus" : "--plus"));
    draw("margin-chart", [{
      type: "bar", x: middle, y: counts, marker: { color: ink, line: { color: colour("--paper"), width: 1 } },
      width: edges[1] - edges[0],
      customdata: counts.map((_, k) => [edges[k], edges[k + 1]]),
      hovertemplate: "%{y} samples<br>margin %{customdata[0]:.3g} to %{customdata[1]:.3g}<extra></extra>",
    }], {
      bargap: 0, xaxis: axis("margin"), yaxis: axis("test samples", { rangemode: "tozero" }),
      shapes: [0, 1].map((x) => ({
        type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1,
        line: { color: colour("--ink"), width: 1.5, dash: x ? "dot" : "solid" },
      })),
      margin: { l: 10, r: 10, t: 24, b: 10 },
      annotations: [[0, "wrong ", "right"], [1, " margin 1", "left"]].map(([x, text, xanchor]) => ({
        x, y: 1, yref: "paper", text, showarrow: false, xanchor, yanchor: "bottom", font: { size: 11 },
      })),
    });
  };

  const drawWeights = () => {
    const { names, drawn, columns } = data.features;
    const places = names.map((_, j) => j);
    const yaxis = axis("", {
      tickvals: places, ticktext: names.map(short), autorange: "reversed", gridcolor: "rgba(0,0,0,0)",
    });
    const unit = data.features.scaled ? "weight × standard deviation" : "weight";
    at("weight-chart").style.height = `${90 + 22 * names.length}px`;
    if (drawn.length === 1) {
      draw("weight-chart", [{
        type: "bar", orientation: "h", x: drawn[0], y: places, text: names.map(plain), textposition: "none",
        marker: { color: drawn[0].map((w) => colour(w < 0 ? "--minus" : "--plus")) },
        hovertemplate: "%{text}<br>%{x:.3g}<extra></extra>",
      }], { xaxis: axis(unit), yaxis, bargap: 0.3 });
      return;
    }
    const top = Math.max(...drawn.flat().map(Math.abs));
    const middle = colour("--raised");
    draw("weight-chart", [{
      type: "heatmap", x: columns.map((_, k) => k), y: places, xgap: 3, ygap: 3,
      z: names.map((_, j) => drawn.map((row) => row[j])), zmin: -top, zmax: top,
      colorscale: [[0, colour("--minus")], [0.5, middle], [1, colour("--plus")]],
      text: names.map((name) => columns.map((label) => `${plain(name)}<br>${plain(label)}`)),
      hovertemplate: "%{text}: %{z:.3g}<extra></extra>",
      colorbar: { thickness: 10, len: 0.6, outlinewidth: 0, title: { text: narrow.matches ? "" : unit, side: "right" } },
    }], {
      xaxis: axis("", { tickvals: columns.map((_, k) => k), ticktext: columns.map(short), side: "top", gridcolor: "rgba(0,0,0,0)" }),
      yaxis,
    });
  };

  const drawGaps = () => draw("gap-chart", [{
    x: data.history.seconds, y: data.history.gaps, mode: "lines+markers", line: { color: colour("--plus") },
    hovertemplate: "%{x:.3g} s, gap %{y:.2g}<extra></extra>",
  }], { xaxis: axis("seconds"), yaxis: axis("relative duality gap", { type: "log", exponentformat: "power", dtick: 1 }) });

  const drawStability = () => {
    const { names, probabilities, threshold } = data.stability;
    const places = names.map((_, j) => j);
    at("stability-chart").style.height = `${90 + 22 * names.length}px`;
    draw("stability-chart", [{
      type: "bar", orientation: "h", x: probabilities, y: places, text: names.map(plain), textposition: "none",
      marker: { color: probabilities.map((p) => colour(p >= threshold ? "--plus" : "--soft")) },
      hovertemplate: "%{text}<br>selected in %{x:.0%}<extra></extra>",
    }], {
      xaxis: axis("share of resamples in which it is selected", { range: [0, 1], tickformat: ".0%" }),
      yaxis: axis("", { tickvals: places, ticktext: names.map(short), autorange: "reversed", gridcolor: "rgba(0,0,0,0)" }),
      shapes: [{ type: "line", x0: threshold, x1: threshold, yref: "paper", y0: 0, y1: 1, line: { color: colour("--ink"), dash: "dot", width: 1.5 } }],
      bargap: 0.3,
    });
  };

  // ------------------------------------------------------------------ the path and its slider
  const path = data.path;
  const slider = at("alpha");
  const alphaAxis = () => {
    const high = path.alphas[0], low = path.alphas[path.alphas.length - 1];
    const digits = high < 100 * low ? [1, 2, 5] : [1];
    const ticks = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e += 1) {
      ticks.push(...digits.map((d) => Number(`${d}e${e}`)));
    }
    return axis("alpha", { type: "log", autorange: "reversed", tickvals: ticks, ticktext: ticks.map(String) });
  };
  const marks = (t) => [
    { type: "line", x0: path.alphas[path.chosen], x1: path.alphas[path.chosen], yref: "paper", y0: 0, y1: 1, line: { color: colour("--soft"), dash: "dot", width: 1.5 } },
    { type: "line", x0: path.alphas[t], x1: path.alphas[t], yref: "paper", y0: 0, y1: 1, line: { color: colour("--ink"), width: 2 } },
  ];
  const score = (value) => path.score_name === "accuracy" ? `${(100 * value).toFixed(1)} %` : value.toPrecision(3);

  const drawPath = () => {
    const t = Number(slider.value), ink = palette();
    if (path.scores) {
      const upper = path.scores.map((s, k) => s + path.errors[k]);
      const lower = path.scores.map((s, k) => s - path.errors[k]);
      draw("score-chart", [
        { x: path.alphas, y: upper, mode: "lines", line: { width: 0 }, hoverinfo: "skip" },
        { x: path.alphas, y: lower, mode: "lines", line: { width: 0 }, fill: "tonexty", fillcolor: `rgba(${colour("--plus-tint").split(" ").join(",")},0.2)`, hoverinfo: "skip" },
        { x: path.alphas, y: path.scores, mode: "lines", name: path.score_name, line: { color: ink[0], width: 2.5 }, hovertemplate: "alpha %{x:.3g}: %{y:.3g}<extra></extra>" },
        { x: path.alphas, y: path.selected, yaxis: "y2", mode: "lines", name: "features", line: { color: ink[1], width: 2, dash: "dash" }, hovertemplate: "alpha %{x:.3g}: %{y:.3g} features<extra></extra>" },
      ], {
        xaxis: alphaAxis(), shapes: marks(t),
        yaxis: axis(path.score_name, { tickformat: path.score_name === "accuracy" ? ".0%" : "", title: { text: path.score_name, font: { color: ink[0], size: 13 } } }),
        yaxis2: axis("features (dashed)", { overlaying: "y", tickmode: "auto", side: "right", showgrid: false, rangemode: "tozero", title: { text: "features (dashed)", font: { color: ink[1], size: 13 } } }),
      });
    }
    if (path.lines) {
      draw("path-chart", path.lines.map((sizes, k) => ({
        x: path.alphas, y: sizes, mode: "lines", name: plain(path.names[k]),
        line: k < 2 * ink.length ? { color: ink[k % ink.length], width: 2, dash: DASHES[Math.floor(k / ink.length)] } : { color: colour("--soft"), width: 1 },
        hovertemplate: "%{fullData.name}<br>alpha %{x:.3g}: %{y:.3g}<extra></extra>",
      })), {
        xaxis: alphaAxis(), shapes: marks(t), hovermode: "closest",
        yaxis: axis("size of the weights", { rangemode: "tozero" }),
      });
    }
  };

  const tell = () => {
    const t = Number(slider.value);
    const words = [`alpha = ${path.alphas[t].toPrecision(3)}`, `${+path.selected[t].toFixed(1)} features`];
    if (path.scores) words.push(`${path.score_name} ${score(path.scores[t])} ± ${score(path.errors[t])}`);
    if (path.gaps) words.push(`proven gap ${path.gaps[t].toPrecision(1)}`);
    if (t === path.chosen) words.push("the one chosen");
    const text = words.join(" · ");
    at("alpha-words").textContent = text;
    slider.setAttribute("aria-valuetext", text);
    if (!path.lines) return;
    const ink = palette();
    const order = path.lines.map((sizes, k) => [sizes[t], k]).filter(([size]) => size > 0).sort((a, b) => b[0] - a[0]);
    const most = order.length ? order[0][0] : 1;
    at("strongest").replaceChildren(...order.slice(0, 12).map(([size, k]) => {
      const item = document.createElement("li");
      const swatch = document.createElement("span"), name = document.createElement("span"), bar = document.createElement("span");
      swatch.className = "swatch";
      swatch.style.background = k < 2 * ink.length ? ink[k % ink.length] : colour("--soft");
      name.className = "name";
      name.textContent = name.title = path.names[k];
      bar.className = "bar";
      bar.style.setProperty("--share", (size / most).toFixed(3));
      item.append(swatch, name, bar);
      return item;
    }));
  };

  const move = () => {
    tell();
    if (!window.Plotly) return;
    for (const id of ["score-chart", "path-chart"]) {
      const place = at(id);
      if (place && place.layout) Plotly.relayout(place, { shapes: marks(Number(slider.value)) });
    }
  };
  if (slider) {
    slider.addEventListener("input", move);
    at("alpha-reset").addEventListener("click", () => { slider.value = path.chosen; move(); });
    tell();
  }

  // ------------------------------------------------------------------ begin
  const drawAll = () => {
    if (data.margins) drawMargins();
    if (data.features.names.length) drawWeights();
    if (data.history) drawGaps();
    if (data.stability) drawStability();
    if (slider) { drawPath(); tell(); }
  };
  // Plotly is packed: that makes the page less than half as large.
  const unpack = async () => {
    const packed = Uint8Array.from(atob(at("plotly-gzip").textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  };
  unpack().then(() => {
    drawAll();
    dark.addEventListener("change", drawAll);
    narrow.addEventListener("change", drawAll);
    window.addEventListener("beforeprint", drawAll);
    document.documentElement.dataset.ready = "yes";
  }).catch((error) => {
    for (const place of document.querySelectorAll(".chart")) {
      place.textContent = "This browser is too old to draw the picture; the text and the tables are complete.";
      place.style.minHeight = "0";
    }
    console.warn(error);
  });
})();
