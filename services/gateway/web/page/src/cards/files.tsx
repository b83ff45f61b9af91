import { opensBy, useDisplayMode } from "../display/modes.ts";
import { plural } from "../ui/format.ts";
import { Visible } from "../ui/visible.tsx";
import type { Call } from "../timeline/items.ts";
import { Card } from "./card.tsx";
import { Diff } from "./diff.tsx";
import { Problem } from "./execute.tsx";
import { argsOf, type CardProps, record, type Standing, string } from "./outcome.ts";

interface Changed {
  path: string;
  change: string;
  added: number;
  deleted: number;
  diff: string;
}

function changedOf(told: Record<string, unknown>): Changed[] {
  const files = Array.isArray(told.files) ? told.files : told.path ? [told] : [];
  return files.map(record).map((each) => ({
    path: string(each.path),
    change: string(each.change),
    added: Number(each.added_lines ?? 0),
    deleted: Number(each.deleted_lines ?? 0),
    diff: string(each.diff),
  }));
}

const VERBS: Record<string, string> = { write_file: "Write", edit_files: "Edit", apply_patch: "Patch" };

/** Changes of files, as differences. */
export function ChangeCard({ call, result, standing }: CardProps) {
  const args = argsOf(call);
  const told = record(result?.result);
  const changed = changedOf(told);
  const asked = Array.isArray(args.files)
    ? args.files.map((each) => string(record(each).path))
    : [string(args.path)];
  const paths = changed.length ? changed.map((each) => each.path) : asked.filter(Boolean);
  const added = changed.reduce((sum, each) => sum + each.added, 0);
  const deleted = changed.reduce((sum, each) => sum + each.deleted, 0);
  const mode = useDisplayMode("changes");
  return (
    <Card
      icon="edit"
      standing={standing}
      isOpen={opensBy(mode, standing === "failed" || changed.length > 1)}
      label={
        <>
          {VERBS[call.tool_name] ?? "Change"}{" "}
          <code>
            <Visible>{paths.length > 1 ? plural(paths.length, "file") : (paths[0] ?? "…")}</Visible>
          </code>
        </>
      }
      facts={
        changed.length > 0 && (
          <>
            <span className="lines-added">+{added}</span>
            <span className="lines-deleted">−{deleted}</span>
          </>
        )
      }
    >
      {standing === "failed" && <p className="card-problem">Nothing was changed.</p>}
      <Problem told={told} />
      {(Array.isArray(told.problems) ? told.problems : []).map((each, index) => (
        <p key={index} className="card-problem">{string(record(each).error ?? each)}</p>
      ))}
      {changed.map((each) => (
        <section key={each.path} className="changed-file">
          {changed.length > 1 && (
            <h4>
              <Visible>{each.path}</Visible> <span className="card-note">{each.change}</span>
            </h4>
          )}
          {each.diff && <Diff diff={each.diff} label={`Changes of ${each.path}`} />}
        </section>
      ))}
      {!result && call.tool_name === "write_file" && <pre className="terminal-output">{string(args.content)}</pre>}
    </Card>
  );
}

const LOOKED: Record<string, (args: Record<string, unknown>) => string> = {
  read_file: (args) => `Read ${string(args.path)}`,
  list_files: (args) => `List ${string(args.path) || "."}`,
  find_files: (args) => `Find ${string(args.query)}`,
  search_files: (args) => `Search for ${string(args.pattern)}`,
};

export function lookLabel(call: Call["call"]): string {
  return (LOOKED[call.tool_name] ?? (() => call.tool_name))(argsOf(call));
}

/** What a look found, as text. */
function found(told: Record<string, unknown>): string {
  if (typeof told.content === "string") return told.content;
  const listed = told.results ?? told.entries ?? told.files;
  if (Array.isArray(listed)) return listed.map((each) => string(each)).join("\n");
  return told.error ? "" : JSON.stringify(told, null, 2);
}

export function LookCard({ call, result, standing }: CardProps) {
  const told = record(result?.result);
  return (
    <Card icon="search" standing={standing} label={<Visible>{lookLabel(call)}</Visible>} isOpen={standing === "failed"}>
      {result && (
        <>
          <Problem told={told} />
          {found(told) && <pre className="terminal-output" tabIndex={0}>{found(told)}</pre>}
        </>
      )}
    </Card>
  );
}

/** Several looks in a row, as one. */
export function LooksCard({ calls, standing }: { calls: readonly Call[]; standing: (call: Call) => Standing }) {
  const standings = calls.map(standing);
  const whole = standings.includes("running") ? "running" : standings.includes("failed") ? "failed" : "done";
  return (
    <Card icon="search" standing={whole} label={`Looked at ${plural(calls.length, "place")}`}>
      <ul className="looks">
        {calls.map((each) => (
          <li key={each.key}>
            <LookCard call={each.call} result={each.result} standing={standing(each)} />
          </li>
        ))}
      </ul>
    </Card>
  );
}
