/** Everything that waits for the signed-in person, across all chats. */
import "../cards/cards.css";
import "../timeline/timeline.css";
import "./waiting.css";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { actions } from "../api/queries.ts";
import { ActionCard } from "../cards/actions.tsx";
import { ago } from "../ui/format.ts";
import { Empty, Failure, Skeleton } from "../ui/states.tsx";

export default function WaitingScreen() {
  const query = useQuery(actions);
  if (query.error) return <Failure error={query.error} what="list" onRetry={() => void query.refetch()} />;
  if (!query.data) return <main className="screen"><Skeleton /></main>;
  if (query.data.items.length === 0) {
    return (
      <main className="screen">
        <Empty title="Nothing waits for you">Questions, plans and approvals of your chats appear here.</Empty>
      </main>
    );
  }
  return (
    <main className="screen">
      <h1 className="screen-title">What waits for you</h1>
      <ul className="waiting-list">
        {query.data.items.map((each) => (
          <li key={each.id}>
            <p className="waiting-chat">
              <Link href={`/chats/${each.chat_id}`}>{each.chat_title || "A chat"}</Link>
              {each.asked_at && <span className="card-note"> {ago(each.asked_at, Date.now())}</span>}
            </p>
            <ActionCard action={each} />
          </li>
        ))}
      </ul>
    </main>
  );
}
