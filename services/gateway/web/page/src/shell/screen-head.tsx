/** What all screens but chats begin with, and what a screen is that has a state in place of content. */
import type { ReactNode } from "react";
import { Link } from "wouter";
import { IconButton } from "../ui/button.tsx";
import { sideShown } from "./side-state.ts";

/** The title, and on a phone the way to the chats. */
export function ScreenHead({ title }: { title: string }) {
  return (
    <header className="screen-head">
      <ToChats />
      <h1 className="screen-title">{title}</h1>
    </header>
  );
}

/** A screen that cannot show what was asked for: it says why, and leads on. */
export function StateScreen({ children }: { children: ReactNode }) {
  return (
    <main className="screen is-state">
      <ToChats />
      {children}
      <p className="state-next">
        <Link className="button" href="/">Begin a new chat</Link>
      </p>
    </main>
  );
}

function ToChats() {
  return <IconButton icon="menu" label="Show the list of chats" className="only-phone" onClick={() => sideShown.set(true)} />;
}
