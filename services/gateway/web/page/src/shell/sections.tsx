/** A screen of sections with their list beside it. */
import { Link } from "wouter";
import type { Section } from "../settings/screen.tsx";
import { IconButton } from "../ui/button.tsx";
import { Empty } from "../ui/states.tsx";
import { sideShown } from "./side-state.ts";

interface SectionsProps {
  base: string;
  title: string;
  sections: readonly Section[];
  section: string | undefined;
}

export function Sections({ base, title, sections, section }: SectionsProps) {
  const shown = section ? sections.find((each) => each.name === section) : sections[0];
  if (!shown) return <Empty title="There is no such section">Choose another one.</Empty>;
  const Content = shown.component;
  return (
    <main className="screen">
      <header className="screen-head">
        <IconButton icon="menu" label="Chats" className="only-phone" onClick={() => sideShown.set(true)} />
        <h1 className="screen-title">{title}</h1>
      </header>
      <div className="sections">
        <nav className="sections-list" aria-label={title}>
          {sections.map((each) => (
            <Link
              key={each.name}
              href={`${base}/${each.name}`}
              {...(each === shown ? { "aria-current": "page" as const } : {})}
            >
              {each.title}
            </Link>
          ))}
        </nav>
        <section aria-label={shown.title}>
          <h2 className="section-title">{shown.title}</h2>
          <Content />
        </section>
      </div>
    </main>
  );
}
