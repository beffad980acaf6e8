import { RepriseError } from '../core/errors.ts';
import type { World } from './world.ts';

/** One turn of the event loop. */
export const turn = () => new Promise<void>(resolve => setImmediate(resolve));

/** A long effect that runs until the test releases it. */
export function gate(world: World) {
  const open = new Map<string, (value: string) => void>();
  const begun: string[] = [];
  const aborted: string[] = [];
  const pass = world.effect<string, string>({
    name: 'test.gate',
    span: 'long',
    perform: (name, cancellation) =>
      new Promise(resolve => {
        begun.push(name);
        open.set(name, resolve);
        cancellation.onCancel(() => aborted.push(name));
      }),
  });
  return { pass, begun, aborted, release: (name: string, value = name) => open.get(name)?.(value) };
}

/** A short effect that collects its arguments in `notes`. */
export function note(world: World, notes: string[]) {
  return world.effect<string, void>({
    name: 'test.note',
    span: 'short',
    perform: text => {
      notes.push(text);
    },
  });
}

/** Returns `CODE: message` of the rejection. */
export const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'no error',
    (thrown: unknown) =>
      thrown instanceof RepriseError ? `${thrown.code}: ${thrown.message}` : String(thrown),
  );
