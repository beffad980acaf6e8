import {
  argumentList,
  duration,
  environment,
  hintForCaseWide,
  stepName,
} from '../../cases/manifest/fields.ts';
import type { ServedSession } from '../../cases/manifest/manifest.ts';
import { described, listOf, type Reader, text, whole } from '../../cases/manifest/reader.ts';
import { type PlacedStep, placeStep, stepFields } from '../../cases/manifest/step.ts';
import type { Site } from './site.ts';
import { optional, required, table } from './table.ts';

const session: Reader<ServedSession> = table({
  fields: {
    role: required(
      described(text, 'What the session is for, such as `dispatch` or the name of an agent.'),
      '',
    ),
    vcr: required(described(text, 'The name of a session file, without its folder and its ending.'), ''),
  },
  build: (values, site) => ({ ...values, position: site.position }),
});

interface Worker {
  readonly placed: PlacedStep;
  readonly hasOwnTimeout: boolean;
}

const worker: Reader<Worker> = table({
  fields: {
    name: required(described(stepName, 'Names the worker in the snapshot.'), ''),
    sessions: required(described(listOf(session), 'The sessions that it is served, in this order.'), []),
    ...stepFields,
  },
  build: (values, site) => ({
    placed: placeStep({ ...values, command: '', concurrentGroup: workerGroup }, site),
    hasOwnTimeout: site.has('timeout'),
  }),
  hintFor: key =>
    key === 'command' || key === 'workflow' ? `write \`${key}\` in [worker_test]` : hintForCaseWide(key),
});

const workerGroup = 'workers';

/** `[worker_test]`: workers that run at the same time, each with sessions that were made before. */
export const workerTest: Reader<readonly PlacedStep[]> = table({
  fields: {
    num_workers: required(described(whole(1), 'How many workers there are: checked against the list.'), 0),
    command: optional(described(text, 'What each worker runs: `worker` unless said otherwise.'), 'worker'),
    workflow: optional(described(text, 'The workflow, for the command `run`.')),
    args: optional(described(argumentList, 'For all workers, before their own.'), []),
    env: optional(described(environment, 'For all workers.'), {}),
    timeout: optional(described(duration, 'For workers without one of their own.')),
    workers: required(described(listOf(worker, { least: 1 }), 'They run at the same time.'), []),
  },
  build: ({ num_workers: said, command, workflow, args, env, timeout, workers }, site) => {
    checkNumber(site, said);
    checkCommand(site, command);
    const common = workflow === undefined ? args : [workflow, ...args];
    return workers.map(({ placed: { step, site }, hasOwnTimeout }) => ({
      site,
      step: {
        ...step,
        command,
        args: [...common, ...step.args],
        env: { ...env, ...step.env },
        timeoutMs: hasOwnTimeout ? step.timeoutMs : timeout,
      },
    }));
  },
  hintFor: hintForCaseWide,
});

function checkNumber(site: Site, said: number): void {
  const { value } = site.at('workers');
  if (said === 0 || !Array.isArray(value) || value.length === said) return;
  const written = value.length === 1 ? '1 worker is written' : `${value.length} workers are written`;
  site.at('num_workers').refuse(`is ${said}, but ${written}`, 'write a [[worker_test.workers]] for each');
}

function checkCommand(site: Site, command: string): void {
  if (command === 'shell')
    site
      .at('command')
      .refuse('must be a command of Reprise', 'a shell script has no sessions: write [multi]');
  else if (site.has('workflow') && command !== 'run')
    site.at('workflow').object({
      message: '`workflow` goes with the command `run` only',
      hint: 'write command = "run"',
      atKey: true,
    });
}
