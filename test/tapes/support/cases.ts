import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

/** Returns the text of a case file of this repository. */
export const ownCase = (path: string): string =>
  readFileSync(resolve('cases', path, `${path.split('/').at(-1)}.toml`), 'utf8');

const notes = `
[files]
"reprise.yaml" = '''
agents:
  writer: { kind: scripted, script: [{ run: 'echo "$NAME" > "$NAME.txt"' }, { say: Wrote it down. }] }
'''
".reprise/workflows/note.yaml" = '''
name: note
inputs: { name: { type: string, required: true } }
steps:
  - id: write
    agent: writer
    prompt: "Write down \${{ inputs.name }}."
    env: { NAME: "\${{ inputs.name }}" }
  - { id: land, needs: [write], land: main, from: write }
'''
`;

/** One run that creates a workspace, saves and lands. */
export const alone = `
[run]
args = ["note", "--input", "name=only"]
${notes}`;

/** Two runs that create workspaces, save, and land on one main in parallel. */
export const contended = `
[multi]
steps = [
  { name = "left", command = "run", args = ["note", "--input", "name=left"], concurrent_group = "both" },
  { name = "right", command = "run", args = ["note", "--input", "name=right"], concurrent_group = "both" },
]
${notes}`;

/** Two runs that share nothing but the store. */
export const apart = `
[multi]
steps = [
  { name = "left", command = "run", args = ["say"], concurrent_group = "both" },
  { name = "right", command = "run", args = ["say"], concurrent_group = "both" },
]

[files]
".reprise/workflows/say.yaml" = '''
name: say
steps:
  - { id: say, run: "echo said" }
'''
`;
