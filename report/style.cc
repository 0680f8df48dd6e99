#include "report/style.h"

namespace assay::report {
namespace {

constexpr Literal kSheet = R"css(
:root {
  color-scheme: light dark;
  --paper: #faf9f6; --card: #ffffff; --ink: #1f1e1b; --soft: #62605a; --line: #e1ded6; --code: #f6f4ef;
  --good: #17713f; --bad: #b3241c; --warn: #8a5800; --info: #2a5caa;
  --good-wash: #e6f2ea; --bad-wash: #fbe9e6; --warn-wash: #f8efdc; --info-wash: #e8eef8;
  --k: #7a3e9d; --t: #21618c; --d: #9a4a00; --m: #1d6f5f; --s: #4c7a15; --c: #767269; --p: #8a2f62;
  --mono: ui-monospace, "SF Mono", "Cascadia Code", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Helvetica, Arial, sans-serif;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #161614; --card: #1e1e1b; --ink: #e8e5de; --soft: #a8a398; --line: #36342f; --code: #1a1a18;
    --good: #63c28a; --bad: #f08a7e; --warn: #dfb055; --info: #86b2ee;
    --good-wash: #1b2b21; --bad-wash: #362120; --warn-wash: #30281a; --info-wash: #1d2735;
    --k: #c79be4; --t: #84bde6; --d: #e6a468; --m: #74cbb6; --s: #a4cc6f; --c: #918c81; --p: #e59bc4;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; scroll-padding-top: 1rem; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.55 var(--sans); overflow-wrap: anywhere; }
main, header, footer, nav { max-width: 62rem; margin-inline: auto; padding-inline: clamp(1rem, 4vw, 2.5rem); }
header { padding-top: clamp(1.5rem, 5vw, 3.5rem); }
footer { padding-block: 2rem 3rem; color: var(--soft); font-size: .875rem; }
h1 { font-size: clamp(1.6rem, 5vw, 2.4rem); line-height: 1.15; letter-spacing: -.02em; margin: .2rem 0 .5rem; font-weight: 680; }
h2 { font-size: 1.3rem; letter-spacing: -.01em; margin: 3rem 0 .75rem; font-weight: 650; }
h3 { font-size: 1.05rem; margin: 0; font-weight: 650; } section > h3 { margin-top: 1.75rem; }
h4 { font-size: 1rem; margin: 0 0 .35rem; font-weight: 650; line-height: 1.4; }
p { margin: .5rem 0; max-width: 46rem; }
a { color: var(--info); text-underline-offset: .15em; }
code, pre, .mono { font-family: var(--mono); font-size: .84em; font-variant-ligatures: none; }
.eyebrow { color: var(--soft); font-size: .85rem; margin: 0; }
.soft { color: var(--soft); }
.small { font-size: .875rem; }
.cut { color: var(--soft); font-style: italic; font-size: .875rem; }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: .75rem 0; margin: 1.75rem 0 0; border-block: 1px solid var(--line); font-size: .9rem; }

.verdict { border-left: .3rem solid var(--tone); background: var(--wash); padding: 1rem 1.25rem; border-radius: 0 .5rem .5rem 0; margin-top: 1.25rem; }
.verdict strong { display: block; font-size: 1.35rem; letter-spacing: -.01em; color: var(--tone); }
.verdict p { margin: .25rem 0 0; }
.accepted { --tone: var(--good); --wash: var(--good-wash); }
.refuted { --tone: var(--bad); --wash: var(--bad-wash); }
.inconclusive { --tone: var(--warn); --wash: var(--warn-wash); }
.pending { --tone: var(--soft); --wash: var(--code); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.5rem, 1fr)); gap: 1rem 1.25rem; margin: 1.5rem 0 0; }
.figures div { border-top: 1px solid var(--line); padding-top: .5rem; }
.figures dt { color: var(--soft); font-size: .82rem; }
.figures dd { margin: 0; font-size: 1.15rem; font-variant-numeric: tabular-nums; font-weight: 600; line-height: 1.3; }
.figures dd small { display: block; font-weight: 400; font-size: .8rem; color: var(--soft); }

