/** Says which model answers in place of another, and why. */
import { useQuery } from "@tanstack/react-query";
import { models } from "../api/queries.ts";

interface Props {
  modelId: string;
  failedModelId: string;
  reason: string;
}

export function FallbackNote({ modelId, failedModelId, reason }: Props) {
  const known = useQuery(models).data?.items ?? [];
  const nameOf = (id: string): string => known.find((each) => each.id === id)?.display_name ?? id;
  return (
    <p className="card-note" role="note">
      {nameOf(modelId)} answers in place of {nameOf(failedModelId)}: {reason}
    </p>
  );
}
