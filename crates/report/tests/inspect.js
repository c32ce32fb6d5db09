// Runs within the page under test once it is drawn, and tells the page around it what it saw.
"use strict";
addEventListener("load", () => setTimeout(() => {
  document.querySelectorAll("details").forEach(details => (details.open = true));
  const parse = colour => {
    const parts = colour.match(/[\d.]+/g).map(Number);
    return { rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1 };
  };
  const resolve = value => {
    const probe = document.body.appendChild(document.createElement("span"));
    probe.style.color = value;
    const { rgb } = parse(getComputedStyle(probe).color);
    probe.remove();
    return rgb;
  };
  // WCAG 2.2, relative luminance and contrast ratio.
  const luminance = rgb => {
    const linear = c => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = rgb.map(c => linear(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = element => {
    for (let here = element; here; here = here.parentElement) {
      const { rgb, alpha } = parse(getComputedStyle(here).backgroundColor);
      if (alpha === 1) return rgb;
    }
    return [255, 255, 255];
  };
  const small = [], pale = [];
  let texts = 0;
  for (const element of document.body.querySelectorAll("*")) {
    const text = node => node.nodeType === Node.TEXT_NODE && node.data.trim();
    const own = [...element.childNodes].some(text);
    const hidden = ["SCRIPT", "STYLE", "NOSCRIPT"].includes(element.tagName);
    if (!own || hidden || !element.getClientRects().length) continue;
    texts += 1;
    const style = getComputedStyle(element), start = element.textContent.slice(0, 30);
    const name = `${element.tagName}.${element.className}: ${start}`;
    if (parseFloat(style.fontSize) < 12) small.push(`${name} ${style.fontSize}`);
    const ratio = contrast(parse(style.color).rgb, ground(element));
    if (ratio < 4.5) pale.push(`${name} ${ratio.toFixed(2)}`);
  }
  // What charts write with, on what they are drawn on.
  const root = getComputedStyle(document.documentElement);
  const property = name => resolve(root.getPropertyValue("--" + name));
  for (const name of ["soft", "best", "baseline", "bound"]) {
    const ratio = contrast(property(name), property("ground"));
    if (ratio < 4.5) pale.push(`chart ink ${name} ${ratio.toFixed(2)}`);
  }
  const canvases = [...document.querySelectorAll(".chart")].map(place => {
    const canvas = place.querySelector("canvas");
    if (!canvas) return { id: place.id, inked: 0, width: 0, fits: false };
    const context = canvas.getContext("2d");
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    let inked = 0;
    for (let i = 3; i < data.length; i += 4) inked += data[i] > 0;
    const box = canvas.getBoundingClientRect();
    const fits = box.left >= 0 && box.right <= innerWidth + 0.5;
    return { id: place.id, inked, width: box.width, fits };
  });
  parent.postMessage({
    errors: window.seen, texts, small, pale, canvases, scripts: window.hostile || 0,
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    width: innerWidth, overflow: document.documentElement.scrollWidth - innerWidth,
  }, "*");
}, 300));