.tag { display: inline-block; font-size: .8rem; font-weight: 600; line-height: 1.5; padding: 0 .55rem; border-radius: 1rem; color: var(--tone); background: var(--wash); max-width: 100%; }
th .tag, td .tag { white-space: nowrap; }
.timeline { list-style: none; margin: 0; padding: 0; }
.timeline > li { position: relative; padding: 0 0 2.25rem 2rem; }
.timeline > li::before { content: ""; position: absolute; left: .36rem; top: .5rem; width: .8rem; height: .8rem; border-radius: 50%; background: var(--tone, var(--soft)); box-shadow: 0 0 0 .25rem var(--paper); z-index: 1; }
.timeline > li::after { content: ""; position: absolute; left: .72rem; top: .6rem; bottom: -.5rem; width: 1px; background: var(--line); }
.timeline > li:last-child::after { display: none; }
.timeline > li > .top { display: flex; flex-wrap: wrap; align-items: baseline; gap: .25rem .75rem; }
.timeline .facts { color: var(--soft); font-size: .875rem; margin: .1rem 0 .6rem; }
.gates { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem; padding: 0; margin: .6rem 0; font-size: .8rem; }
.gates li { padding: .05rem .5rem; border: 1px solid var(--line); border-radius: .3rem; color: var(--soft); background: var(--card); max-width: 100%; }
.gates li::before { content: attr(data-mark) " "; font-weight: 700; }
.gates .passed::before { color: var(--good); }
.gates .refuted { border-color: var(--bad); color: var(--bad); background: var(--bad-wash); }
.gates .inconclusive { border-color: var(--warn); color: var(--warn); background: var(--warn-wash); }
.gates .skipped { border-style: dashed; background: none; }

.card { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem 1.15rem; margin: .9rem 0; }
.card > :last-child { margin-bottom: 0; }
.card .kind { color: var(--bad); font-size: .82rem; font-weight: 600; margin: 0 0 .15rem; }
.card .missing { border-left: 3px solid var(--bad); padding-left: .75rem; }
.beside { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1rem; }
@media (min-width: 52rem) { .beside.drawn { grid-template-columns: minmax(0, 1fr) 21rem; } }
.facts-list { display: grid; grid-template-columns: fit-content(14rem) minmax(0, 1fr); gap: .1rem 1rem; margin: .6rem 0; font-size: .9rem; }
.facts-list dt { color: var(--soft); }
.facts-list dd { margin: 0; font-variant-numeric: tabular-nums; }
details { margin: .6rem 0; }
summary { cursor: pointer; color: var(--info); font-size: .9rem; padding: .15rem 0; }
summary .soft { font-weight: 400; }
.plus { color: var(--good); font-variant-numeric: tabular-nums; } .minus { color: var(--bad); font-variant-numeric: tabular-nums; }

pre.code { margin: .5rem 0; background: var(--code); border: 1px solid var(--line); border-radius: .4rem; overflow-x: auto; font-size: .78rem; line-height: 1.55; padding: .5rem 0; overflow-wrap: normal; }
pre.code code { display: block; width: max-content; min-width: 100%; font-size: inherit; }
pre.code span { display: block; padding: 0 1rem 0 4.1rem; position: relative; min-height: 1.55em; white-space: pre; }
pre.code span::before { content: attr(data-n); position: absolute; left: 0; width: 3.1rem; text-align: right; color: var(--c); user-select: none; }
pre.code i { font-style: normal; }
.k { color: var(--k); } .t { color: var(--t); } .d { color: var(--d); } .m { color: var(--m); } .s { color: var(--s); } .c { color: var(--c); } .p { color: var(--p); }
pre.code .gap { color: var(--c); font-style: italic; }
pre.code .guilty { background: var(--bad-wash); box-shadow: inset 3px 0 var(--bad); }
pre.code .other { background: var(--warn-wash); box-shadow: inset 3px 0 var(--warn); }
pre.code .origin { background: var(--info-wash); box-shadow: inset 3px 0 var(--info); }
pre.code .unreached { background: var(--warn-wash); box-shadow: inset 3px 0 var(--warn); }
pre.code .note { font-family: var(--sans); font-size: .78rem; white-space: pre; }
pre.code .note::before { content: "▴"; }
pre.code .note.guilty { color: var(--bad); } pre.code .note.other, pre.code .note.unreached { color: var(--warn); } pre.code .note.origin { color: var(--info); }
pre.code .added { background: var(--good-wash); } pre.code .removed { background: var(--bad-wash); }
pre.code .added::before { color: var(--good); } pre.code .removed::before { color: var(--bad); }

