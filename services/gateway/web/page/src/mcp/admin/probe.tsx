/** How far the contact with an MCP server went. */
import type { components } from "../../api/schema.d.ts";
import { duration, plural } from "../../ui/format.ts";
import { Visible } from "../../ui/visible.tsx";
import { reasonWords } from "./words.ts";

export type Probe = components["schemas"]["ProbeServerResponse"];

const PHASES: Record<string, string> = {
  resolve: "Find its address",
  connect: "Connect",
  tls: "Check its certificate",
  authorization: "Authorize",
  handshake: "Agree on the protocol",
  list_tools: "List its tools",
};

export function ProbeResult({ probe }: { probe: Probe | "running" }) {
  if (probe === "running") return <p className="card-note" role="status">Contacting the server…</p>;
  return (
    <div role="status">
      <ol className="key-list" aria-label="Phases of the contact">
        {probe.phases.map((phase) => (
          <li key={phase.kind}>
            {PHASES[phase.kind ?? ""] ?? phase.kind} <span className="card-note">{duration(phase.duration_ms)}</span>{" "}
            {phase.reason ? <span className="badge is-bad">{reasonWords(phase.reason).words}</span> : <span className="badge is-accent">Done</span>}{" "}
            {phase.reason && reasonWords(phase.reason).remedy}
            {phase.detail && <span className="cell-side"><Visible>{phase.detail}</Visible></span>}
          </li>
        ))}
      </ol>
      {probe.state === "ready" && (
        <p className="field-hint">
          It speaks {probe.protocol_version} and offers {plural(probe.tool_names.length, "tool")}.
        </p>
      )}
    </div>
  );
}
