#pragma once
// The style sheet of pages. Colours of arms: Okabe and Ito 2008, which people with any kind of colour vision
// tell apart; lighter in the dark.

namespace cloze {

inline constexpr const char* page_style = R"css(
:root {
  color-scheme: light dark;
  --page: #fcfcfb; --ink: #1c1f23; --soft: #5c636b; --faint: #e4e5e2; --fill: #f2f2ef; --margin: #0072b21a;
  --a0: #6d747c; --a1: #0072b2; --a2: #d55e00; --a3: #009e73; --a4: #b0558a; --a5: #b87f00; --a6: #3a9bd0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #15181b; --ink: #e7e8e6; --soft: #a0a7ae; --faint: #2c3136; --fill: #1f2327; --margin: #56b4e926;
    --a0: #a3abb3; --a1: #4fa8e0; --a2: #f28444; --a3: #35bd94; --a4: #dc97bf; --a5: #e8ab35; --a6: #8bcbf2;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 400 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial,
    sans-serif;
  font-variant-numeric: tabular-nums;
}
main { max-width: 76rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; font-weight: 650; letter-spacing: -.015em; margin: 0; }
h2 { font-size: 1.15rem; line-height: 1.3; font-weight: 650; margin: 3rem 0 .9rem; }
h1, p, li, td, th, dd, .name, .said { overflow-wrap: anywhere; }
p, ul { max-width: 46rem; }
p { margin: .4rem 0; }
.kicker { margin: 0 0 .3rem; color: var(--soft); font-size: .85rem; }
.question { font-size: 1.15rem; margin: .5rem 0 1.5rem; }
.soft, figcaption { color: var(--soft); font-size: .875rem; max-width: 46rem; }
figcaption { margin-top: .6rem; }
figure { margin: 0 0 1.5rem; }
ul { padding-left: 1.1rem; margin: .5rem 0; }
li { margin: .2rem 0; }
code, pre { font-family: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "Liberation Mono", monospace;
  font-size: .85em; }
.facts { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; margin: 0; padding: 1rem 0;
  border-top: 1px solid var(--faint); border-bottom: 1px solid var(--faint); }
.facts > div { max-width: 15rem; }
.facts dt { color: var(--soft); font-size: .8rem; }
.facts dd { margin: 0; }

.scroll { overflow-x: auto; }
.tall { max-height: 34rem; overflow-y: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th { font-weight: 500; color: var(--soft); font-size: .8rem; text-align: left; vertical-align: bottom;
  background: var(--page); }
.tall thead th { position: sticky; top: 0; }
th, td { padding: .42rem 1rem .42rem 0; border-bottom: 1px solid var(--faint); white-space: nowrap; }
th:last-child, td:last-child { padding-right: 0; }
td { vertical-align: baseline; }
.n { text-align: right; }
tbody th { font-size: inherit; color: var(--ink); font-weight: 500; vertical-align: baseline; max-width: 18rem;
  white-space: normal; min-width: 6rem; }
td.wide { white-space: normal; min-width: 13rem; }
pre code { font-size: inherit; }
pre { margin: 0; padding: .9rem 1rem; background: var(--fill); border-radius: 6px; line-height: 1.6; }

svg { display: block; overflow: visible; }
svg svg { overflow: hidden; }
.grid { stroke: var(--faint); stroke-width: 1; }
.tick { fill: var(--soft); font-size: 12px; }
.label { fill: var(--soft); font-size: 13px; }
.plot { padding: .5rem 1rem 3.4rem 3.1rem; }
.chart { width: 100%; height: 21rem; }
.low .chart { height: 14rem; }
.line { fill: none; stroke: var(--c); stroke-width: 2; stroke-linejoin: round; vector-effect: non-scaling-stroke; }
.thin { stroke-width: 1; opacity: .3; }
.dash { stroke-width: 1.5; stroke-dasharray: 6 4; }
line.axis { stroke: var(--faint); }
.band { fill: var(--c); opacity: .16; }
.zero { stroke: var(--soft); stroke-width: 1; fill: none; vector-effect: non-scaling-stroke; }
.margin { fill: var(--margin); opacity: 1; }
.a0 { --c: var(--a0); } .a1 { --c: var(--a1); } .a2 { --c: var(--a2); } .a3 { --c: var(--a3); }
.a4 { --c: var(--a4); } .a5 { --c: var(--a5); } .a6 { --c: var(--a6); }
.d1 { stroke-dasharray: 7 4; } .d2 { stroke-dasharray: 2 3; }
.key { display: flex; flex-wrap: wrap; gap: .3rem 1.3rem; list-style: none; padding: 0; margin: 0 0 .4rem;
  font-size: .9rem; max-width: none; }
.key li { display: flex; align-items: center; gap: .45rem; margin: 0; }
.key svg { width: 1.5rem; height: .8rem; flex: none; }
.key line { stroke: var(--c); stroke-width: 2.5; }

.rows { display: grid; grid-template-columns: minmax(5rem, 13rem) minmax(0, 1fr) minmax(7rem, 17rem);
  grid-auto-flow: row dense; }
.rows > div { padding: .55rem 0; display: flex; align-items: center; }
.rows > .name { grid-column: 1; }
.rows > .said { grid-column: 3; }
.rows > .draw { grid-column: 2; position: relative; padding: 0; min-height: 2.5rem; margin: 0 1.5rem; }
.rows > .axis { min-height: 1.7rem; }
.draw svg { position: absolute; inset: 0; width: 100%; height: 100%; }
.name { font-weight: 500; }
.said { font-size: .9rem; }
.sides { display: flex; justify-content: space-between; width: 100%; color: var(--soft); font-size: 13px;
  gap: .5rem; }
.interval { stroke: var(--c); stroke-width: 5; stroke-linecap: butt; opacity: .5; }
.dot, .bar { fill: var(--c); }
.ring { fill: var(--page); stroke: var(--c); stroke-width: 2; }
.run { fill: var(--c); opacity: .62; }
.outlying { fill: none; stroke: var(--c); stroke-width: 1.5; opacity: 1; }
.mean { stroke: var(--ink); stroke-width: 2; }

.pick { position: absolute; opacity: 0; pointer-events: none; }
.pick + label { display: inline-block; padding: .25rem .75rem; margin: 0 .3rem .8rem 0;
  border: 1px solid var(--faint); border-radius: 99px;
  font-size: .85rem; color: var(--soft); cursor: pointer; }
.pick:checked + label { color: var(--page); background: var(--ink); border-color: var(--ink); }
.pick:focus-visible + label { outline: 2px solid var(--a1); outline-offset: 2px; }
.by { display: none; }
#by-steps:checked ~ .by-steps, #by-tokens:checked ~ .by-tokens, #by-flops:checked ~ .by-flops,
#by-time:checked ~ .by-time { display: block; }

@media (max-width: 44rem) {
  main { padding: 1.5rem 1rem 3rem; }
  h1 { font-size: 1.5rem; }
  .facts { gap: .8rem 1.5rem; }
  .rows { grid-template-columns: minmax(0, 1fr); }
  .rows > .name, .rows > .said, .rows > .draw { grid-column: 1; }
  .rows > .name { padding: .7rem 0 0; }
  .rows > .said { padding: 0 0 .2rem; }
  .rows > .draw { margin: 0 .9rem; }
  .chart { height: 16rem; }
}
@media print {
  :root { color-scheme: light; --page: #fff; --ink: #000; --soft: #444; --faint: #ccc; --fill: #f4f4f4;
    --margin: #0072b21a;
    --a0: #6d747c; --a1: #0072b2; --a2: #d55e00; --a3: #009e73; --a4: #b0558a; --a5: #b87f00; --a6: #3a9bd0; }
  body { font-size: 10pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  main { max-width: none; padding: 0; }
  .tall { max-height: none; }
  .scroll, .tall { overflow: visible; }
  th, td { white-space: normal; padding-right: .6rem; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; }
  figure, .rows > div, tr { break-inside: avoid; }
  h2 { break-after: avoid; }
  .pick:not(:checked) + label { display: none; }
}
)css";

}  // namespace cloze