.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 17.5rem), 1fr)); gap: 1.5rem; margin: 1rem 0; }
figure { margin: 0; min-width: 0; }
figcaption { font-size: .85rem; color: var(--soft); margin-top: .35rem; line-height: 1.45; }
figcaption b { color: var(--ink); font-weight: 600; }
.drawing { display: block; width: 100%; max-width: 26rem; height: auto; }
.drawing text { font-family: var(--sans); font-size: 11px; fill: var(--soft); font-variant-numeric: tabular-nums; }
.drawing .strong { fill: var(--ink); font-weight: 600; } .drawing .bad-text { fill: var(--bad); font-weight: 600; } .drawing .warn-text { fill: var(--warn); font-weight: 600; }
.drawing .middle { text-anchor: middle; } .drawing .end { text-anchor: end; }
.axis { stroke: var(--soft); stroke-width: 1; } .grid { stroke: var(--line); stroke-width: 1; }
.life { stroke: var(--soft); stroke-width: 1.5; } .barrier { stroke: var(--info); stroke-width: 2; } .missing-edge { stroke: var(--bad); stroke-width: 2; stroke-dasharray: 5 4; }
.limit { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 4 3; } .curve { stroke: var(--info); stroke-width: 2; fill: none; } .reference { stroke: var(--soft); stroke-width: 1.5; stroke-dasharray: 4 3; fill: none; }
.fill-info { fill: var(--info); } .fill-bad { fill: var(--bad); } .fill-warn { fill: var(--warn); } .fill-good { fill: var(--good); } .fill-soft { fill: var(--soft); }
.fill-paper { fill: var(--card); stroke: var(--line); } .fill-track { fill: var(--line); } .frame { fill: none; stroke: var(--line); }
.h1 { fill: var(--info); fill-opacity: .18; } .h2 { fill: var(--info); fill-opacity: .42; } .h3 { fill: var(--info); fill-opacity: .78; }
.h4 { fill: var(--bad); fill-opacity: .5; } .h5 { fill: var(--bad); fill-opacity: .75; } .h6 { fill: var(--bad); }

.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; width: 100%; margin: .5rem 0; }
th, td { text-align: left; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: break-word; }
th { font-weight: 600; color: var(--soft); font-size: .82rem; white-space: nowrap; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td:last-child, th:last-child { padding-right: 0; }
td .drawing { min-width: 7rem; max-width: 16rem; margin-top: .3rem; } td + td.n, th + th.n { padding-left: .5rem; }
td.cell { background: var(--wash); color: var(--tone); font-weight: 600; padding-inline: .6rem; white-space: nowrap; }
.matrix td.cell { text-align: center; padding-inline: .3rem; border-left: 2px solid var(--paper); } .matrix thead th { vertical-align: bottom; } .matrix th.gate { writing-mode: vertical-rl; transform: rotate(180deg); padding: .5rem .2rem; border: 0; text-align: left; width: 2.4rem; }
.matrix td + td.n { padding-right: 1rem; } .matrix tbody th { white-space: nowrap; color: var(--ink); font-weight: 500; padding-right: 1rem; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: .82rem; color: var(--soft); }
.key { display: inline-block; width: .7rem; height: .7rem; border-radius: .15rem; margin-right: .35rem; vertical-align: -.05rem; background: var(--soft); }
.key.info { background: var(--info); } .key.good { background: var(--good); } .key.warn { background: var(--warn); } .key.bad { background: var(--bad); } .key.track { background: var(--line); }

@media (max-width: 40rem) {
  .timeline > li { padding-left: 1.5rem; } .timeline > li::before { left: 0; } .timeline > li::after { left: .38rem; }
  .card { padding: .8rem .85rem; } .verdict { padding: .85rem 1rem; }
  pre.code { font-size: .74rem; } pre.code span { padding-left: 3.2rem; } pre.code span::before { width: 2.4rem; }
  .matrix tbody th { white-space: normal; overflow-wrap: anywhere; min-width: 8rem; padding-right: .5rem; }
  .facts-list { grid-template-columns: minmax(0, 1fr); gap: 0; } .facts-list dd { margin-bottom: .4rem; }
}
@media print {
  @page { margin: 16mm 14mm; }
  :root { --paper: #fff; --card: #fff; --code: #fff; }
  body { font-size: 10pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  main, header, footer, nav { max-width: none; padding-inline: 0; }
  nav, .no-print { display: none; }
  details::details-content { content-visibility: visible; height: auto; }
  h2, h3, h4, summary { break-after: avoid; } figure, .figures div, tr { break-inside: avoid; }
  pre.code { white-space: pre-wrap; overflow: visible; } pre.code code { width: auto; } pre.code span { white-space: pre-wrap; break-inside: avoid; }
  a { color: inherit; text-decoration: none; }
}
)css";

}  // namespace

Html PageHead(std::string_view title) {
  Html head = Open("meta", {{"charset", "utf-8"}});
  head += Open("meta", {{"http-equiv", "Content-Security-Policy"},
                        {"content", "default-src 'none'; style-src 'unsafe-inline'"}});
  head += Open("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  head += Open("meta", {{"name", "color-scheme"}, {"content", "light dark"}});
  head += Open("meta", {{"name", "referrer"}, {"content", "no-referrer"}});
  head += E("title", {}, title);
  head += Style(kSheet);
  return head;
}

}  // namespace assay::report
