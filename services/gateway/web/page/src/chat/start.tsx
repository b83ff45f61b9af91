/** The start: a first message makes a chat. */
import "./chat.css";
import { useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { useLocation } from "wouter";
import { answered, api } from "../api/client.ts";
import { me, models, queryClient } from "../api/queries.ts";
import { randomKey } from "../api/transport.ts";
import type { InputPart } from "../api/types.ts";
import { Composer } from "../composer/composer.tsx";
import { type ModelChoice, ModelPicker } from "../models/picker.tsx";
import { OWN, type WorkspaceChoice, workspaceId, WorkspacePicker } from "../composer/workspace-picker.tsx";
import { Problem, ShownAtFields, wordsBeside } from "../api/problem.ts";
import { NO_OPTIONS, RACE_FIELDS, RaceFields, type RaceOptions } from "../races/options.tsx";
import { raceBody, startRace } from "../races/starting.ts";
import { ServerPicker, ServersToConnect } from "../mcp/picker.tsx";
import type { Selection } from "../mcp/selection.ts";
import { sideShown } from "../shell/side-state.ts";
import { upsert } from "../stream/feed.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { DemoHint, hasDemoAlone } from "../models/demo-hint.tsx";

export default function StartScreen() {
  const who = useQuery(me).data;
  const known = useQuery(models);
  const [, navigate] = useLocation();
  const [choice, setChoice] = useState<ModelChoice>({ modelId: null, effort: null });
  const [selection, setSelection] = useState<Selection>(null);
  const [isPlan, setPlan] = useState(false);
  const [isRace, setRace] = useState(false);
  const [raceOptions, setRaceOptions] = useState<RaceOptions>(NO_OPTIONS);
  const [refused, setRefused] = useState<Problem>();
  const [workspace, setWorkspace] = useState<WorkspaceChoice>(OWN);
  // A second attempt to make the same chat finds the one that was made.
  const key = useRef(randomKey());

  async function create(content: InputPart[]): Promise<void> {
    try {
      await (isRace ? race(content) : begin(content));
    } catch (error) {
      // What was sent without an answer was another task; the next attempt is one of its own.
      if (error instanceof Problem && error.code === "REQUEST_ID_REUSED") key.current = randomKey();
      throw error;
    }
  }

  async function begin(content: InputPart[]): Promise<void> {
    const workspace_id = await workspaceId(workspace, key.current);
    const chat = await answered(
      api.POST("/api/v1/chats", {
        params: { header: { "Idempotency-Key": key.current } },
        body: {
          content,
          ...(choice.modelId ? { model_id: choice.modelId } : {}),
          ...(choice.effort ? { reasoning_effort: choice.effort } : {}),
          ...(selection ? { mcp_server_ids: [...selection] } : {}),
          ...(workspace_id ? { workspace_id } : {}),
          ...(isPlan ? { mode: "plan" as const } : {}),
        },
      }),
    );
    key.current = randomKey();
    queryClient.setQueryData(["chat", chat.id], chat);
    upsert(chat);
    navigate(`/chats/${chat.id}`);
  }

  async function race(content: InputPart[]): Promise<void> {
    setRefused(undefined);
    try {
      const body = raceBody(content, raceOptions, known.data?.items ?? []);
      const raceId = await startRace(body, await workspaceId(workspace, key.current), key.current);
      key.current = randomKey();
      navigate(`/races/${raceId}`);
    } catch (error) {
      if (error instanceof Problem) setRefused(error);
      if (error instanceof Problem && wordsBeside(error, RACE_FIELDS) === "") throw new ShownAtFields(error.message);
      throw error;
    }
  }

  const isAdmin = who?.role === "owner" || who?.role === "admin";
  return (
    <main className="start">
      <IconButton className="only-phone" icon="menu" label="Show the list of chats" onClick={() => sideShown.set(true)} />
      <div>
        <h1 className="start-title">{greeting(who?.display_name)}</h1>
        <p className="start-lead">What should be done?</p>
      </div>
      <Composer
        place="new"
        chatId={null}
        placeholder="Describe the task"
        isBusy={false}
        earlier={() => []}
        commands={[{ name: "waiting", hint: "See what waits for you", run: () => navigate("/waiting") }]}
        selection={selection}
        options={
          <>
            {!isRace && (
              <Button className="toggle" look="quiet" small icon="plan" aria-pressed={isPlan} title="Plan first: nothing is changed until you accept" onClick={() => setPlan(!isPlan)}>
                Plan
              </Button>
            )}
            <Button className="toggle" look="quiet" small icon="branch" aria-pressed={isRace} title="Give the task to several models and compare" onClick={() => setRace(!isRace)}>
              Race
            </Button>
            {!isRace && <ModelPicker choice={choice} onChoose={setChoice} />}
            {!isRace && <ServerPicker selection={selection} onChoose={setSelection} />}
            <WorkspacePicker choice={workspace} onChoose={setWorkspace} />
          </>
        }
        keepsDraft
        onSend={create}
      />
      {isRace ? (
        <RaceFields options={raceOptions} problemOf={(pointer) => refused?.field(pointer)} onChange={setRaceOptions} />
      ) : (
        <ServersToConnect selection={selection} />
      )}
      {known.data && hasDemoAlone(known.data.items) && (
        <DemoHint isAdmin={isAdmin} />
      )}
    </main>
  );
}

function greeting(name: string | undefined): string {
  const hour = new Date().getHours();
  const words = hour < 5 ? "Good night" : hour < 12 ? "Good morning" : hour < 18 ? "Good afternoon" : "Good evening";
  return name ? `${words}, ${name}` : words;
}
