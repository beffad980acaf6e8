import { topLane, type Witness } from '../effects/recording/recording.ts';

/** Counts how much goes on at once. */
export class WitnessCount {
  #open = 0;
  #inFlight = 0;
  #lastTop: string | undefined;
  #mostOpen = 0;
  #mostInFlight = 0;
  #switches = 0;

  opened(): void {
    this.#mostOpen = Math.max(this.#mostOpen, ++this.#open);
  }

  closed(): void {
    this.#open--;
  }

  began(): void {
    this.#mostInFlight = Math.max(this.#mostInFlight, ++this.#inFlight);
  }

  ended(): void {
    this.#inFlight--;
  }

  granted(lane: string): void {
    const top = topLane(lane);
    if (this.#lastTop !== undefined && this.#lastTop !== top) this.#switches++;
    this.#lastTop = top;
  }

  get witness(): Witness {
    return { mostOpen: this.#mostOpen, mostInFlight: this.#mostInFlight, switches: this.#switches };
  }
}
