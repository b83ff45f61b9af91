/** What the chat is about, and what it cost with the chats below it. */
import { useQuery } from "@tanstack/react-query";
import { Fragment } from "react";
import { models } from "../api/queries.ts";
import { Loaded } from "../forms/loaded.tsx";
import { modelLabel } from "../models/model-label.ts";
import { Visible } from "../ui/visible.tsx";
import { useIsReader } from "../sharing/owner.ts";
import { useChatUsage } from "../usage/queries.ts";
import { UsageTotals } from "../usage/totals.tsx";
import type { TabProps } from "./panel.tsx";

export default function Summary({ chat }: TabProps) {
  const known = useQuery(models).data?.items ?? [];
  const model = known.find((each) => each.id === chat.model_id);
  const day = (time: string): string => new Date(time).toLocaleDateString(undefined, { dateStyle: "medium" });
  const facts: [string, string][] = [
    ["Model", model ? modelLabel(model, known) : chat.model_id ? "one that is no longer there" : "as set for all chats"],
    ...(chat.created_at ? [["Begun", day(chat.created_at)] as [string, string]] : []),
    ...(chat.archives_at ? [["Archived", `on ${day(chat.archives_at)} unless it is used`] as [string, string]] : []),
    ...(chat.purges_at ? [["Deleted", `on ${day(chat.purges_at)} unless it is taken back`] as [string, string]] : []),
  ];
  return (
    <>
      <div className="panel-part">
        {chat.summary || chat.last_turn_summary ? (
          <p>{chat.summary || chat.last_turn_summary}</p>
        ) : (
          <p className="panel-note">There is no summary yet. A few turns make one.</p>
        )}
        <dl className="facts">
          {facts.map(([name, value]) => (
            <Fragment key={name}>
              <dt>{name}</dt>
              <dd><Visible>{value}</Visible></dd>
            </Fragment>
          ))}
        </dl>
      </div>
      {!useIsReader(chat) && <Used chat={chat} />}
    </>
  );
}

function Used({ chat }: TabProps) {
  return (
    <Loaded query={useChatUsage(chat)} what="usage">
      {(data) => (
        <div className="panel-part">
          <UsageTotals totals={data.totals} />
        </div>
      )}
    </Loaded>
  );
}
