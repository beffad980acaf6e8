import { type StepHandle, step, workflow } from '../../src/index.ts';

/** No-op steps in sequence. */
export function chain(length: number, { dieLast = false } = {}) {
  let before: StepHandle<number> = step('s0', { run: () => 0 });
  const steps = [before];
  for (let index = 1; index < length; index++) {
    const isLast = index === length - 1;
    const run = (outputs: { readonly before: number }) => {
      if (isLast && dieLast) process.kill(process.pid, 'SIGKILL');
      return outputs.before + 1;
    };
    before = step(`s${index}`, { after: { before }, run });
    steps.push(before);
  }
  return workflow('chain', { steps });
}

/** Independent steps, and one step after all of them. */
export function fanOut(width: number) {
  const workers = Array.from({ length: width }, (_, index) => step(`w${index}`, { run: () => index }));
  const after = Object.fromEntries(workers.map(worker => [worker.id, worker]));
  const join = step('join', { after, run: outputs => Object.keys(outputs).length });
  return workflow('fan-out', { steps: [...workers, join] });
}

/** Layers of ten steps. Each step needs two steps of the previous layer. */
export function layers(length: number) {
  const width = 10;
  const steps: StepHandle<number>[] = [];
  for (let index = 0; index < length; index++) {
    const a = steps[index - width];
    const b = steps[index - (index % width) - width + ((index + 1) % width)];
    steps.push(
      a && b
        ? step(`s${index}`, { after: { a, b }, run: ({ a, b }) => (a + b) % 1000 })
        : step(`s${index}`, { run: () => index }),
    );
  }
  return workflow('layers', { steps });
}

export const shapes = { chain, fanOut, layers };
export type Shape = keyof typeof shapes;
