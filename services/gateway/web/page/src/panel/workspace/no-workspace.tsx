import { type Problem, wordsOf } from "../../api/problem.ts";

export const NO_REPOSITORY =
  "The files of this chat are in no git repository yet, so there are no changes and no kept states to show. Ask the agent to run “git init”, or to clone a repository.";

function wordsFor(problem: Problem): string {
  if (problem.code === "NOT_A_REPOSITORY") return NO_REPOSITORY;
  if (problem.status === 404) return "This chat has no workspace yet. It gets one when the agent first needs one.";
  return wordsOf(problem);
}

/** What a tab shows while the chat has no workspace that answers. */
export function NoWorkspace({ problem }: { problem: Problem }) {
  return (
    <p className="panel-note" role="status">
      {wordsFor(problem)}
    </p>
  );
}
