/** The goal of a chat: what it is, how far it is, and what its owner can do about it. */
import "./goals.css";
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { answered, api } from "../api/client.ts";
import { models, queryClient } from "../api/queries.ts";
import { ConfirmButton } from "../forms/confirm.tsx";
import { Loaded } from "../forms/loaded.tsx";
import type { TabProps } from "../panel/panel.tsx";
import { useIsOwner, useIsReader } from "../sharing/owner.ts";
import { OwnersOnly } from "../sharing/owners-only.tsx";
import { Button } from "../ui/button.tsx";
import { duration, money } from "../ui/format.ts";
import { complain, say } from "../ui/toasts.tsx";
import { Visible } from "../ui/visible.tsx";
import { GoalForm } from "./goal-form.tsx";
import { type Goal, secondsUsed } from "./goal-values.ts";

const READ_AGAIN_MS = 3_000;
const LOOKS: Record<string, string> = { active: "is-accent", reached: "is-accent", paused: "is-warn", exhausted: "is-bad" };

function goal(chatId: string) {
  return queryOptions({
    queryKey: ["goal", chatId],
    staleTime: 0,
    queryFn: async ({ signal }): Promise<Goal | null> => {
      const { items } = await answered(api.GET("/api/v1/chats/{chat_id}/goals", { params: { path: { chat_id: chatId } }, signal }));
      return items[0] ?? null;
    },
    refetchInterval: (query) => (query.state.data?.state === "active" ? READ_AGAIN_MS : false),
  });
}

export default function GoalTab({ chat }: TabProps) {
  if (useIsReader(chat)) return <OwnersOnly chat={chat} what="its goal" />;
  return <OwnGoal chat={chat} />;
}

function OwnGoal({ chat }: TabProps) {
  const isMine = useIsOwner(chat) && !chat.archived;
  const query = useQuery({ ...goal(chat.id), enabled: !chat.parent_chat_id });
  const [isSetting, setSetting] = useState(false);

  function know(changed: Goal | null): void {
    queryClient.setQueryData(goal(chat.id).queryKey, changed);
    setSetting(false);
  }

  if (chat.parent_chat_id) {
    return (
      <p className="panel-note">
        Agents have no goals of their own. <Link href={`/chats/${chat.root_chat_id}`}>The chat that started them</Link> can have one.
      </p>
    );
  }
  return (
    <Loaded query={query} what="goal">
      {(found) => {
        if (found && !isSetting) return <Shown goal={found} isMine={isMine} onChanged={know} onSetAgain={() => setSetting(true)} />;
        if (!isMine) return <p className="panel-note">This chat has no goal.</p>;
        return (
          <div className="panel-part">
            <p className="panel-note">
              With a goal the chat goes on by itself after each turn, until the check passes, a model judges it to be reached, or a budget is used up.
              {found && " This one takes the place of the goal that is set."}
            </p>
            <GoalForm chatId={chat.id} before={found} onSet={know} {...(found ? { onCancel: () => setSetting(false) } : {})} />
          </div>
        );
      }}
    </Loaded>
  );
}

interface ShownProps {
  goal: Goal;
  isMine: boolean;
  onChanged: (goal: Goal | null) => void;
  onSetAgain: () => void;
}

function Shown({ goal: shown, isMine, onChanged, onSetAgain }: ShownProps) {
  const state = shown.state ?? "active";
  const isOver = state === "reached" || state === "exhausted";
  return (
    <>
      <section className="panel-part" aria-label="Goal">
        <p>
          <span className={`badge ${LOOKS[state] ?? ""}`}>{state}</span>{" "}
          {shown.reason && <span className="panel-note"><Visible>{shown.reason}</Visible></span>}
        </p>
        <p className="goal-text"><Visible>{shown.text}</Visible></p>
        {isMine && <Commands goal={shown} isOver={isOver} onChanged={onChanged} onSetAgain={onSetAgain} />}
      </section>
      <Progress goal={shown} isOver={isOver} />
      {shown.check_command && <Check goal={shown} />}
      {shown.judge_model_id && <Judge modelId={shown.judge_model_id} verdict={shown.verdict} />}
    </>
  );
}

