import { step, workflow } from '../../src/index.ts';

/** No-op steps in sequence. */
export function chain(length, { dieLast = false } = {}) {
  const steps = [step('s0', { run: () => 0 })];
  for (let index = 1; index < length; index++) {
    const isLast = index === length - 1;
    const run = ({ before }) => {
      if (isLast && dieLast) process.kill(process.pid, 'SIGKILL');
      return before + 1;
    };
    steps.push(step(`s${index}`, { after: { before: steps[index - 1] }, run }));
  }
  return workflow('chain', { steps });
}

/** Independent steps, and one step after all of them. */
export function fanOut(width) {
  const workers = Array.from({ length: width }, (_, index) => step(`w${index}`, { run: () => index }));
  const after = Object.fromEntries(workers.map(worker => [worker.id, worker]));
  const join = step('join', { after, run: outputs => Object.keys(outputs).length });
  return workflow('fan-out', { steps: [...workers, join] });
}

/** Layers of ten steps. Each step needs two steps of the previous layer. */
export function layers(length) {
  const width = 10;
  const steps = [];
  for (let index = 0; index < length; index++) {
    const a = steps[index - width];
    const b = steps[index - (index % width) - width + ((index + 1) % width)];
    steps.push(
      step(
        `s${index}`,
        a && b ? { after: { a, b }, run: ({ a, b }) => (a + b) % 1000 } : { run: () => index },
      ),
    );
  }
  return workflow('layers', { steps });
}

export const shapes = { chain, fanOut, layers };
