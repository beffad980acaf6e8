// biome-ignore-all lint/suspicious/noTemplateCurlyInString: `${{ }}` is the syntax that this page is about.

export const inputsSample = `
inputs:
  version: { required: true, description: What to release }
  target: { type: choice, options: [staging, production], default: staging }
  retries: { type: number, default: 2 }
`;

/** One small example for each key of a step. */
export const examples = {
  id: '- { id: build, run: make }',
  name: '- { id: build, name: Build the app, run: make }',
  needs: '- { id: test, needs: [build, lint], run: make test }',
  if: `
- { id: notify, needs: [build], if: failure(), run: ./notify.sh }
- { id: publish, needs: [build], if: inputs.target == 'production', run: ./publish.sh }`,
  env: '- { id: build, run: make, env: { VERSION: "${{ inputs.version }}" } }',
  optional: '- { id: lint, run: npm run lint, optional: true }',
  retry: `
- { id: fetch, run: ./fetch.sh, retry: 3 }
- id: upload
  run: ./upload.sh
  retry: { attempts: 5, backoff: { initial: 2s, factor: 3, max: 1m }, on: [EXIT_NONZERO, TIMEOUT] }`,
  timeout: `
- { id: test, run: npm test, timeout: 10m }
- { id: deploy, run: ./deploy.sh, retry: 3, timeout: { attempt: 5m, step: 12m } }`,
  'timeout-minutes': '- { id: test, run: npm test, timeout-minutes: 10 }',
  run: `
- id: version
  run: |
    echo "tag=v$(cat VERSION)" >> "$REPRISE_OUTPUT"
- id: build
  needs: [version]
  run: docker build -t app:\${{ steps.version.outputs.tag }} .`,
  shell: '- { id: build, run: ./configure && make, shell: sh }',
  'working-directory': '- { id: docs, run: npm run build, working-directory: docs }',
  output: `
- id: measure
  run: |
    echo '{ "size": 512 }' > "$REPRISE_OUTPUT"
  output: { type: object, properties: { size: { type: number } }, required: [size] }`,
  uses: '- { id: staging, uses: ./deploy.yaml, with: { target: staging } }',
  with: '- { id: staging, needs: [build], uses: deploy, with: { image: "${{ steps.build.outputs.image }}" } }',
  approve: `
- { id: ok, needs: [test], approve: "Release \${{ inputs.version }}?" }
- id: how
  approve: { message: How far?, choices: [staging, production, reject] }`,
};

export const contexts = {
  'inputs.<name>': 'An input of the workflow.',
  'steps.<id>.outputs':
    'What a step in `needs` gave; `null` unless it completed. `outputs` of the workflow read every step.',
  'steps.<id>.outcome': 'How it ended: `success`, `failure`, `cancelled` or `skipped`.',
  'steps.<id>.conclusion': 'The same, but `success` for an optional step that failed.',
  'env.<name>': 'A variable from an `env` of the step or the workflow.',
};

/** The call and what it gives, for each function. */
export const functions = {
  contains: ["`contains('release', 'lea')`", 'Whether a text holds another, or a list an item.'],
  startsWith: ["`startsWith(inputs.version, 'v')`", 'Whether a text begins so.'],
  endsWith: ["`endsWith(inputs.file, '.md')`", 'Whether a text ends so.'],
  format: [
    "`format('{0}-{1}', 'a', 'b')`",
    'The text with its placeholders filled; `{{` and `}}` are braces.',
  ],
  join: [
    "`join(steps.list.outputs.files, ' ')`",
    'The items of a list as one text; `,` between them unless given.',
  ],
  toJSON: ['`toJSON(inputs)`', 'The value as JSON text.'],
  fromJSON: ["`fromJSON('[1, 2]')`", 'The value of a JSON text.'],
  success: [
    '`success()`',
    'Nothing that the step comes after has failed. Implied in an `if` that calls no status function.',
  ],
  failure: ['`failure()`', 'Something that the step comes after has failed.'],
  cancelled: [
    '`cancelled()`',
    'The workflow was cancelled. After a cancellation no step starts, so this is never true in a step that runs.',
  ],
  always: ['`always()`', 'True, however the steps before ended.'],
};

export const configSample = `
runtime:
  max_concurrent_workers: 4
  budget: { minutes: 30 }
`;
