/** A chat: its messages, what runs in it, and the composer. */
import { useQuery } from "@tanstack/react-query";
import { chat } from "../api/queries.ts";
import { Failure, Skeleton } from "../ui/states.tsx";

export default function ChatScreen({ chatId }: { chatId: string }) {
  const query = useQuery(chat(chatId));
  if (query.error) return <Failure error={query.error} what="chat" onRetry={() => void query.refetch()} />;
  return (
    <main className="screen">
      {query.data ? <h1 className="screen-title">{query.data.title}</h1> : <Skeleton />}
    </main>
  );
}
