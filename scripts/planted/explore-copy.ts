import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** Share of the time for searching. The rest is for minimizing a failure and confirming it on git. */
const searchShare = 0.75;
/** Time between the interrupt of a search and its kill. */
const graceMs = 3_000;
const otherSeed = 500_001;
/** Duration of a glance: most bugs show quickly in the case that shows them at all. */
const glanceSeconds = 4;

/** Searches, each as the arguments of `reprise explore`: a case and its options. */
export interface Searches {
  readonly searches: readonly string[];
  /** Short searches that run first. */
  readonly glances?: readonly string[];
}

interface Exploring extends Searches {
  readonly seconds: number;
  readonly parallel?: number;
}

export interface Failure {
  readonly what: string;
  readonly message: string;
  readonly switches?: number;
  readonly attempt: { readonly by: string };
}

export interface Explored {
  readonly search: string;
  readonly seconds: number;
  readonly schedules: number;
  readonly failure?: Failure;
  /** Whether the failure occurs in memory but not on git. */
  readonly isDrift?: boolean;
}

/** Output of `reprise explore --json`. */
interface Printed {
  readonly worlds?: readonly { readonly schedules: number }[];
  readonly failure?: Failure;
  readonly drift?: { readonly failure: Failure };
}

interface Job {
  readonly search: string;
  readonly seed: number;
  readonly forSeconds: number;
}

interface Search {
  /** Resolves to undefined if the search was stopped. */
  readonly result: Promise<Printed | undefined>;
  readonly end: () => void;
}

/**
 * Runs searches in a copy until one of them finds a failure: first the glances, then every search for its share of the
 * time. If there are fewer searches than processes, the remaining processes repeat a search with another seed.
 */
export async function exploreCopy(copy: string, options: Exploring): Promise<Explored> {
  const { searches, glances = [], seconds, parallel = 2 } = options;
  const began = performance.now();
  const elapsed = () => (performance.now() - began) / 1000;
  const tmp = join(copy, 'tmp');
  mkdirSync(tmp, { recursive: true });
  const jobs = jobsOf({ searches, glances }, { parallel, total: seconds * searchShare * parallel });
  const running = new Set<Search>();
  let schedules = 0;
  let found: Omit<Explored, 'schedules'> | undefined;
  const takeJobs = async () => {
    for (let job = jobs.shift(); job && !found; job = jobs.shift()) {
      const child = explore(copy, { ...job, tmp });
      running.add(child);
      const result = await child.result;
      running.delete(child);
      schedules += result?.worlds?.reduce((sum, world) => sum + world.schedules, 0) ?? 0;
      const failure = result?.failure ?? result?.drift?.failure;
      if (!failure || found) continue;
      found = { failure, isDrift: !result?.failure, search: job.search, seconds: elapsed() };
      for (const other of running) other.end();
    }
  };
  await Promise.all(Array.from({ length: parallel }, takeJobs));
  return {
    search: [...new Set([...glances, ...searches])].join('; '),
    seconds: elapsed(),
    ...found,
    schedules,
  };
}

function jobsOf(
  { searches, glances = [] }: Searches,
  { parallel, total }: { readonly parallel: number; readonly total: number },
): Job[] {
  const first = glances.map(search => ({ search, seed: 1, forSeconds: glanceSeconds }));
  const lanes = Math.max(searches.length, parallel);
  const forSeconds = Math.max(1, Math.round((total - first.length * glanceSeconds) / lanes));
  const all = (seed: number) => searches.map(search => ({ search, seed, forSeconds }));
  return [...first, ...[...all(first.length > 0 ? otherSeed : 1), ...all(2 * otherSeed)].slice(0, lanes)];
}

function explore(copy: string, { search, seed, forSeconds, tmp }: Job & { readonly tmp: string }): Search {
  const [name = '', ...options] = search.split(' ');
  const args = [join(copy, 'dist', 'cli', 'main.js'), 'explore', name, '--json', '--dry-run'];
  args.push('--for', `${forSeconds}s`, '--seed', String(seed), ...options);
  const child = spawn(process.execPath, args, {
    cwd: copy,
    env: { ...process.env, TMPDIR: tmp },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let isEnded = false;
  let [out, said] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', text => {
    out += text;
  });
  child.stderr.setEncoding('utf8').on('data', text => {
    said += text;
  });
  const result = new Promise<Printed | undefined>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', () => {
      try {
        resolve(isEnded ? undefined : (JSON.parse(out) as Printed));
      } catch {
        reject(new Error(`\`reprise explore ${search}\` printed no result:\n${said || out}`));
      }
    });
  });
  const end = () => {
    isEnded = true;
    child.kill('SIGINT');
    const killing = setTimeout(() => child.kill('SIGKILL'), graceMs);
    child.once('close', () => clearTimeout(killing));
  };
  return { result, end };
}
