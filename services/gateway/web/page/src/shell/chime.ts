/** A short sound when a turn has ended, if the person has chosen it; of all tabs one plays it. */
import type { Chat, ChatStatus } from "../api/types.ts";
import { createStore } from "../ui/stores/store.ts";
import { readStored, writeStored } from "../ui/stores/stored.ts";

const KEY = "parley.chime";
const LOCK = "parley.chime";
/** So long no other tab plays it. */
const HELD_MS = 2_000;
const NOTES: readonly (readonly [hertz: number, atS: number])[] = [
  [659.26, 0],
  [880, 0.14],
];
const NOTE_S = 0.35;
const LOUDNESS = 0.08;

export const chime = createStore(readStored(KEY) === "on");

export function setChime(isOn: boolean): void {
  chime.set(isOn);
  writeStored(KEY, isOn ? "on" : null);
}

/** Return whether a turn of a chat has ended well between two states of it. */
export function hasEnded(was: ChatStatus | null | undefined, is: ChatStatus | null): boolean {
  return (was === "running" || was === "interrupting") && is === "waiting";
}

/** Play it for a chat of the person that went from a state to its present one. */
export function chimeFor(chat: Chat, was: ChatStatus | null | undefined, userId: string): void {
  const isOwn = chat.owner_id === userId && !chat.parent_chat_id;
  if (chime.get() && isOwn && hasEnded(was, chat.status)) void playOnce();
}

/** Play it unless another tab does. */
export async function playOnce(): Promise<void> {
  // Browsers play no sound on a page before the first click or key press.
  if (!navigator.userActivation.hasBeenActive) return;
  // Locks exist on secure origins only; elsewhere every tab plays.
  if (!("locks" in navigator)) return play();
  await navigator.locks.request(LOCK, { ifAvailable: true }, async (lock) => {
    if (!lock) return;
    play();
    await new Promise((resolve) => setTimeout(resolve, HELD_MS));
  });
}

function play(): void {
  const context = new AudioContext();
  for (const [hertz, atS] of NOTES) {
    const begin = context.currentTime + atS;
    const tone = context.createOscillator();
    const loudness = context.createGain();
    tone.frequency.value = hertz;
    loudness.gain.setValueAtTime(LOUDNESS, begin);
    loudness.gain.exponentialRampToValueAtTime(0.001, begin + NOTE_S);
    tone.connect(loudness).connect(context.destination);
    tone.start(begin);
    tone.stop(begin + NOTE_S);
  }
  setTimeout(() => void context.close(), HELD_MS);
}
