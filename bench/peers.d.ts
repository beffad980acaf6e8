/** The parts of the peers' packages that contenders use. `npm ci` at the root does not install these packages. */

declare module 'better-sqlite3' {
  export default class Database {
    constructor(file: string);
    pragma(source: string, options?: { readonly simple: boolean }): unknown;
    close(): void;
  }
}

declare module '@langchain/langgraph-checkpoint-sqlite' {
  import type Database from 'better-sqlite3';

  export class SqliteSaver {
    constructor(db: Database);
    put(...args: readonly unknown[]): Promise<unknown>;
    putWrites(...args: readonly unknown[]): Promise<unknown>;
  }
}

declare module '@langchain/langgraph' {
  import type { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite';

  interface Compiled<Input, Output> {
    invoke(input: Input, options: object): Promise<Output>;
  }

  interface Channel<Value> {
    readonly ValueType: Value;
  }

  interface AnnotationRoot<State> {
    readonly State: State;
  }

  export const Annotation: {
    <Value>(options?: { reducer(all: Value, more: Value): Value; default(): Value }): Channel<Value>;
    Root<State>(channels: { readonly [Name in keyof State]: Channel<State[Name]> }): AnnotationRoot<State>;
  };

  export const START: string;
  export const END: string;

  export class Send {
    constructor(node: string, args: object);
    readonly node: string;
  }

  export class StateGraph<State> {
    constructor(state: AnnotationRoot<State>);
    addNode<Input = State>(name: string, run: (input: Input) => Promise<Partial<State>>): this;
    addEdge(from: string, to: string): this;
    addConditionalEdges(from: string, next: (state: State) => string | readonly Send[]): this;
    compile(options: { readonly checkpointer: SqliteSaver }): Compiled<Partial<State>, State>;
  }

  export function task<Input, Output>(
    name: string,
    run: (input: Input) => Promise<Output>,
  ): (input: Input) => Promise<Output>;

  export function entrypoint<Input, Output>(
    options: { readonly name: string; readonly checkpointer: SqliteSaver },
    run: (input: Input) => Promise<Output>,
  ): Compiled<Input, Output>;
}
