import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { models } from "../api/queries.ts";
import type { Model, ReasoningEffort } from "../api/types.ts";
import { Button } from "../ui/button.tsx";
import { useRemembered } from "../ui/remembered.ts";
import { Menu, MenuHeading, MenuItem, MenuLine } from "../ui/menu.tsx";

const EFFORTS: readonly ReasoningEffort[] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

export interface ModelChoice {
  modelId: string | null;
  effort: ReasoningEffort | null;
}

/** Return the efforts of a model; none if it does not think. */
export function effortsOf(model: Model | undefined): readonly ReasoningEffort[] {
  if (!model?.max_effort) return [];
  return EFFORTS.slice(0, EFFORTS.indexOf(model.max_effort) + 1);
}

interface Props {
  choice: ModelChoice;
  onChoose: (choice: ModelChoice) => void;
  /** Further choices of the chat, below the models. */
  children?: ReactNode;
}

export function ModelPicker({ choice, onChoose, children }: Props) {
  const query = useQuery(models);
  const all = (query.data?.items ?? []).filter((each) => each.enabled);
  const chosen = all.find((each) => each.id === choice.modelId) ?? all.find((each) => each.is_default);
  const efforts = effortsOf(chosen);
  const known = chosen ? chosen.display_name || chosen.name : "Demo model";
  const name = useRemembered(`parley.model.${choice.modelId ?? "default"}`, query.data ? known : undefined) ?? "Model";
  const effort = choice.effort ?? chosen?.default_effort;
  return (
    <Menu
      label="Model"
      button={(attributes) => (
        <Button look="quiet" small {...attributes} title="Model and effort">
          {name}
          {effort && efforts.length > 0 && <span className="badge">{effort}</span>}
        </Button>
      )}
    >
      {all.length === 0 && (
        <MenuItem disabled onChoose={() => {}} hint="An administrator adds providers and models">
          The scripted demo answers
        </MenuItem>
      )}
      {all.map((each) => (
        <MenuItem key={each.id} checked={each.id === chosen?.id} onChoose={() => onChoose({ modelId: each.id, effort: null })}>
          {each.display_name || each.name}
        </MenuItem>
      ))}
      {efforts.length > 0 && (
        <>
          <MenuLine />
          <MenuHeading>Effort</MenuHeading>
          {efforts.map((each) => (
            <MenuItem key={each} checked={each === effort} onChoose={() => onChoose({ modelId: choice.modelId, effort: each })}>
              {each}
            </MenuItem>
          ))}
        </>
      )}
      {children}
    </Menu>
  );
}
