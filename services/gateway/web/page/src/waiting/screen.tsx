/** Everything that waits for the signed-in person, across all chats. */
import "../cards/cards.css";
import "../timeline/timeline.css";
import "./waiting.css";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { actions, unknownOutcomes } from "../api/queries.ts";
import { ActionCard } from "../cards/actions/card.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { ScreenHead } from "../shell/screen-head.tsx";
import { ago } from "../ui/format.ts";
import { Empty } from "../ui/states.tsx";
import { UnknownOutcomes } from "./unknown-outcomes.tsx";

/** What waits, and the calls that may have run; either may be read without the other. */
export default function WaitingScreen() {
  const asked = useQuery({ ...actions, staleTime: 0 });
  const unknown = useQuery({ ...unknownOutcomes, staleTime: 0 });
  const readBoth = () => Promise.all([asked.refetch(), unknown.refetch()]);
  const isEmpty = asked.data?.items.length === 0 && unknown.data?.items.length === 0;
  return (
    <main className="screen">
      <ScreenHead title="What waits for you" />
      {isEmpty && (
        <Empty title="Nothing waits for you">
          Questions, plans and approvals of your chats appear here, and calls whose outcome is unknown. <Link href="/">Begin a chat</Link>, or choose one of the list.
        </Empty>
      )}
      <Loaded query={{ ...asked, refetch: readBoth }} what="list">
        {({ items }) =>
          items.length > 0 && (
            <ul className="waiting-list">
              {items.map((each) => (
                <li key={each.id}>
                  <p className="waiting-chat">
                    <Link href={`/chats/${each.chat_id}`}>{each.chat_title || "A chat"}</Link>
                    {each.asked_at && <span className="card-note"> {ago(each.asked_at, Date.now())}</span>}
                  </p>
                  <ActionCard action={each} />
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      {asked.data && (
        <Loaded query={unknown} what="list of calls that may have run">
          {({ items }) => items.length > 0 && <UnknownOutcomes outcomes={items} />}
        </Loaded>
      )}
    </main>
  );
}
