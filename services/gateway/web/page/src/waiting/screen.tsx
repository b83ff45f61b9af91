/** Everything that waits for the signed-in person, across all chats. */
import "../cards/cards.css";
import "../timeline/timeline.css";
import "./waiting.css";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { actions } from "../api/queries.ts";
import { ActionCard } from "../cards/actions.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { ScreenHead } from "../shell/screen-head.tsx";
import { ago } from "../ui/format.ts";
import { Empty } from "../ui/states.tsx";

export default function WaitingScreen() {
  return (
    <main className="screen">
      <ScreenHead title="What waits for you" />
      <Loaded query={useQuery(actions)} what="list">
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="Nothing waits for you">
              Questions, plans and approvals of your chats appear here. <Link href="/">Begin a chat</Link>, or choose one of the list.
            </Empty>
          ) : (
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
    </main>
  );
}
