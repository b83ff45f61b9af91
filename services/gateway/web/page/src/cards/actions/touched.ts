/** What a call would touch, as far as its arguments say it. */
import { record, string } from "../outcome.ts";

export interface Touched {
  what: string;
  names: readonly string[];
}

const PATCHED = /^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$/gm;

function filesOf(args: Record<string, unknown>): string[] {
  const patched = [...string(args.patch).matchAll(PATCHED)].map((each) => each[1] ?? "");
  const edited = Array.isArray(args.files) ? args.files.map((each) => string(record(each).path)) : [];
  return [...new Set([string(args.path), ...edited, ...patched].filter(Boolean))];
}

function named(what: string, names: readonly string[]): Touched | null {
  return names.length > 0 ? { what, names } : null;
}

/** Return what a call would touch; nothing for tools whose arguments do not say it. */
export function touchedBy(tool: string, args: Record<string, unknown>): Touched | null {
  switch (tool) {
    case "execute":
      return args.workdir ? { what: "It runs in", names: [string(args.workdir)] } : { what: "It runs in the workspace", names: [] };
    case "write_file":
    case "edit_files":
    case "apply_patch":
    case "undo_edit":
      return named("It changes", filesOf(args));
    case "process_write":
    case "process_signal":
      return { what: "It reaches the process", names: [string(args.process_id)] };
    default: {
      const [server, name] = tool.split("__", 2);
      return server && name ? { what: "It calls the server", names: [server] } : null;
    }
  }
}
