import type { HostAnswer, HostQuestion, SessionResult, Turn } from './session.ts';

interface Asked {
  readonly question: HostQuestion;
  readonly onAnswer: (answer: HostAnswer) => void;
}

/** The questions of a session, one after another, and its end. */
export class Turns {
  readonly #asked: Asked[] = [];
  #handedOut: Asked | undefined;
  #end: Turn | undefined;
  #wake = () => {};

  get isOver(): boolean {
    return this.#end !== undefined;
  }

  ask(question: HostQuestion, onAnswer: (answer: HostAnswer) => void): void {
    this.#asked.push({ question, onAnswer });
    this.#wake();
  }

  /** The answer would come too late. */
  withdraw(id: string): void {
    const isThis = ({ question }: Asked) => question.kind === 'permission' && question.id === id;
    const index = this.#asked.findIndex(isThis);
    if (index >= 0) this.#asked.splice(index, 1);
    if (this.#handedOut && isThis(this.#handedOut)) this.#handedOut = undefined;
  }

  /** Only the first end counts. */
  end(result: SessionResult): void {
    this.#end ??= { kind: 'end', result };
    this.#wake();
  }

  async next(answer?: HostAnswer): Promise<Turn> {
    if (answer) this.#takeAnswer(answer);
    for (;;) {
      if (this.#end) return this.#end;
      const [first] = this.#asked;
      if (first) {
        this.#handedOut = first;
        return { kind: 'question', question: first.question };
      }
      await new Promise<void>(resolve => {
        this.#wake = resolve;
      });
    }
  }

  #takeAnswer(answer: HostAnswer): void {
    const answered = this.#handedOut;
    if (!answered) return;
    this.#handedOut = undefined;
    this.#asked.splice(this.#asked.indexOf(answered), 1);
    answered.onAnswer(answer);
  }
}
