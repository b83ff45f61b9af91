/** Pictures that open large, one after the other. */
import "./pictures.css";
import { useState } from "react";
import { IconButton } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";

export interface Picture {
  address: string;
  name: string;
}

/** Whether a browser shows it as a picture; a document that could have scripts is none. */
export function isPicture(mediaType: string | null | undefined): boolean {
  return Boolean(mediaType?.startsWith("image/")) && mediaType !== "image/svg+xml";
}

interface ButtonProps {
  /** All pictures that can be gone through from this one. */
  pictures: readonly Picture[];
  address: string;
}

/** A small picture that opens large. */
export function PictureButton({ pictures, address }: ButtonProps) {
  const [isOpen, setOpen] = useState(false);
  const place = Math.max(0, pictures.findIndex((each) => each.address === address));
  const name = pictures[place]?.name ?? "Picture";
  return (
    <>
      <button type="button" className="picture-button" aria-label={`Open ${name} large`} onClick={() => setOpen(true)}>
        <img className="tile-picture" src={address} alt={name} loading="lazy" />
      </button>
      {isOpen && <Lightbox pictures={pictures} first={place} onClose={() => setOpen(false)} />}
    </>
  );
}

interface LightboxProps {
  pictures: readonly Picture[];
  first: number;
  onClose: () => void;
}

function Lightbox({ pictures, first, onClose }: LightboxProps) {
  const [place, setPlace] = useState(first);
  const [isBroken, setBroken] = useState(false);
  const shown = pictures[place] ?? pictures[0];
  if (!shown) return null;

  function step(by: number): void {
    setPlace((place + by + pictures.length) % pictures.length);
    setBroken(false);
  }

  return (
    <Dialog title={shown.name} wide onClose={onClose}>
      <div
        className="lightbox"
        onKeyDown={(event) => {
          if (pictures.length < 2) return;
          if (event.key === "ArrowRight") step(1);
          else if (event.key === "ArrowLeft") step(-1);
        }}
      >
        {isBroken ? (
          <p className="field-problem" role="alert">The picture cannot be shown: it was deleted, or it is damaged.</p>
        ) : (
          <img className="lightbox-picture" src={shown.address} alt={shown.name} onError={() => setBroken(true)} />
        )}
        <div className="lightbox-bar">
          {pictures.length > 1 && (
            <>
              <IconButton icon="back" label="Previous picture" onClick={() => step(-1)} />
              <span role="status">{place + 1} of {pictures.length}</span>
              <IconButton icon="chevron" label="Next picture" onClick={() => step(1)} />
            </>
          )}
          <a className="button is-small" href={shown.address} download={shown.name}>Download</a>
          <button type="button" className="button is-small" autoFocus onClick={onClose}>Close</button>
        </div>
      </div>
    </Dialog>
  );
}
