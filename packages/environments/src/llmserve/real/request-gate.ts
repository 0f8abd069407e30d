/** Lets so many through at once; who waits goes in order of urgency, then of arrival. */
export class RequestGate {
  readonly #limit: number;
  readonly #waiting: { readonly urgency: number; readonly enter: () => void }[] = [];
  #inside = 0;

  /** @param limit `Infinity` lets everybody through */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get waitingCount(): number {
    return this.#waiting.length;
  }
  get insideCount(): number {
    return this.#inside;
  }

  /** Resolves when there is room. @param urgency the lowest goes first */
  async enter(urgency: number): Promise<void> {
    if (this.#inside < this.#limit) {
      this.#inside++;
      return;
    }
    await new Promise<void>((enter) => {
      const at = this.#waiting.findIndex((other) => other.urgency > urgency);
      this.#waiting.splice(at < 0 ? this.#waiting.length : at, 0, { urgency, enter });
    });
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#inside--;
    else next.enter();
  }
}
