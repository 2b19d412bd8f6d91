// The summary panel.
import { familyOf, labelName } from "../viewer/content.js";
import { grouped, make, seconds } from "../viewer/dom.js";

function figure(value, name, alarming = false) {
  return make("div", { class: alarming ? "figure alarming" : "figure" }, make("b", {}, value), make("span", {}, name));
}

/** A titled list of bars, largest first; null without entries. */
function bars(title, counts, show, family) {
  const entries = Object.entries(counts).sort((a, b) => b[1] - a[1]);
  if (!entries.length) return null;
  const rows = entries.map(([name, value]) => {
    const bar = make("i", { "aria-hidden": "true" });
    bar.style.width = `${Math.max(1, (value / entries[0][1]) * 100)}%`;
    return make(
      "div",
      { class: "bar-row", "data-family": family(name) },
      make("dt", {}, labelName(name)),
      make("dd", {}, make("span", { class: "track" }, bar), make("span", { class: "value" }, show(value))),
    );
  });
  return make("div", { class: "bars" }, make("h2", {}, title), make("dl", {}, ...rows));
}

export function fillSummary(panel, summary) {
  const took = summary.finished ? (new Date(summary.finished) - new Date(summary.started)) / 1000 : null;
  const figures = make(
    "div",
    { class: "figures" },
    figure(grouped(summary.pages), "pages"),
    figure(grouped(summary.failed), "failed", summary.failed > 0),
    figure(grouped(summary.review ?? 0), "to review", summary.review > 0),
    figure(grouped(summary.documents), "documents"),
    figure(grouped(summary.regions), "regions"),
    figure(grouped(summary.crops), "crops"),
    took > 0 ? figure(seconds(took), "from start to end") : null,
    took > 0 ? figure((summary.pages / took).toFixed(2), "pages a second") : null,
  );
  panel.replaceChildren(
    ...[
      figures,
      make(
        "div",
        { class: "columns" },
        bars("Regions by label", summary.regions_by_label, grouped, familyOf),
        bars("Seconds by stage, all pages together", summary.seconds_by_stage, seconds, () => "text"),
        bars("Failed pages by kind", summary.failures_by_kind, grouped, () => "alarm"),
        bars("Warnings by kind", summary.warnings_by_kind, grouped, () => "caption"),
      ),
      make(
        "p",
        { class: "fine" },
        `${summary.interrupted ? "Interrupted. " : ""}Started ${new Date(summary.started).toLocaleString()}, pagemill ${summary.version}.`,
      ),
    ],
  );
}
