/** Everything that waits for the signed-in person, across all chats. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { actions } from "../api/queries.ts";
import { Empty, Failure, Skeleton } from "../ui/states.tsx";

export default function WaitingScreen() {
  const query = useQuery(actions);
  if (query.error) return <Failure error={query.error} what="list" onRetry={() => void query.refetch()} />;
  if (!query.data) return <Skeleton />;
  if (query.data.items.length === 0) {
    return <Empty title="Nothing waits for you">Questions, plans and approvals of your chats appear here.</Empty>;
  }
  return (
    <main className="screen">
      <h1 className="screen-title">What waits for you</h1>
      <ul>
        {query.data.items.map((each) => (
          <li key={each.id}>
            <Link href={`/chats/${each.chat_id}`}>{each.chat_title ?? "A chat"}</Link>: {each.tool_name}
          </li>
        ))}
      </ul>
    </main>
  );
}
