/** A value as a tree whose branches open and close; long lists show their beginning. */
import { Visible } from "../ui/visible.tsx";

const ENTRIES_MAX = 200;
const DEPTH_MAX = 30;
const TEXT_MAX = 20_000;

export function JsonTree({ value, name, depth = 0 }: { value: unknown; name?: string; depth?: number }) {
  const label = name === undefined ? null : <span className="json-key"><Visible>{name}</Visible>: </span>;
  if (value === null || typeof value !== "object" || depth > DEPTH_MAX) {
    return (
      <div className="json-leaf">
        {label}
        <Visible>{(depth > DEPTH_MAX ? "…" : (JSON.stringify(value) ?? "")).slice(0, TEXT_MAX)}</Visible>
      </div>
    );
  }
  const entries = Object.entries(value);
  const kind = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  return (
    <details className="json-branch" open={depth < 2}>
      <summary>
        {label}
        <span className="card-note">{kind}</span>
      </summary>
      <div className="json-entries">
        {entries.slice(0, ENTRIES_MAX).map(([key, each]) => (
          <JsonTree key={key} name={key} value={each} depth={depth + 1} />
        ))}
        {entries.length > ENTRIES_MAX && <p className="card-note">{entries.length - ENTRIES_MAX} more</p>}
      </div>
    </details>
  );
}
