/** What can be tried while no model is there, and how one is added. */
import { Link } from "wouter";
import { changeDraft, NO_DRAFT } from "../composer/drafts.ts";
import { COMPOSE } from "../shell/keys.ts";
import { Button } from "../ui/button.tsx";
import { Notice } from "../ui/states.tsx";

/** The provider of the demo, by its id. */
const DEMO = "scripted";

/** Whether no model but the demo can be used. */
export function hasDemoAlone(models: readonly { provider_id: string }[]): boolean {
  return models.every((each) => each.provider_id === DEMO);
}

/** What the demo understands; the words are put into the composer. */
const IDEAS: readonly (readonly [label: string, text: string])[] = [
  ["Run a command", "run: ls -la /"],
  ["Write and read a file", 'call: write_file {"path": "notes.md", "content": "# Notes\\n"}\ncall: read_file {"path": "notes.md"}'],
  ["Count slowly, to interrupt it", "count to 200"],
  ["Show Markdown", "repeat after me: **Bold**, a list:\n\n- one\n- two"],
];

export function DemoHint({ isAdmin }: { isAdmin: boolean }) {
  function fill(text: string): void {
    changeDraft("new", () => ({ ...NO_DRAFT, text }));
    dispatchEvent(new Event(COMPOSE));
  }
  return (
    <Notice icon="spark" title="The scripted demo answers">
      <p>It is no language model: it follows a few commands, so that you can see what Parley does. Try one:</p>
      <div className="start-ideas">
        {IDEAS.map(([label, text]) => <Button key={label} small title={text} onClick={() => fill(text)}>{label}</Button>)}
      </div>
      <p>
        {isAdmin ? (
          <>To talk with a real model, <Link href="/admin/providers">add a provider and its key</Link>, then a model of it.</>
        ) : (
          "To talk with a real model, ask an administrator to add a provider."
        )}
      </p>
    </Notice>
  );
}
