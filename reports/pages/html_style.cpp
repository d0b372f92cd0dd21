#include "reports/pages/html_style.hpp"

namespace reprise::reports {

// The colours are told apart by readers who confuse red and green, and a word or a sign always
// stands beside them.
std::string_view page_style() {
  return R"css(
:root { color-scheme: light dark; --page: #fff; --card: #f5f6f8; --ink: #1a1c20; --quiet: #565c66;
  --rule: #d3d7de; --good: #00694e; --bad: #b3300c; --unsure: #7a5800; --a: #0067a8; --b: #b35c00;
  --heat: #e8772a; --caught: #56b4e9; --ran: #56b4e9; --continued: #009e73; --fell: #cc79a7;
  --refused: #e69f00; --cut: #8a8f98; --failed: #d03a1a; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14161a; --card: #1e2127; --ink: #e8eaee; --quiet: #a5acb8; --rule: #3a404a;
    --good: #4fd1a5; --bad: #ff8a66; --unsure: #f0c04a; --a: #6cbcf5; --b: #f0a04b; --heat: #a8481a;
    --caught: #1f6ea8; --failed: #ff6a4a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 78rem; padding: 1rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; }
h2 { font-size: 1.25rem; margin: 2rem 0 .5rem; padding-top: .5rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1.05rem; margin: 1rem 0 .25rem; }
h4 { font-size: .95rem; margin: .75rem 0 .25rem; }
p { margin: .25rem 0 .5rem; }
a { color: var(--a); }
nav a { margin-right: .75rem; display: inline-block; padding: .15rem 0; }
code, pre, dd { font-family: ui-monospace, monospace; font-size: .9em; }
pre { margin: 0; overflow-x: auto; white-space: pre; }
td pre, .reason, dd { white-space: pre-wrap; }
.quiet { color: var(--quiet); }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .1rem 1rem; margin: .25rem 0; }
dt { color: var(--quiet); }
dd { margin: 0; }
.prose dd { font: inherit; }
.v { font-weight: 600; white-space: nowrap; }
.v.pass { color: var(--good); }
.v.fail, .v.survived, .v.unsupported { color: var(--bad); }
.v.inconclusive { color: var(--unsure); }
.v.not { color: var(--quiet); }
.status { border: 1px solid currentColor; border-radius: .25rem; padding: 0 .35rem; font-size: .85em; font-weight: 600;
  white-space: nowrap; }
.status.new { color: var(--bad); }
.status.rare { color: var(--unsure); }
.status.ongoing { color: var(--quiet); }
.strip { display: inline-flex; flex-wrap: wrap; font-family: ui-monospace, monospace; font-size: .9em; }
.cell { min-width: 1.3em; text-align: center; border: 1px solid var(--rule); border-bottom: 3px solid var(--rule); }
.cell.P { border-bottom-color: var(--good); }
.cell.F { border-bottom-color: var(--bad); font-weight: 700; }
.cell.I { border-bottom-color: var(--unsure); }
article { background: var(--card); border-left: .3rem solid var(--bad); padding: .5rem 1rem 1rem;
  margin: 1rem 0; }
article.inconclusive { border-left-color: var(--unsure); }
article h3 { margin-top: .25rem; }
.warning { border-left: .3rem solid var(--bad); padding-left: .75rem; }
details { margin: .4rem 0; }
summary { cursor: pointer; padding: .15rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .2rem .75rem .2rem 0; border-bottom: 1px solid var(--rule); }
th { font-weight: 600; color: var(--quiet); white-space: nowrap; }
td { min-width: 3.5rem; overflow-wrap: break-word; max-width: 36rem; }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.flagged td, .flagged { color: var(--unsure); }
.flaws li { color: var(--bad); }
.replay { display: flex; gap: .5rem; align-items: start; flex-wrap: wrap; }
.replay code { background: var(--page); border: 1px solid var(--rule); padding: .3rem .5rem; flex: 1 1 16rem; }
button, input, select { font: inherit; color: inherit; background: var(--page); border: 1px solid var(--quiet);
  border-radius: .25rem; padding: .25rem .6rem; max-width: 100%; }
.tools { display: flex; gap: .5rem 1rem; flex-wrap: wrap; align-items: center; }
[hidden] { display: none; }
figure { display: inline-block; vertical-align: top; margin: .75rem 0; padding-right: 1.5rem; max-width: 100%; }
figcaption { font-size: .85rem; color: var(--quiet); max-width: 24rem; }
svg { display: block; font: 11px system-ui, sans-serif; max-width: 100%; height: auto; }
svg.wide { max-width: none; }
svg text { fill: var(--ink); }
svg .quiet { fill: var(--quiet); }
svg .end { text-anchor: end; }
svg .middle { text-anchor: middle; }
polyline { fill: none; stroke: var(--ink); stroke-width: 1.5; }
polyline.axis { stroke: var(--quiet); stroke-width: 1; }
polyline.grid { stroke: var(--rule); stroke-width: 1; }
polyline.a { stroke: var(--a); stroke-width: 2; }
polyline.b { stroke: var(--b); stroke-width: 2; stroke-dasharray: 6 3; }
circle.a { fill: var(--a); }
circle.b { fill: var(--page); stroke: var(--b); stroke-width: 1.5; }
polyline.mark { stroke: none; }
circle.mark { fill: none; stroke: var(--failed); stroke-width: 2; r: 6px; }
circle.lost, circle.fault { fill: var(--failed); stroke: none; }
circle.idle { fill: none; stroke: var(--quiet); }
svg text.fault { fill: var(--bad); }
rect { stroke: none; }
rect.heat { fill: var(--heat); stroke: var(--rule); }
rect.caught { fill: var(--caught); stroke: var(--rule); }
rect.called { fill: none; stroke: var(--bad); }
rect.nothing { fill: none; stroke: var(--rule); }
rect.part { stroke: var(--ink); stroke-width: .75; fill-opacity: .4; }
rect.part0 { fill: #0072b2; }
rect.part1 { fill: #e69f00; }
rect.part2 { fill: #009e73; }
rect.part3 { fill: #cc79a7; }
rect.part4 { fill: #56b4e9; }
rect.part5 { fill: #d55e00; }
rect.part6 { fill: #f0e442; }
rect.part7 { fill: #8a8f98; }
rect.frame { fill: none; stroke: var(--quiet); stroke-dasharray: 2 3; }
rect.wrong { fill: none; stroke: var(--bad); stroke-width: 3; }
polyline.cross { stroke: var(--bad); stroke-width: 2.5; }
polyline.under { stroke: var(--page); stroke-width: 5.5; }
rect.generation { fill: none; stroke: var(--ink); stroke-width: 1; fill-opacity: .45; }
rect.kept { fill: var(--continued); }
rect.pruned { stroke: var(--quiet); }
rect.replaced { fill: var(--cut); }
rect.damaged { fill: var(--failed); stroke-width: 2; }
rect.unfinished { stroke: var(--bad); stroke-dasharray: 4 3; stroke-width: 1.5; }
rect.life { stroke: var(--ink); stroke-width: .5; }
rect.ran { fill: var(--ran); }
rect.continued { fill: var(--continued); }
rect.fell_back { fill: var(--fell); }
rect.refused { fill: var(--refused); }
rect.cut_short { fill: var(--cut); stroke-dasharray: 3 2; stroke-width: 1.5; }
rect.failed { fill: var(--failed); stroke-width: 1.5; }
svg .strong { font-weight: 600; }
svg text.a { fill: var(--a); }
svg text.commit { fill: var(--good); }
rect.st { stroke: var(--ink); stroke-width: 1; }
rect.phase { fill: var(--card); }
rect.step { fill: var(--cut); }
rect.store { fill: var(--refused); stroke-width: .5; }
rect.across { fill: var(--a); stroke: var(--a); }
rect.st.cut { stroke: var(--bad); stroke-width: 2; stroke-dasharray: 4 2; }
rect.across.cut { fill: var(--page); }
circle.came { fill: var(--a); }
circle.missing { fill: var(--page); stroke: var(--bad); stroke-width: 2; r: 5px; }
polyline.waits { stroke: var(--a); stroke-width: 3; stroke-dasharray: 1 3; }
polyline.commit { stroke: var(--good); stroke-width: 1.2; }
polyline.end-of-rank { stroke: var(--bad); stroke-width: 3; }
polygon.fault { fill: var(--failed); stroke: var(--ink); }
footer { margin-top: 2rem; border-top: 1px solid var(--rule); padding-top: .5rem; font-size: .85rem; color: var(--quiet); }
@media (max-width: 40rem) { body { padding: .75rem; } article { padding: .5rem .6rem .75rem; }
  td { max-width: 16rem; } figure { padding-right: 0; } }
@media print { :root { --page: #fff; --card: #fff; --ink: #000; --quiet: #444; --rule: #999; --good: #00543e;
    --bad: #a02000; --unsure: #5c4200; } body { max-width: none; font-size: 10pt; }
  nav, .scripted { display: none !important; } figure, tr { break-inside: avoid; } .scroll { overflow: visible; }
  details::details-content { content-visibility: visible; } }
)css";
}

// Everything stands in the page without the script, too. It adds the filter, the order and the copy
// buttons.
std::string_view page_script() {
  return R"js(
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  for (const element of all('.scripted')) element.hidden = false;

  const copy = async (code) => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      return 'Copied';
    } catch {
      getSelection().selectAllChildren(code);
      return document.execCommand('copy') ? 'Copied' : 'Selected';
    }
  };
  for (const button of all('button.copy')) {
    button.addEventListener('click', async () => {
      button.textContent = await copy(button.previousElementSibling);
      setTimeout(() => { button.textContent = 'Copy'; }, 2000);
    });
  }

  const filter = document.getElementById('filter');
  if (!filter) return;
  const files = all('#files > details').map((element, place) => ({
    element, place, open: element.open, seconds: Number(element.dataset.s), body: element.querySelector('tbody'),
    rows: all('tbody > tr', element).map((row, number) => ({
      element: row, place: number, seconds: Number(row.dataset.s),
      text: (element.querySelector('.name').textContent + ' ' +
        [...row.cells].map((cell) => cell.textContent).join(' ')).toLowerCase()})),
  }));
  const total = files.reduce((sum, file) => sum + file.rows.length, 0);

  const show = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter((word) => word);
    let shown = 0;
    for (const file of files) {
      let here = 0;
      for (const row of file.rows) {
        const fits = words.every((word) => row.text.includes(word));
        row.element.hidden = !fits;
        here += fits;
      }
      file.element.hidden = here === 0;
      file.element.open = words.length ? here > 0 : file.open;
      shown += here;
    }
    document.getElementById('count').textContent = `${shown} of ${total} shown`;
  };
  filter.addEventListener('input', show);
  show();

  const order = document.getElementById('order');
  const sort = () => {
    const by = order.value === 'time' ? (a, b) => b.seconds - a.seconds || a.place - b.place : (a, b) => a.place - b.place;
    for (const file of files) file.body.append(...[...file.rows].sort(by).map((row) => row.element));
    document.getElementById('files').append(...[...files].sort(by).map((file) => file.element));
  };
  order.addEventListener('change', sort);
  sort();
})();
)js";
}

}  // namespace reprise::reports
