/** Changes that are made one after the other, so that each begins with what the one before stored. */
export class InOrder {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work, work);
    this.#last = done;
    return done;
  }
}
