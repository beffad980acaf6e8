/** Where a text stops being JSON, counted from 0; the length of the text if it just ends too early. */
export function jsonErrorOffset(text: string): number {
  const scanner = new Scanner(text);
  const open: ('[' | '{')[] = [];
  let expect: Expectation = 'value';
  for (;;) {
    scanner.skipSpace();
    const next = step(scanner, open, expect);
    if (next === undefined) return scanner.offset;
    expect = next;
  }
}

type Expectation = 'value' | 'value or ]' | 'key' | 'key or }' | 'colon' | 'comma or end' | 'nothing';

/** Reads one token. `undefined`: what stands here is not what was expected. */
function step(scanner: Scanner, open: ('[' | '{')[], expect: Expectation): Expectation | undefined {
  const afterValue = () => (open.length === 0 ? 'nothing' : 'comma or end');
  const close = () => {
    open.pop();
    return afterValue();
  };
  switch (expect) {
    case 'value or ]':
      return scanner.take(']') ? close() : step(scanner, open, 'value');
    case 'value': {
      if (scanner.take('[')) {
        open.push('[');
        return 'value or ]';
      }
      if (scanner.take('{')) {
        open.push('{');
        return 'key or }';
      }
      return scanner.takeString() || scanner.takeAtom() ? afterValue() : undefined;
    }
    case 'key or }':
      return scanner.take('}') ? close() : step(scanner, open, 'key');
    case 'key':
      return scanner.takeString() ? 'colon' : undefined;
    case 'colon':
      return scanner.take(':') ? 'value' : undefined;
    case 'comma or end': {
      const inObject = open.at(-1) === '{';
      if (scanner.take(',')) return inObject ? 'key' : 'value';
      return scanner.take(inObject ? '}' : ']') ? close() : undefined;
    }
    case 'nothing':
      return undefined;
  }
}

class Scanner {
  readonly #text: string;
  offset = 0;

  constructor(text: string) {
    this.#text = text;
  }

  skipSpace(): void {
    this.#takeMatch(/[ \t\r\n]*/y);
  }

  take(character: string): boolean {
    if (this.#text[this.offset] !== character) return false;
    this.offset++;
    return true;
  }

  takeAtom(): boolean {
    return this.#takeMatch(/true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y);
  }

  /** Leaves the offset at the character that is not allowed. */
  takeString(): boolean {
    if (!this.take('"')) return false;
    for (; this.offset < this.#text.length; this.offset++) {
      const character = this.#text[this.offset] ?? '';
      if (this.take('"')) return true;
      if (character < ' ') return false;
      if (character !== '\\') continue;
      if (!this.#takeMatch(/\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y)) return false;
      this.offset--;
    }
    return false;
  }

  #takeMatch(pattern: RegExp): boolean {
    pattern.lastIndex = this.offset;
    const matches = pattern.test(this.#text);
    if (matches) this.offset = pattern.lastIndex;
    return matches;
  }
}
