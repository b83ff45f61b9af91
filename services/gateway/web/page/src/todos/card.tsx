/** A change of the to-do list, with the list after it. */
import { Todos } from "./list.tsx";
import { isOpen, todosOf } from "./todos.ts";
import { Card } from "../cards/card.tsx";
import { Problem } from "../cards/execute.tsx";
import { type CardProps, record } from "../cards/outcome.ts";

export function TodoCard({ result, standing }: CardProps) {
  const todos = todosOf(result?.result);
  const done = todos.filter((each) => !isOpen(each)).length;
  return (
    <Card icon="list" standing={standing} label="To-do list" facts={todos.length > 0 ? `${done} of ${todos.length}` : null}>
      {todos.length > 0 ? <Todos todos={todos} /> : <p className="card-note">The list is empty.</p>}
      <Problem told={record(result?.result)} />
    </Card>
  );
}
