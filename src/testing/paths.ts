import type { Stage } from '../cases/perform/stage.ts';
import type { NamedPath } from '../effects/redact/redact.ts';

/** The folders of a stage, as they are called on tapes. */
export const stagePaths = ({ folder, repo, home }: Stage): readonly NamedPath[] => [
  { name: 'repo', path: repo },
  { name: 'home', path: home },
  { name: 'stage', path: folder },
];
