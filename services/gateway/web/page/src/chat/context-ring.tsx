/** How much of the model's window is in use. */
import { useQuery } from "@tanstack/react-query";
import { models } from "../api/queries.ts";
import type { Message } from "../api/types.ts";
import { count } from "../ui/format.ts";
import { Menu, MenuHeading } from "../ui/menu.tsx";
import { Ring } from "../ui/ring.tsx";

export function ContextRing({ messages, modelId }: { messages: readonly Message[]; modelId: string | null }) {
  const all = useQuery(models).data?.items ?? [];
  const last = messages.findLast((each) => each.role === "assistant" && each.usage);
  const usage = last?.usage;
  if (!usage) return null;
  const model = all.find((each) => each.id === (last.model_id ?? modelId));
  const limit = usage.context_limit_tokens ?? model?.effective_context_limit_tokens ?? 0;
  const used = usage.input_tokens + usage.output_tokens;
  const share = limit ? Math.min(1, used / limit) : 0;
  const threshold = model?.effective_compaction_threshold_percent ?? 0;
  const isNear = threshold > 0 && share * 100 >= threshold - 10;
  const percent = Math.round(share * 100);
  const words = limit ? `${percent} % of the window is in use` : `${count(used)} tokens are in use`;
  const rows: [string, string][] = [
    ["In use", limit ? `${count(used)} of ${count(limit)}` : count(used)],
    ["Input", count(usage.input_tokens)],
    ["from the cache", count(usage.cache_read_tokens)],
    ["Output", count(usage.output_tokens)],
    ["Summarized at", threshold === 100 ? "never" : threshold ? `${threshold} %` : "as set for all models"],
  ];
  return (
    <Menu
      label="Window of the model"
      button={(attributes) => (
        <button type="button" className="icon-button" aria-label={words} title={words} {...attributes}>
          <Ring share={share} look={isNear ? "near" : "ok"} />
        </button>
      )}
    >
      <MenuHeading>{words}</MenuHeading>
      <table className="figures">
        <tbody>
          {rows.map(([label, value]) => (
            <tr key={label}>
              <th scope="row">{label}</th>
              <td>{value}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Menu>
  );
}
