import { table } from './format.ts';

/** Figures measured once with no-op steps, on two cores with an fsync of about 0.2 ms. */
const figures = [
  ['SQLite alone, WAL, fsync, one row per commit', '4,222/s', '', ''],
  ['SQLite alone, 100 rows per commit', '', '159,692 rows/s', '3.7 / 35 ms'],
  ['openworkflow 0.10, SQLite', '1,112/s', '1,282/s', '2 ms / at most 1,000 steps'],
  ['openworkflow 0.10, PostgreSQL 15', '834/s', '1,098/s', '2 ms / not measured'],
  ['Restate 1.7', '595/s', '719/s', '0.12 / 0.25 s'],
  ['absurd 0.5, PostgreSQL 15', '573/s', '887/s', '4 / 27 ms'],
  ['BullMQ 6.7, Redis 7 with a sync after every write', '490/s', '1,899/s', 'not supported'],
  ['LangGraph 1.4, SQLite', '427/s', '513/s', '4 / 5 ms, by loading a checkpoint'],
  ['DBOS 5.3, PostgreSQL 15', '377/s', '538/s', '1.4 / 11.8 s'],
  ['graphile-worker 0.17, PostgreSQL 15', '296/s', '1,183/s', 'not supported'],
  ['pg-boss 12, PostgreSQL 15', '233/s', '542/s', 'not supported'],
  ['Mastra 0.24, libSQL', '146/s', '1,718/s', 'not measured'],
  ['Effect workflow 3, PostgreSQL 15', '113/s', '313/s', '3.3 s / not measured'],
  ['Vercel workflow 4.8, PostgreSQL 15', '8/s', '32/s', 'replays everything at each step'],
  ['Temporal SDK 1.24', 'not measured', 'not measured', '2.65 / 65 s'],
];

export const published = [
  '## Other engines, measured earlier',
  '',
  'These figures were measured on another day, on two cores of a similar machine. They show the order of magnitude only: compare',
  'figures of the same run. Most of these engines are servers or talk to one, so each step pays for a network and for many',
  'clients. Reprise is a library that writes to a local file and pays for neither, but it cannot coordinate several machines',
  'either.',
  '',
  table(
    ['', '1,000 steps in sequence', 'fan-out of 1,000 + join', 'resume after 1,000 / 10,000 steps'],
    figures,
  ),
].join('\n');
