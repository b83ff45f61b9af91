/** The frame of all cards: what was called, how it stands, and what came of it. */
import { type ReactNode, useId, useState } from "react";
import { Icon, type IconName } from "../ui/icon.tsx";
import { type Standing, WORDS } from "./outcome.ts";

interface CardFrameProps {
  icon: IconName;
  label: ReactNode;
  standing: Standing;
  /** Short facts at the end of the head. */
  facts?: ReactNode;
  /** Whether it is open until a person opens or closes it. */
  isOpen?: boolean;
  children?: ReactNode;
}

export function Card({ icon, label, standing, facts, isOpen = false, children }: CardFrameProps) {
  const [chosen, setChosen] = useState<boolean | null>(null);
  const id = useId();
  const isShown = (chosen ?? isOpen) && Boolean(children);
  return (
    <div className={`card is-${standing}`}>
      <button
        type="button"
        className="card-head"
        aria-expanded={isShown}
        aria-controls={id}
        disabled={!children}
        onClick={() => setChosen(!isShown)}
      >
        <Icon name={icon} />
        <span className="card-label">{label}</span>
        {facts && <span className="card-facts">{facts}</span>}
        <Mark standing={standing} />
        {children && <span className={`card-chevron${isShown ? " is-open" : ""}`}><Icon name="chevron" /></span>}
      </button>
      {isShown && (
        <div className="card-body" id={id}>
          {children}
        </div>
      )}
    </div>
  );
}

function Mark({ standing }: { standing: Standing }) {
  if (standing === "done") {
    return <span className="visually-hidden">done</span>;
  }
  if (standing === "running") {
    return (
      <span className="card-mark">
        <span className="spinner" aria-hidden="true" />
        <span className="visually-hidden">running</span>
      </span>
    );
  }
  const kind = standing === "failed" ? "is-bad" : "is-warn";
  return <span className={`badge ${kind}`}>{WORDS[standing]}</span>;
}
