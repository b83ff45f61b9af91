/** The model of the next message and how hard it thinks. */
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { models } from "../api/queries.ts";
import type { Model, ReasoningEffort } from "../api/types.ts";
import { Button } from "../ui/button.tsx";
import { modelLabel } from "./model-label.ts";
import { useRemembered } from "../ui/stores/stored.ts";
import { Menu, MenuHeading, MenuItem, MenuLine, MenuSearch } from "../ui/menu.tsx";
import { ownModels } from "../settings/queries.ts";
import { groupsOfModels, offeredModels } from "./groups.ts";

const EFFORTS: readonly ReasoningEffort[] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
/** With more models than these there is a field to search them. */
const UNSEARCHED_MAX = 6;

export interface ModelChoice {
  modelId: string | null;
  effort: ReasoningEffort | null;
}

/** Return the efforts of a model; none if it does not think. */
export function effortsOf(model: Model | undefined): readonly ReasoningEffort[] {
  if (!model?.max_effort) return [];
  return EFFORTS.slice(0, EFFORTS.indexOf(model.max_effort) + 1);
}

/** The own model of chats for which none was chosen, if this person has one that holds. */
function useOwnDefault() {
  const own = useQuery(ownModels).data;
  return own?.allowed ? own.items.find((each) => each.purpose === "root" && each.mode === "model") : undefined;
}

interface Props {
  choice: ModelChoice;
  onChoose: (choice: ModelChoice) => void;
  /** Further choices of the chat, below the models. */
  children?: ReactNode;
}

export function ModelPicker({ choice, onChoose, children }: Props) {
  const query = useQuery(models);
  const [words, setWords] = useState("");
  const own = useOwnDefault();
  const wantedId = choice.modelId ?? own?.model_id ?? null;
  const all = offeredModels(query.data?.items ?? [], wantedId);
  const chosen = all.find((each) => each.id === wantedId) ?? all.find((each) => each.is_default);
  const efforts = effortsOf(chosen);
  const known = chosen ? modelLabel(chosen, all) : "Demo model";
  const name = useRemembered(`parley.model.${wantedId ?? "default"}`, query.data ? known : undefined) ?? "Model";
  const ownEffort = chosen !== undefined && chosen.id === own?.model_id && !choice.modelId ? own.reasoning_effort : null;
  const effort = choice.effort ?? ownEffort ?? chosen?.default_effort;
  return (
    <Menu
      label="Model"
      head={all.length > UNSEARCHED_MAX ? <MenuSearch label="Find a model" value={words} onChange={setWords} /> : undefined}
      onClosed={() => setWords("")}
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
      <ModelItems models={all} chosenId={chosen?.id} words={words} onChoose={(modelId) => onChoose({ modelId, effort: null })} />
      {efforts.length > 0 && !words && (
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
      {!words && children}
    </Menu>
  );
}

interface ItemsProps {
  models: readonly Model[];
  chosenId: string | undefined;
  words: string;
  onChoose: (modelId: string) => void;
}

function ModelItems({ models: all, chosenId, words, onChoose }: ItemsProps) {
  const groups = groupsOfModels(all, words);
  if (all.length > 0 && groups.length === 0) {
    return <MenuItem disabled onChoose={() => {}}>No model is called so</MenuItem>;
  }
  return groups.map((group) => (
    <div key={group.title} role="group" aria-label={group.title}>
      {(groups.length > 1 || words) && <MenuHeading>{group.title}</MenuHeading>}
      {group.models.map((each) => (
        <MenuItem key={each.id} checked={each.id === chosenId} onChoose={() => onChoose(each.id)}>
          {modelLabel(each, group.models)}
        </MenuItem>
      ))}
    </div>
  ));
}
