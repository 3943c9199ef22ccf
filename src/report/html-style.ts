/**
 * The style of the report as one page: light and dark by what the reader's system prefers.
 *
 * Colours of series are told apart by people who see red and green alike (Okabe and Ito), and each
 * is named in a legend and in a table.
 */
export const STYLE = `
:root { color-scheme: light dark; --back: #fff; --fore: #1c1e21; --soft: #5c6370; --rule: #d9dce1;
  --row: #f4f5f7; --passed: #56a3d9; --delayed: #e69f00; --rejected: #d55e00; --exhausted: #a8437f;
  --dry-delayed: #c9b458; --dry-rejected: #8c8c8c; --other: #009e73; --nodes: #0072b2; }
@media screen and (prefers-color-scheme: dark) { :root { --back: #16181c; --fore: #e4e6ea; --soft: #9aa1ad;
  --rule: #353a42; --row: #1f2329; --passed: #56b4e9; --exhausted: #cc79a7; --rejected: #f07a2c;
  --nodes: #6cb6ff; --other: #2fc99b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 76rem; background: var(--back);
  color: var(--fore); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
p { margin: .4rem 0; } a { color: inherit; } .soft, .unit, caption { color: var(--soft); }
code, .key { font-family: ui-monospace, monospace; font-size: .92em;
  overflow-wrap: break-word; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: .2rem 0; }
th, td { padding: .2rem .7rem .2rem 0; text-align: left; vertical-align: top; font-weight: normal;
  max-width: 34rem; border-bottom: 1px solid var(--rule); }
thead th { color: var(--soft); vertical-align: bottom; }  tbody tr:hover { background: var(--row); }
.n { text-align: right; } td.n, .t { white-space: nowrap; } .wide, figure { overflow-x: auto; }
figure { margin: .8rem 0; } figcaption { font-weight: 600; } figcaption .unit { font-weight: normal; }
figure > svg { display: block; width: 100%; height: auto; max-width: 60rem; }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif; } svg text.y { text-anchor: end; }
svg path { fill: none; } .grid { stroke: var(--rule); } .hit { fill: transparent; }
.hit:hover { fill: var(--fore); fill-opacity: .12; }
.line { stroke-width: 1.8; } .level { stroke-width: 1.4; stroke-dasharray: 5 4; }
.mark { stroke: var(--soft); stroke-dasharray: 2 3; }
.legend { list-style: none; margin: .2rem 0; padding: 0; display: flex; flex-wrap: wrap; gap: .1rem 1rem;
  font-size: .85rem; } .legend svg { width: 14px; height: 10px; }
.bar.s-passed { fill: var(--passed); } .bar.s-delayed { fill: var(--delayed); }
.bar.s-rejected { fill: var(--rejected); } .bar.s-exhausted { fill: var(--exhausted); }
.bar.s-dry-delayed { fill: var(--dry-delayed); } .bar.s-dry-rejected { fill: var(--dry-rejected); }
.bar.s-other { fill: var(--other); } .bar.s-nodes { fill: var(--nodes); }
.line.s-excess, .line.s-nodes { stroke: var(--nodes); } .level.s-burst { stroke: var(--rejected); }
.level.s-delay { stroke: var(--delayed); } .level.s-capacity { stroke: var(--soft); }
summary { cursor: pointer; color: var(--soft); } details > summary:focus-visible, a:focus-visible {
  outline: 2px solid var(--nodes); outline-offset: 2px; }
.verdict { font-weight: 600; } footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
@media screen and (max-width: 40rem) { td:not(.n, .t) { min-width: 8rem; }
  figure > svg { min-width: 42rem; } }
@media print { :root { color-scheme: light; } body { padding: 0; font-size: 12px; } .hit { display: none; }
  .wide, figure { overflow: visible; } table { font-size: 11px; }
  th, td { padding-right: .35rem; overflow-wrap: break-word; }
  figure, tr { break-inside: avoid; } h2, h3 { break-after: avoid; }
  details:not([open]) { display: none; } * { print-color-adjust: exact; } }
`;
