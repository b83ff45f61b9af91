import { type Problem, wordsOf } from "../../api/problem.ts";

/** What a tab shows while the chat has no workspace that answers. */
export function NoWorkspace({ problem }: { problem: Problem }) {
  return (
    <p className="panel-note" role="status">
      {problem.status === 404
        ? "This chat has no workspace yet. It gets one when the agent first needs one."
        : wordsOf(problem)}
    </p>
  );
}
