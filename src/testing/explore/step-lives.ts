/** `worker_a` of `worker_a~2`, which was started in its place. */
export const firstName = (step: string): string => step.split('~', 1)[0] ?? step;

/** `worker_a~2` after `worker_a`. */
export const nextLife = (step: string): string =>
  `${firstName(step)}~${Number(step.split('~')[1] ?? '1') + 1}`;
