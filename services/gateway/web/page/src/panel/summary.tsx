/** What the chat is about, and what it cost with the chats below it. */
import { useQuery } from "@tanstack/react-query";
import { chatUsage } from "../api/queries.ts";
import { Loaded } from "../forms/loaded.tsx";
import { UsageTotals } from "../usage/totals.tsx";
import type { TabProps } from "./panel.tsx";

export default function Summary({ chat }: TabProps) {
  return (
    <>
      <div className="panel-part">
        <p>{chat.summary || chat.last_turn_summary || "There is no summary yet. A few turns make one."}</p>
      </div>
      <Loaded query={useQuery(chatUsage(chat.id))} what="usage">
        {(data) => (
          <div className="panel-part">
            <UsageTotals totals={data.totals} />
          </div>
        )}
      </Loaded>
    </>
  );
}