function Check({ goal: shown }: { goal: Goal }) {
  return (
    <section className="panel-part" aria-label="Check">
      <h3 className="panel-heading">Check</h3>
      <p><code className="goal-check"><Visible>{shown.check_command}</Visible></code></p>
      {shown.check_output ? (
        <pre className="preview" tabIndex={0} aria-label="End of what the last check printed"><Visible>{shown.check_output}</Visible></pre>
      ) : (
        <p className="panel-note">No check has printed anything yet.</p>
      )}
    </section>
  );
}

/** The model that judges a goal, and why it decided as it did the last time. */
function Judge({ modelId, verdict }: { modelId: string; verdict: string | null }) {
  const model = useQuery(models).data?.items.find((each) => each.id === modelId);
  return (
    <section className="panel-part" aria-label="Judge">
      <h3 className="panel-heading">Judge</h3>
      <p><Visible>{model?.display_name || model?.name || "A model that is not in the list any more"}</Visible></p>
      {verdict ? (
        <p className="goal-text"><Visible>{verdict}</Visible></p>
      ) : (
        <p className="panel-note">It has not judged yet.</p>
      )}
    </section>
  );
}

interface CommandsProps {
  goal: Goal;
  isOver: boolean;
  onChanged: (goal: Goal | null) => void;
  onSetAgain: () => void;
}

function Commands({ goal: shown, isOver, onChanged, onSetAgain }: CommandsProps) {
  const [isBusy, setBusy] = useState(false);
  const params = { path: { chat_id: shown.chat_id } };

  async function change(verb: "pause" | "resume", done: string): Promise<void> {
    setBusy(true);
    try {
      const call = verb === "pause"
        ? api.POST("/api/v1/chats/{chat_id}/goal/pause", { params, body: {} })
        : api.POST("/api/v1/chats/{chat_id}/goal/resume", { params, body: {} });
      onChanged(await answered(call));
      say(done);
    } catch (error) {
      complain(error);
    }
    setBusy(false);
  }

  return (
    <div className="section-bar">
      {shown.state === "active" && (
        <Button small icon="pause" disabled={isBusy} onClick={() => void change("pause", "The goal is paused. A turn that runs goes on.")}>Pause</Button>
      )}
      {shown.state === "paused" && (
        <Button small look="primary" disabled={isBusy} onClick={() => void change("resume", "The goal is resumed.")}>Resume</Button>
      )}
      <Button small onClick={onSetAgain}>{isOver ? "Set another goal" : "Change"}</Button>
      <ConfirmButton
        label={isOver ? "Remove" : "End"}
        title={isOver ? "Remove this goal?" : "End this goal?"}
        text="The chat does not go on by itself any more. A turn that runs goes on."
        done="The goal is ended."
        onConfirm={async () => {
          await answered(api.DELETE("/api/v1/chats/{chat_id}/goal", { params }));
          onChanged(null);
        }}
      />
    </div>
  );
}

/** How much of each budget is used; the time of a goal that is over is not known. */
function Progress({ goal: shown, isOver }: { goal: Goal; isOver: boolean }) {
  const seconds = secondsUsed(shown, Date.now());
  const limit = shown.cost_max_micros;
  const time = duration(shown.seconds_max * 1000);
  return (
    <section className="panel-part goal-progress" aria-label="Progress">
      <Used label="Turns" words={`${shown.turns_count} of ${shown.turns_max}`} value={shown.turns_count} most={shown.turns_max} />
      {isOver ? <Used label="Time" words={`at most ${time}`} /> : <Used label="Time" words={`${duration(seconds * 1000)} of ${time}`} value={seconds} most={shown.seconds_max} />}
      {limit > 0 ? (
        <Used label="Cost" words={`${money(shown.cost_micros)} of ${money(limit)}`} value={shown.cost_micros} most={limit} />
      ) : (
        <Used label="Cost" words={`${money(shown.cost_micros)}, no limit of its own`} />
      )}
    </section>
  );
}

interface UsedProps {
  label: string;
  words: string;
  value?: number;
  most?: number;
}

function Used({ label, words, value, most }: UsedProps) {
  return (
    <div className="goal-used">
      <span className="goal-used-label">{label}</span>
      <span>{words}</span>
      {most !== undefined && <meter className="meter" min={0} max={Math.max(most, 1)} value={value} aria-label={`${label}: ${words}`} />}
    </div>
  );
}
