/** A screen of sections with their list beside it. */
import { Suspense } from "react";
import { Link } from "wouter";
import type { Section } from "../settings/screen.tsx";
import { Empty, Skeleton } from "../ui/states.tsx";
import { ScreenHead, StateScreen } from "./screen-head.tsx";

export const LOADING = "Loading the section";

interface SectionsProps {
  base: string;
  title: string;
  sections: readonly Section[];
  section: string | undefined;
}

export function Sections({ base, title, sections, section }: SectionsProps) {
  const shown = section ? sections.find((each) => each.name === section) : sections[0];
  if (!shown) {
    return (
      <StateScreen>
        <Empty title="There is no such section" level={1}>
          <Link href={base}>{title}</Link> lists those that there are.
        </Empty>
      </StateScreen>
    );
  }
  const Content = shown.component;
  return (
    <main className="screen">
      <ScreenHead title={title} />
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
          {/* The list of sections stays where it is while one of them is loaded. */}
          <Suspense fallback={<Skeleton label={LOADING} />}>
            <Content />
          </Suspense>
        </section>
      </div>
    </main>
  );
}
