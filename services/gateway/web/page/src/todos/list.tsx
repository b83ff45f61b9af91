/** The to-do list of a chat above its composer, while something in it is left to do. */
import { useQuery } from "@tanstack/react-query";
import { memo, useMemo } from "react";
import { todos as todosQuery } from "../api/queries.ts";
import type { ChatState } from "../stream/chat-state.ts";
import { Visible } from "../ui/visible.tsx";
import { isOpen, loadedTodos, type Todo } from "./todos.ts";

const MARKS: Record<string, [mark: string, words: string]> = {
  pending: ["○", "to do"],
  in_progress: ["◐", "in progress"],
  done: ["●", "done"],
  cancelled: ["–", "cancelled"],
};

export function Todos({ todos }: { todos: readonly Todo[] }) {
  return (
    <ul className="todos">
      {todos.map((each) => {
        const [mark, words] = MARKS[each.status ?? ""] ?? MARKS.pending!;
        return (
          <li key={each.id} className={`todo is-${each.status}`}>
            <span aria-hidden="true">{mark}</span>
            <span className="visually-hidden">{words}:</span> <Visible>{each.text}</Visible>
          </li>
        );
      })}
    </ul>
  );
}

type SectionProps = { chatId: string } & Pick<ChatState, "messages" | "gapAfter" | "hasOlder">;

export const TodoSection = memo(function TodoSection({ chatId, messages, gapAfter, hasOlder }: SectionProps) {
  const loaded = useMemo(() => loadedTodos({ messages, gapAfter, hasOlder }), [messages, gapAfter, hasOlder]);
  const { data } = useQuery({ ...todosQuery(chatId), enabled: loaded === null });
  const shown = loaded ?? data?.items ?? [];
  const left = shown.filter(isOpen).length;
  if (left === 0) return null;
  const current = shown.find((each) => each.status === "in_progress");
  return (
    <details className="todo-section">
      <summary>
        {shown.length - left} of {shown.length} done
        {current && <span className="card-note"> <Visible>{current.text}</Visible></span>}
      </summary>
      <Todos todos={shown} />
    </details>
  );
});
