/** A part of the page that cannot be loaded or shown: after an upgrade its file may be gone. */
import { Component, type ReactNode } from "react";
import { Button } from "../ui/button.tsx";

interface State {
  error: Error | null;
}

export class ChunkBoundary extends Component<{ children: ReactNode }, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: Error): State {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (!error) return this.props.children;
    const isGone = /dynamically imported module|Importing a module|Failed to fetch|Unable to preload/.test(error.message);
    return (
      <div className="state" role="alert">
        <h1 className="state-title">{isGone ? "Parley was updated" : "This did not work"}</h1>
        <p className="state-text">
          {isGone
            ? "This tab still has the version before. Load it again; your drafts are kept."
            : error.message}
        </p>
        <Button look="primary" onClick={() => location.reload()}>
          Load again
        </Button>
      </div>
    );
  }
}
